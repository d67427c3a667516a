package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// verdicts are how tests ended: pass, fail or skip, by name.
type verdicts map[string]string

// event is a line of `go tool test2json`.
type event struct {
	Action, Test string
}

// readVerdicts reads the events of a run. A test that began and did not end is
// "unfinished": the run died in it.
func readVerdicts(r io.Reader) (verdicts, error) {
	v := verdicts{}
	decoder := json.NewDecoder(r)
	for {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return v, nil
		} else if err != nil {
			return nil, err
		}
		if e.Test == "" {
			continue
		}
		switch e.Action {
		case "run":
			v[e.Test] = "unfinished"
		case "pass", "fail", "skip":
			v[e.Test] = e.Action
		}
	}
}

// count returns how many tests ended so.
func (v verdicts) count(how string) int {
	n := 0
	for _, got := range v {
		if got == how {
			n++
		}
	}
	return n
}

// bad are the names of tests that neither passed nor were skipped, in order.
func (v verdicts) bad() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if v[name] == "fail" || v[name] == "unfinished" {
			names = append(names, name)
		}
	}
	return names
}

// tops are the tests that the names belong to, each once.
func tops(names []string) []string {
	var list []string
	for _, name := range names {
		top, _, _ := strings.Cut(name, "/")
		list = append(list, top)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// trial is one run of a suite's binary.
type trial struct {
	binary, dir, log string
	only, skip       string // patterns; empty for none
	etcd             string // a directory with the program etcd
	limit            time.Duration
}

// run runs the tests and returns how they ended. That tests fail is no error.
func (t trial) run(ctx context.Context) (verdicts, error) {
	args := []string{"tool", "test2json", t.binary, "-test.v=test2json", "-test.timeout", t.limit.String()}
	if t.only != "" {
		args = append(args, "-test.run", t.only)
	}
	if t.skip != "" {
		args = append(args, "-test.skip", t.skip)
	}
	log, err := os.Create(t.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	out := bufio.NewWriter(log)
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = t.dir
	command.Env = append(os.Environ(), "PATH="+t.etcd+string(filepath.ListSeparator)+os.Getenv("PATH"))
	command.Stdout, command.Stderr = out, os.Stderr
	failure := command.Run()
	if err := out.Flush(); err != nil {
		return nil, err
	}
	if _, err := log.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	v, err := readVerdicts(log)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.log, err)
	}
	if len(v) == 0 {
		return nil, errors.Join(fmt.Errorf("%s ran no test; see %s", filepath.Base(t.binary), t.log), failure)
	}
	return v, ctx.Err()
}
