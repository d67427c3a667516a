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
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
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
	expect.That(t, s.nodes == 20 && filepath.Base(s.dir) == ".cluster" && s.kubeconfig == "",
		"defaults are %+v", s)
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
		"name one file":       {env: []string{"KUBECONFIG", "a:b"}},
		"no such file":        {env: []string{"KUBECONFIG", "/no/such/file"}},
		"unset it":            {env: []string{"KUBECONFIG", "/no/such/file"}},
		"flag provided but n": {args: []string{"--pods=3"}},
		`argument "up": the commands are pods and scale`: {args: []string{"up"}},
		"want: scale NAMESPA":                            {args: []string{"scale", "a/b"}},
		`"pods" has 1 argume`:                            {args: []string{"pods", "all"}},
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
func runs(t *testing.T, args []string, code int, parts ...string) {
	t.Helper()
	var said bytes.Buffer
	expect.Same(t, fmt.Sprintf("exit code of %q", args), code, run(t.Context(), args, environment(), &said, &said))
	expect.Says(t, said.String(), parts...)
}

func TestExitCodes(t *testing.T) {
	runs(t, []string{"--help"}, 0, "-nodes")
	runs(t, []string{"--nodes=x"}, 2, "error: nodes")
	var problems bytes.Buffer
	died := &localcluster.DiedError{Name: "etcd", Log: "/logs/etcd.log", Tail: "no space left"}
	expect.Same(t, "exit code of an end", 1, fail(&problems, fmt.Errorf("wrapped: %w", died)))
	expect.Says(t, problems.String(), "last lines of /logs/etcd.log:\nno space left\n", "etcd ended by itself")
}

// TestInterrupt: Ctrl-C while the control plane starts ends what was started, and is no failure.
func TestInterrupt(t *testing.T) {
	bin, began := t.TempDir(), filepath.Join(t.TempDir(), "began")
	expect.OK(t, os.WriteFile(filepath.Join(bin, "localplane"), []byte("#!/bin/sh\ntouch "+began+"\nexec sleep 600\n"), 0o700))
	var said bytes.Buffer
	l := &launcher{settings: settings{bin: bin, dir: t.TempDir(), nodes: 1}, screen: newScreen(&said)}
	interrupted, cancel := context.WithCancel(t.Context())
	go func() {
		for interrupted.Err() == nil {
			if _, err := os.Stat(began); err == nil {
				cancel()
			}
			time.Sleep(time.Millisecond)
		}
	}()
	expect.Holds(t, l.run(interrupted))
	lines := regexp.MustCompile(`\[ *\d+\.\ds\] starting a control plane .*\n\[ *\d+\.\ds\] everything is stopped\n$`)
	expect.That(t, lines.MatchString(said.String()), "unexpected output %q", said.String())
}

// An occupied usual port is no failure: another one is taken, and the user learns which.
func TestUsualRESTAddressInUse(t *testing.T) {
	if listener, err := net.Listen("tcp", usualREST); err == nil { // else another process has it, which serves as well
		defer listener.Close()
	}
	var out bytes.Buffer
	l := &launcher{screen: newScreen(&out)}
	expect.OK(t, l.takeREST())
	expect.That(t, l.restAddress != usualREST, "took %s", l.restAddress)
	expect.Holds(t, expect.Get(net.Listen("tcp", l.restAddress))(t).Close())
	expect.Says(t, out.String(), usualREST+" is in use", "http://"+l.restAddress)
}
