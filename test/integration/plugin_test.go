package integration

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
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
