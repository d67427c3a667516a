package main

import (
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// suite is one package of upstream's integration tests.
type suite struct {
	// path is below test/integration of Kubernetes.
	path string
	// short marks the suites of the short form.
	short bool
}

// name returns the short name of the suite.
func (s suite) name() string {
	if name, ok := strings.CutPrefix(s.path, "scheduler/"); ok {
		return name
	}
	return s.path
}

// suites are the suites that make schedulers: all of test/integration/scheduler except
// serving, and volumescheduling.
var suites = []suite{
	{path: "scheduler"},
	{path: "scheduler/batch"},
	{path: "scheduler/bind"},
	{path: "scheduler/eventhandler", short: true},
	{path: "scheduler/extender", short: true},
	{path: "scheduler/filters"},
	{path: "scheduler/gang"},
	{path: "scheduler/nominated_node_name"},
	{path: "scheduler/plugins"},
	{path: "scheduler/preemption"},
	{path: "scheduler/preemption/misc"},
	{path: "scheduler/preemption/nominatednodename"},
	{path: "scheduler/queueing", short: true},
	{path: "scheduler/queueing/former"},
	{path: "scheduler/queueing/queueinghint"},
	{path: "scheduler/scoring"},
	{path: "scheduler/taint"},
	{path: "volumescheduling"},
}

// libraries are packages that suites use and that also make schedulers.
var libraries = []string{"util"}

// left are the suites that are not run, with the reason.
var left = map[string]string{
	"scheduler/serving": "It starts upstream's command without a way to add plugins; the ports of ours are tested in test/integration.",
}

// exclusion is a test that is not run with our plugins.
type exclusion struct {
	suite, pattern, reason string
}

//go:embed exclusions.txt
var exclusionsText string

// parseExclusions reads lines of suite, pattern and reason. Empty lines and lines that
// begin with # are ignored. All errors are returned together.
func parseExclusions(text string) ([]exclusion, error) {
	known := map[string]bool{}
	for _, s := range suites {
		known[s.name()] = true
	}
	var list []exclusion
	var errs []error
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.SplitN(line, " ", 3)
		if len(parts) < 3 {
			errs = append(errs, fmt.Errorf("exclusions.txt:%d: want suite, pattern and reason", i+1))
			continue
		}
		if !known[parts[0]] {
			errs = append(errs, fmt.Errorf("exclusions.txt:%d: no suite %q", i+1, parts[0]))
		}
		if _, err := regexp.Compile(parts[1]); err != nil {
			errs = append(errs, fmt.Errorf("exclusions.txt:%d: %w", i+1, err))
		}
		list = append(list, exclusion{parts[0], parts[1], parts[2]})
	}
	return list, errors.Join(errs...)
}

// skipped returns the value of -test.skip for the suite; empty for none.
func skipped(list []exclusion, name string) string {
	var patterns []string
	for _, e := range list {
		if e.suite == name {
			patterns = append(patterns, e.pattern)
		}
	}
	return strings.Join(patterns, "|")
}
