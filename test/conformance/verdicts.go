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
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/paddock-scheduler/paddock/test/conformance/withours"
)

// verdicts are the results of tests: pass, fail or skip, by name.
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

// count returns how many tests have a result.
func (v verdicts) count(how string) int {
	n := 0
	for _, got := range v {
		if got == how {
			n++
		}
	}
	return n
}

// bad returns the names of tests that neither passed nor were skipped, in order.
func (v verdicts) bad() []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if v[name] == "fail" || v[name] == "unfinished" {
			names = append(names, name)
		}
	}
	return names
}

// learn adds the results of another run: a test that passed once has passed.
func (v verdicts) learn(other verdicts) {
	for name, how := range other {
		if v[name] != "pass" && (how == "pass" || v[name] == "") {
			v[name] = how
		}
	}
}

// tops returns the top-level tests of the names, each once.
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
	mark             string // a file that is created if a scheduler with our plugins is
}

// mostRuns is how often a suite is started again after its run died.
const mostRuns = 5

// run runs the tests and returns how they ended. Tests that fail are no error. A run that
// dies, for example because its API server is not up in time, leaves tests that did not
// run: they get a run of their own, without the test in which the first run died.
func (t trial) run(ctx context.Context) (verdicts, error) {
	tops, err := t.list()
	if err != nil {
		return nil, err
	}
	all := verdicts{}
	for i := range mostRuns {
		once := t
		if i > 0 {
			once.only, once.log = "^("+strings.Join(tops, "|")+")$", fmt.Sprintf("%s.%d", t.log, i)
		}
		v, err := once.runOnce(ctx)
		if err != nil {
			return nil, err
		}
		maps.Copy(all, v)
		tops = slices.DeleteFunc(tops, func(name string) bool { return all[name] != "" })
		if len(tops) == 0 {
			return all, nil
		}
	}
	for _, name := range tops {
		all[name] = "unfinished"
	}
	return all, nil
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// list returns the tests that the trial is to run, by its sources.
func (t trial) list() ([]string, error) {
	top, _, _ := strings.Cut(t.only, "/")
	only, err := regexp.Compile(top)
	if err != nil {
		return nil, err
	}
	skip, err := regexp.Compile(t.skip)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(t.dir, "*_test.go"))
	if err != nil {
		return nil, err
	}
	var tops []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, found := range testFunction.FindAllSubmatch(source, -1) {
			name := string(found[1])
			if name != "TestMain" && only.MatchString(name) && (t.skip == "" || !skip.MatchString(name)) {
				tops = append(tops, name)
			}
		}
	}
	if len(tops) == 0 {
		return nil, fmt.Errorf("%s has no test %q", t.dir, t.only)
	}
	return tops, nil
}

func (t trial) environment() []string {
	return append(os.Environ(), "PATH="+t.etcd+string(filepath.ListSeparator)+os.Getenv("PATH"), withours.Mark+"="+t.mark)
}

// runOnce runs the tests until they end, or the run dies.
func (t trial) runOnce(ctx context.Context) (verdicts, error) {
	args := []string{"tool", "test2json", t.binary, "-test.v=test2json", "-test.timeout=30m"}
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
	command.Dir, command.Env = t.dir, t.environment()
	command.Stdout, command.Stderr = out, os.Stderr
	// A run that dies leaves its etcd behind.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	failure := command.Run()
	if command.Process != nil {
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
	}
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
