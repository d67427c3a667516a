// Package hack tests the scripts beside it.
package hack

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// machine is what a machine has: programs by name, each a line of shell.
type machine map[string]string

// prerequisites runs the script on the machine and returns what it prints and whether it is content.
func (m machine) prerequisites(t *testing.T, env ...string) (string, bool) {
	t.Helper()
	bin := t.TempDir()
	for _, program := range []string{"bash", "cat", "chmod"} {
		path := expect.Get(exec.LookPath(program))(t)
		expect.OK(t, os.Symlink(path, filepath.Join(bin, program)))
	}
	for name, line := range m {
		text := "#!" + filepath.Join(bin, "bash") + "\n" + line + "\n"
		expect.OK(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755)) //nolint:gosec // a program
	}
	script := expect.Get(filepath.Abs("prerequisites.sh"))(t)
	cmd := exec.Command(filepath.Join(bin, "bash"), script)
	cmd.Env = append([]string{"PATH=" + bin, "BIN=" + bin}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// apt is an apt-get that installs: it writes its arguments to the output, and programs.
const apt = `echo "apt-get $*" >&2
[[ $1 == install ]] || exit 0
for p in "$@"; do case $p in gcc|git|chromium) printf '#!%s\n' "$BIN/bash" >"$BIN/$p"; chmod +x "$BIN/$p";; esac; done`

func TestPrerequisites(t *testing.T) {
	all := machine{"go": "", "git": "", "gcc": "", "chromium": ""}
	with := func(change machine, without ...string) machine {
		m := maps.Clone(all)
		for _, name := range without {
			delete(m, name)
		}
		maps.Copy(m, change)
		return m
	}
	root, user := "echo 0", "echo 1000"
	for _, c := range []struct {
		name    string
		machine machine
		env     []string
		ok      bool
		says    []string // nothing at all where it is empty
	}{
		{name: "everything", machine: all, ok: true},
		{name: "another name of the browser", machine: with(machine{"google-chrome": ""}, "chromium"), ok: true},
		{name: "a browser that CHROMIUM names", machine: with(machine{"mine": ""}, "chromium"), env: []string{"CHROMIUM=mine"}, ok: true},
		{name: "root, fresh", machine: with(machine{"id": root, "apt-get": apt}, "git", "gcc", "chromium"), ok: true,
			says: []string{"installing git gcc libc6-dev chromium", "apt-get update", "apt-get install -y --no-install-recommends git gcc libc6-dev chromium"}},
		{name: "root, only the browser", machine: with(machine{"id": root, "apt-get": apt}, "chromium"), ok: true,
			says: []string{"apt-get install -y --no-install-recommends chromium\n"}},
		{name: "a compiler without headers", machine: with(machine{"id": user, "apt-get": apt, "gcc": "exit 1"}),
			says: []string{"run: sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc libc6-dev\n"}},
		{name: "not root", machine: with(machine{"id": user, "apt-get": apt}, "gcc", "chromium"),
			says: []string{"run: sudo apt-get update && sudo apt-get install -y --no-install-recommends gcc libc6-dev chromium\n"}},
		{name: "Fedora", machine: with(machine{"id": root, "dnf": ""}, "gcc", "chromium"), says: []string{"run as root: dnf install -y gcc glibc-devel chromium\n"}},
		{name: "Alpine", machine: with(machine{"id": root, "apk": ""}, "gcc"), says: []string{"run as root: apk add gcc musl-dev\n"}},
		{name: "no package manager", machine: with(machine{"id": root}, "chromium"), says: []string{"are missing: chromium\n"}},
		{name: "no list of packages", machine: with(machine{"id": root, "apt-get": "exit 100"}, "chromium"), says: []string{"apt-get update failed", "chromium"}},
		{name: "no such package", machine: with(machine{"id": root, "apt-get": "[[ $1 == update ]]"}, "chromium"), says: []string{"this failed: apt-get install"}},
		{name: "a package without the program", machine: with(machine{"id": root, "apt-get": ""}, "chromium"), says: []string{"still missing", "chromium"}},
		{name: "CHROMIUM is wrong", machine: with(machine{"id": root, "apt-get": apt}), env: []string{"CHROMIUM=/nowhere"}, says: []string{"CHROMIUM is /nowhere"}},
		{name: "CC is wrong", machine: with(machine{"id": root, "apt-get": apt}), env: []string{"CC=/nowhere"}, says: []string{"CC is /nowhere"}},
		{name: "no Go", machine: with(machine{"id": root, "apt-get": apt}, "go"), says: []string{"https://go.dev/dl"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			out, ok := c.machine.prerequisites(t, c.env...)
			expect.That(t, ok == c.ok && (len(c.says) != 0 || out == ""),
				"content %v, want %v; it says\n%s", ok, c.ok, out)
			expect.Says(t, out, c.says...)
		})
	}
}

// TestNothingIsCompiledBefore: `make test` looks for what it needs before all else.
func TestNothingIsCompiledBefore(t *testing.T) {
	cmd := exec.Command("make", "-C", "..", "-n", "test")
	cmd.Env = append(os.Environ(), "MAKEFLAGS=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	first, golang := strings.Index(string(out), "hack/prerequisites.sh"), strings.Index(string(out), "go ")
	expect.That(t, first >= 0 && (golang < 0 || golang >= first),
		"prerequisites at %d, the first go command at %d of\n%s", first, golang, out)
}

// TestCIRunsMakeTest: .ci/run calls `make test`, and else only programs that print. It
// fails if that does.
func TestCIRunsMakeTest(t *testing.T) {
	run := string(expect.Get(os.ReadFile("../.ci/run"))(t))
	expect.OK(t, callsMakeTestOnly(t, run))
	planted := func(lines string) string { return strings.Replace(run, "\nmake test\n", "\n"+lines+"\n", 1) }
	for _, script := range []string{
		planted(""), planted("# make test"), planted("make test || true"), planted("make lint && make test"), planted("make test\nmake test"),
		planted("(apt-get install chromium || true) 2>/dev/null; make test"), planted("make test; hack/prerequisites.sh || true"),
		planted("make test; go vet ./..."), planted("make test; echo $(git clone x)"),
	} {
		expect.Fails(t, callsMakeTestOnly(t, script), "it ")
	}
}

// callsMakeTestOnly runs a script where each program only notes that it is called.
func callsMakeTestOnly(t *testing.T, script string) error {
	t.Helper()
	dir := t.TempDir()
	expect.OK(t, os.MkdirAll(filepath.Join(dir, ".ci"), 0o750))
	expect.OK(t, os.WriteFile(filepath.Join(dir, ".ci", "run"), []byte(script), 0o600))
	expect.OK(t, os.WriteFile(filepath.Join(dir, "env"), []byte(`
command_not_found_handle() {
  case "$*" in
  dirname*) echo "$PWD/.ci" ;;
  nproc|"go version"|"go env "*|"git rev-parse "*) ;;
  *) echo "$*" >>"$BASH_ENV.calls"; [[ $1 == make ]] && return "$MAKE" ;;
  esac
}
`), 0o600))
	for _, code := range []string{"0", "3"} {
		cmd := exec.Command(expect.Get(exec.LookPath("bash"))(t), ".ci/run")
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + dir, "BASH_ENV=" + filepath.Join(dir, "env"), "MAKE=" + code}
		out, err := cmd.CombinedOutput()
		if (err == nil) != (code == "0") || strings.Contains(string(out), "No such file") {
			return fmt.Errorf("it ends with %v where make ends with %s: %s", err, code, out)
		}
	}
	calls, _ := os.ReadFile(filepath.Join(dir, "env.calls"))
	if string(calls) != "make test\nmake test\n" {
		return fmt.Errorf("it calls, in two runs,\n%s", calls)
	}
	return nil
}
