package main

import (
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestVerdictsAreRead(t *testing.T) {
	v := expect.Get(readVerdicts(strings.NewReader(`{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/one"}
{"Action":"output","Test":"TestA/one","Output":"x"}
{"Action":"pass","Test":"TestA/one"}
{"Action":"run","Test":"TestA/two"}
{"Action":"fail","Test":"TestA/two"}
{"Action":"fail","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"skip","Test":"TestB"}
{"Action":"run","Test":"TestC"}
{"Action":"fail"}
`)))(t)
	got := [3]int{v.count("pass"), v.count("skip"), v.count("fail")}
	expect.That(t, got == [3]int{1, 1, 2}, "passed, skipped, failed: %v; verdicts %v", got, v)
	expect.Same(t, "bad, TestC died", []string{"TestA", "TestA/two", "TestC"}, v.bad())
	expect.Same(t, "to repeat", []string{"TestA", "TestC"}, tops(v.bad()))
	_, err := readVerdicts(strings.NewReader("{\"Action\":\"run\"}\nno json"))
	expect.That(t, err != nil, "a broken log is read without an error")
}

func TestExclusions(t *testing.T) {
	list, err := parseExclusions(exclusionsText)
	expect.OK(t, err)
	for _, e := range list {
		expect.That(t, len(e.reason) >= 20, "%s %s: no reason but %q", e.suite, e.pattern, e.reason)
	}
	list, err = parseExclusions("# none\n\nbind ^A$ is slow\nbind ^B$ is slow, too\ntaint ^C$ is third\n")
	expect.OK(t, err)
	expect.Same(t, "left out of bind", "^A$|^B$", skipped(list, "bind"))
	expect.Same(t, "left out of filters", "", skipped(list, "filters"))
	_, err = parseExclusions("bind ^A$\nnone ^A$ why\nbind ( why\n")
	for _, want := range []string{"exclusions.txt:1: want suite", `exclusions.txt:2: no suite "none"`, "exclusions.txt:3: error parsing regexp"} {
		expect.Fails(t, err, want)
	}
}

func TestSuitesAreChosen(t *testing.T) {
	all := []suite{{path: "scheduler"}, {path: "scheduler/bind", short: true}, {path: "volumescheduling"}}
	tests := []struct {
		o    options
		want string
	}{
		{options{}, "scheduler bind volumescheduling"},
		{options{short: true}, "bind"},
		{options{suites: "^(bind|vol)"}, "bind volumescheduling"},
		{options{suites: "none"}, ""},
	}
	for _, tt := range tests {
		chosen, err := choose(all, tt.o)
		var names []string
		for _, s := range chosen {
			names = append(names, s.name())
		}
		expect.Same(t, fmt.Sprintf("%+v", tt.o), tt.want, strings.Join(names, " "))
		expect.That(t, (err != nil) == (tt.want == ""), "%+v: error %v", tt.o, err)
	}
}

// TestEachSuiteOfUpstreamIsKnown finds a suite that a new version of Kubernetes brings
// and that is not run here.
func TestEachSuiteOfUpstreamIsKnown(t *testing.T) {
	known := slices.Collect(maps.Keys(left))
	for _, s := range suites {
		if strings.HasPrefix(s.path, "scheduler") {
			known = append(known, s.path)
		}
	}
	slices.Sort(known)
	expect.Same(t, "suites of Kubernetes that are run, or left out with a reason", upstreamSuites(t), known)
}

// upstreamSuites returns the directories of test/integration/scheduler that have tests,
// as paths below test/integration, sorted.
func upstreamSuites(t *testing.T) (paths []string) {
	t.Helper()
	top := filepath.Join(expect.Get(sourcesOf(t.Context(), "k8s.io/kubernetes"))(t), "test", "integration")
	note := func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == "main_test.go" { // each has one, to start etcd
			path, _ = filepath.Rel(top, filepath.Dir(path)) // both are absolute
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	}
	expect.OK(t, filepath.WalkDir(filepath.Join(top, "scheduler"), note))
	slices.Sort(paths)
	return paths
}
