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

// paddockAt runs kubectl-paddock without a kubeconfig, so its arguments name the address of
// the scheduler. It returns what the command prints, and checks its exit code.
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

func (e *env) manifest(name, queue string, options ...podOption) []byte {
	e.Helper()
	p := e.pod(name, name, append(options, inQueue(queue))...)
	p.APIVersion, p.Kind = "v1", "Pod"
	text, err := yaml.Marshal(p)
	e.ok(err)
	return text
}
