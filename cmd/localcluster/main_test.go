package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/localcluster/build"
	"github.com/paddock-scheduler/paddock/internal/localcluster/demo"
)

// environment makes a getenv from name, value pairs.
func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestFlagsWinOverEnvironment(t *testing.T) {
	s := expect.Get(parse(nil, environment(), io.Discard))(t)
	expect.That(t, s.nodes == 20 && filepath.Base(s.dir) == ".cluster" && s.kubeconfig+s.rest == "",
		"defaults are %+v", s)
	expect.Says(t, s.ldflags, "gitVersion=v1.")
	s = expect.Get(parse([]string{"--nodes", "7"}, environment("NODES", "5", "DIR", "/elsewhere"), io.Discard))(t)
	expect.That(t, s.nodes == 7 && s.dir == "/elsewhere", "got %+v", s)
}

func TestBadSettingsAreNamed(t *testing.T) {
	for want, test := range map[string]struct {
		args []string
		env  []string
	}{
		`"many"`:              {env: []string{"NODES", "many"}},
		`"0"`:                 {args: []string{"--nodes=0"}},
		`argument "up"`:       {args: []string{"up"}},
		"name one file":       {env: []string{"KUBECONFIG", "a:b"}},
		"no such file":        {env: []string{"KUBECONFIG", "/no/such/file"}},
		"unset it":            {env: []string{"KUBECONFIG", "/no/such/file"}},
		"flag provided but n": {args: []string{"--pods=3"}},
		"are pods and scale":  {args: []string{"up"}},
		"want: scale NAMESPA": {args: []string{"scale", "a/b"}},
		`"pods" has 1 argume`: {args: []string{"pods", "all"}},
	} {
		expect.Refused(parse(test.args, environment(test.env...), io.Discard))(t, want)
	}
}

func TestKubeconfig(t *testing.T) {
	dir := t.TempDir()
	theirs, ours := filepath.Join(dir, "theirs"), filepath.Join(dir, "state", "admin.kubeconfig")
	expect.OK(t, errors.Join(os.WriteFile(theirs, nil, 0o600), os.Mkdir(filepath.Dir(ours), 0o700), os.WriteFile(ours, nil, 0o600)))
	for given, want := range map[string]string{theirs: theirs, ours: ""} {
		s := expect.Get(parse([]string{"--dir", filepath.Join(dir, "state")}, environment("KUBECONFIG", given), io.Discard))(t)
		expect.Same(t, "KUBECONFIG="+given, want, s.kubeconfig)
	}
}

// runs fails a test unless the command ends with this code and says all parts.
func runs(ctx context.Context, t *testing.T, args []string, code int, parts ...string) {
	t.Helper()
	var said bytes.Buffer
	expect.Same(t, fmt.Sprintf("exit code of %q", args), code, run(ctx, args, environment(), &said, &said))
	expect.Says(t, said.String(), parts...)
}

func TestExitCodes(t *testing.T) {
	runs(t.Context(), t, []string{"--help"}, 0, "-nodes")
	runs(t.Context(), t, []string{"--nodes=x"}, 2, "error: nodes")
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	runs(interrupted, t, []string{"--dir", t.TempDir(), "--rest", "http://127.0.0.1:0"}, 0, "everything is stopped")
	var problems bytes.Buffer
	died := &localcluster.DiedError{Name: "etcd", Log: "/logs/etcd.log", Tail: "no space left"}
	expect.Same(t, "exit code of an end", 1, fail(&problems, fmt.Errorf("wrapped: %w", died)))
	expect.Says(t, problems.String(), "last lines of /logs/etcd.log:\nno space left\n", "etcd ended by itself")
}

func TestScreenWithoutTerminal(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.progress("one of nine")
	s.progress("two of nine")
	s.say("done with %d", 9)
	s.plain("table\n")
	lines := regexp.MustCompile(`^\[ *\d+\.\ds\] one of nine\n\[ *\d+\.\ds\] done with 9\ntable\n$`)
	expect.That(t, lines.MatchString(out.String()), "unexpected output %q", out.String())
	s = newScreen(&out)
	out.Reset()
	s.quiet()
	s.progress("too early")
	expect.That(t, out.Len() == 0, "progress was shown at once: %q", out.String())
}

func TestScreenOnATerminal(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.terminal = true
	s.progress("first")
	s.progress("second" + strings.Repeat("!", 200))
	expect.Same(t, "columns of the changing line", columns, s.shown)
	s.say("message")
	text := out.String()
	expect.That(t, strings.Count(text, "\r") == 4 && strings.HasSuffix(text, "s] message\n"),
		"unexpected output %q", text)
	expect.Says(t, text, "second")
}

func TestLines(t *testing.T) {
	for want, p := range map[string]build.Progress{
		"checking and linking":                     {},
		"1 package to compile":                     {Total: 1},
		"compiled 5 of 20 packages (25%), now net": {Done: 5, Total: 20, Package: "net"},
		"compiled 20 packages, linking":            {Done: 20, Total: 20, Package: "main"},
	} {
		expect.Same(t, "line", want, buildLine(p))
	}
	placements := []demo.Placement{
		{Workload: demo.Workload{Kind: "Deployment", Namespace: "ns", Name: "d", Pods: 5, Placed: 4}, Made: 5, OnNode: 4},
		{Workload: demo.Workload{Kind: "Pod", Namespace: "ns", Name: "p", Pods: 1, Placed: 1}, Made: 1, OnNode: 1},
		{Workload: demo.Workload{Kind: "Pod", Namespace: "ns", Name: "late", Pods: 1, Placed: 1}, Made: 1},
	}
	expect.Same(t, "line", "5 of 6 sample pods are placed", placementLine(placements))
	expect.Same(t, "held", []string{"Deployment ns/d: 1 of 5 pods is pending, as its queue allows no more"}, heldLines(placements))
}

func TestOccupiedRESTAddressIsRefused(t *testing.T) {
	listener := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	occupied := listener.Addr().String()
	runs(t.Context(), t, []string{"--dir", t.TempDir(), "--rest", "http://" + occupied}, 1, occupied+" is not free")
	for _, bad := range []string{"9080", "127.0.0.1:9080", "http://127.0.0.1", "https://127.0.0.1:9080", "http://127.0.0.1:9080/ws"} {
		runs(t.Context(), t, []string{"--rest", bad}, 1, "want an address")
	}
}

func TestRESTAddress(t *testing.T) {
	got, err := chooseREST("http://127.0.0.1:0")
	if err != nil || strings.HasSuffix(got, ":0") || free(got) != nil {
		t.Fatalf("port 0 gives %q, %v", got, err)
	}
	expect.Same(t, "a free address", got, expect.Get(chooseREST("http://"+got))(t))
}

// Without a wish, an occupied usual port is no failure: another one is taken, and the user learns which.
func TestUsualRESTAddressInUse(t *testing.T) {
	if listener, err := net.Listen("tcp", usualREST); err == nil { // else another process has it, which serves as well
		defer listener.Close()
	}
	var out bytes.Buffer
	l := &launcher{screen: newScreen(&out)}
	expect.OK(t, l.takeREST())
	expect.That(t, l.restAddress != usualREST && free(l.restAddress) == nil, "took %s", l.restAddress)
	expect.Says(t, out.String(), usualREST+" is in use", "http://"+l.restAddress)
}
