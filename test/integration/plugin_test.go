package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// paddock runs kubectl-paddock against the scheduler of the test and returns its output,
// with that on standard error, which must be empty if the exit code is zero. It fails
// unless the code is the expected one.
func (e *env) paddock(input []byte, exit int, args ...string) string {
	e.Helper()
	return e.paddockAt(input, exit, append(args, "--server", "http://"+e.rest)...)
}

// paddockAt is the same with the address of the scheduler given.
func (e *env) paddockAt(input []byte, exit int, args ...string) string {
	e.Helper()
	command := exec.CommandContext(e.Context(), suite.plugin, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+filepath.Join(e.TempDir(), "none"))
	command.Stdin = bytes.NewReader(input)
	var out, failed bytes.Buffer
	command.Stdout, command.Stderr = &out, &failed
	err := command.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		e.Fatal(err)
	}
	if got := command.ProcessState.ExitCode(); got != exit || exit == 0 && failed.Len() > 0 {
		e.Errorf("kubectl-paddock %s: exit code %d, want %d; it says %s%s", strings.Join(args, " "), got, exit, &out, &failed)
	}
	return out.String() + failed.String()
}

// says runs it and checks that its output contains some texts.
func (e *env) says(input []byte, exit int, args string, texts ...string) {
	e.Helper()
	out := e.paddock(input, exit, strings.Fields(args)...)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			e.Errorf("kubectl-paddock %s does not say %q: %s", args, text, out)
		}
	}
}

func (e *env) manifest(name, queue string, options ...podOption) []byte {
	e.Helper()
	p := e.pod(name, name, append(options, inQueue(queue))...)
	p.APIVersion, p.Kind = "v1", "Pod"
	text, err := yaml.Marshal(p)
	e.ok(err)
	return text
}

// askPlugin runs every command on a full cluster in which room was made for a pod by a
// decision.
func (e *env) askPlugin(asker *corev1.Pod, d *record.Decision) {
	e.says(nil, 0, "queues", "root", "owed", "borrows", "delay 2s")
	e.says(nil, 0, "queues root.owed", "root.owed", "40")
	e.says(nil, 0, "top", "root.owed", "root.borrows")
	e.says(nil, 0, "explain pod asker -n "+e.ns, "Pod "+e.ns+"/asker has node "+d.Node+", in queue root.owed")
	e.says(nil, 1, "explain pod nobody -n "+e.ns, "the scheduler knows no pod "+e.ns+"/nobody")
	e.says(nil, 0, "decisions --pod asker", e.ns+"/asker", "root.owed", d.Victims[0].Name, d.Message)
	e.says(nil, 0, "holds", "No node is held")
	e.says(nil, 0, "holds --ended", d.Node, e.ns+"/asker", "bound")

	var list documents.Decisions
	e.ok(json.Unmarshal([]byte(e.paddock(nil, 0, "decisions", "--pod", "asker", "-o", "json")), &list))
	if len(list.Decisions) != 1 || list.Decisions[0].Asker.UID != asker.UID || list.Decisions[0].ID != d.ID {
		e.Errorf("the decisions as JSON are %+v", list)
	}

	e.says(e.manifest("light", "root.borrows", requests("memory", "1Mi")), 0, "preview -f -", "fits: Pod "+e.ns+"/light")
	e.says(e.manifest("late", "root.borrows"), 1, "preview -f -", "waits: Pod "+e.ns+"/late", "Insufficient cpu", "law 4")
	e.says(e.manifest("next", "root.owed"), 1, "preview -f -", "preempts: Pod "+e.ns+"/next", "Would leave for it", e.ns+"/victim")
	e.says([]byte("kind: Service"), 2, "preview -f -", "kind")

	file := filepath.Join(e.TempDir(), "queues.yaml")
	e.ok(os.WriteFile(file, []byte(strings.Replace(preemptionQueues, "guaranteed: {vcore: 40}", "guaranteed: {vcore: 40}, max: {vcore: 1}", 1)), 0o600))
	e.says(nil, 1, "config diff --live "+file, "resources.guaranteed.vcore: 40 is more than the max 1 of root.owed")
	e.ok(os.WriteFile(file, []byte(strings.Replace(preemptionQueues, "guaranteed: {vcore: 40}", "max: {vcore: 1}", 1)), 0o600))
	e.says(nil, 1, "config diff --live "+file, "Over their max", "root.owed uses 2 vcore, its max is 1")
}
