// Conformance runs upstream's own integration suites of the scheduler with our plugins in
// its profiles, on a real API server, and compares the verdicts with upstream's.
// docs/conformance.md lists the suites and the exclusions with their reasons.
//
//	go run ./test/conformance            all suites
//	go run ./test/conformance -short     three suites that take two minutes
//	go run ./test/conformance -suites '^preemption' -run TestPreemption
//	go run ./test/conformance -write     all suites, and their table in docs/conformance.md
//
// Upstream releases only with all of these tests passing. So a test that passes with our
// plugins has upstream's verdict. One that fails is repeated, in turn with our plugins
// and without, because machines are slow at times and some tests have short time-outs. A
// test that fails with ours more often than without is a difference, and the exit code is
// 1.
//
// The repository keeps no copies of upstream's files: they are read from the module
// cache, rewritten (rewrite.go) and passed to the go command as an overlay (sources.go).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "run only the short suites")
	flag.StringVar(&o.suites, "suites", "", "run only suites whose name matches this pattern")
	flag.StringVar(&o.only, "run", "", "run only tests that match this pattern, as of go test")
	flag.BoolVar(&o.planted, "planted", false, "plant bugs into our plugins and say whether the suites notice")
	flag.BoolVar(&o.write, "write", false, "write the results into docs/conformance.md")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

type options struct {
	short        bool
	suites, only string
	planted      bool
	write        bool
}

// errDiffers ends a run with a verdict that differs from upstream's.
var errDiffers = errors.New("verdicts differ from upstream's")

// errUndecided ends a run in which tests never passed, with our plugins or without: the
// machine may be too slow for them.
var errUndecided = errors.New("some tests passed neither with our plugins nor without")

func run(ctx context.Context, o options) error {
	exclusions, err := parseExclusions(exclusionsText)
	if err != nil {
		return err
	}
	chosen, err := choose(suites, o)
	if err != nil {
		return err
	}
	w, etcd, err := prepare(ctx)
	if err != nil {
		return err
	}
	if o.planted {
		return w.tryPlanted(ctx, etcd)
	}
	fmt.Printf("logs: %s\n\n%s", filepath.Join(w.dir, "logs"), suitesHeader)
	rows, page := map[string]string{}, filepath.Join(w.root, "docs", "conformance.md")
	passed, differ, undecided := 0, 0, 0
	for _, s := range chosen {
		began := time.Now()
		r, err := w.try(ctx, s, o, etcd, skipped(exclusions, s.name()))
		if err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
		rows[s.name()] = row(s, r, leftOut(exclusions, s.name()), time.Since(began).Seconds())
		fmt.Print(rows[s.name()])
		report(r)
		passed, differ, undecided = passed+r.verdicts.count("pass"), differ+len(r.differ), undecided+len(r.undecided)
		if o.write {
			if err := writePage(page, rows, exclusions); err != nil {
				return err
			}
		}
	}
	fmt.Printf("\n%d tests passed in %d suites, %d differ, %d undecided\n", passed, len(chosen), differ, undecided)
	switch {
	case differ > 0:
		return errDiffers
	case undecided > 0:
		return errUndecided
	}
	return nil
}

// report prints the remarks on a suite after its line.
func report(r result) {
	for _, name := range r.slow {
		fmt.Printf("\n%s failed once; repeated, it did not fail more often than without our plugins\n", name)
	}
	for _, name := range r.undecided {
		fmt.Printf("\n%s never passed with our plugins, and failed as often without\n", name)
	}
	for _, name := range r.differ {
		fmt.Printf("\n%s FAILS with our plugins\n", name)
	}
}

// choose returns the suites to run. It is an error if there are none.
func choose(all []suite, o options) ([]suite, error) {
	pattern, err := regexp.Compile(o.suites)
	if err != nil {
		return nil, fmt.Errorf("-suites: %w", err)
	}
	var chosen []suite
	for _, s := range all {
		if pattern.MatchString(s.name()) && (s.short || !o.short) {
			chosen = append(chosen, s)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-suites %q: no suite has such a name", o.suites)
	}
	return chosen, nil
}

// prepare puts sources, binaries and logs into bin/conformance.
func prepare(ctx context.Context) (w *workshop, etcd string, err error) {
	root, err := sourcesOf(ctx, "github.com/paddock-scheduler/paddock")
	if err != nil {
		return nil, "", err
	}
	dir := filepath.Join(root, "bin", "conformance")
	for _, d := range []string{"bin", "logs"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o700); err != nil {
			return nil, "", err
		}
	}
	if w, err = newWorkshop(ctx, root, dir); err != nil {
		return nil, "", err
	}
	etcd, err = w.buildEtcd(ctx)
	return w, etcd, err
}

// result is the outcome of a suite.
type result struct {
	verdicts verdicts
	// Of the tests that failed at first: slow passed later and failed no more often than
	// without our plugins; undecided is the same, except that they never passed; the
	// others differ.
	slow, undecided, differ []string
}

// try runs a suite, and repeats the failed tests.
func (w *workshop) try(ctx context.Context, s suite, o options, etcd, skip string) (result, error) {
	ours, err := w.build(ctx, s, true)
	if err != nil {
		return result{}, err
	}
	defer os.Remove(ours) // a gigabyte for all of them
	t := trial{
		binary: ours, dir: w.source(s.path), etcd: etcd, only: o.only, skip: skip,
		log: w.log(s, "ours"), mark: w.log(s, "ours") + ".made",
	}
	if err := os.Remove(t.mark); err != nil && !errors.Is(err, os.ErrNotExist) {
		return result{}, err
	}
	v, err := t.run(ctx)
	r := result{verdicts: v}
	if err == nil {
		err = t.madeOurs(s)
	}
	if err != nil || len(v.bad()) == 0 {
		return r, err
	}
	upstream, err := w.build(ctx, s, false)
	if err != nil {
		return r, err
	}
	defer os.Remove(upstream)
	return r, w.repeat(ctx, s, t, upstream, &r)
}

// madeOurs returns an error if no scheduler was made with our plugins, because the
// verdicts then say nothing about them.
func (t trial) madeOurs(s suite) error {
	if _, err := os.Stat(t.mark); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s made no scheduler with our plugins: its way to make one is none that rewrite.go knows, or the tests that were run (-run %q) need none", s.name(), t.only)
	}
	return nil
}

// repeats is how often failed tests are run again.
const repeats = 4

// repeat runs the failed tests again, in turn with our plugins and without, and counts
// failures.
func (w *workshop) repeat(ctx context.Context, s suite, t trial, upstream string, r *result) error {
	ours := t.binary
	bad := r.verdicts.bad()
	t.only = "^(" + strings.Join(tops(bad), "|") + ")$"
	failed := map[string]int{} // failures with ours minus failures without
	for i := range repeats {
		for _, side := range []struct {
			binary, kind string
			weight       int
		}{{ours, "ours", 1}, {upstream, "upstream", -1}} {
			t.binary, t.log = side.binary, w.log(s, fmt.Sprintf("%s-again-%d", side.kind, i))
			again, err := t.run(ctx)
			if err != nil {
				return err
			}
			for _, name := range again.bad() {
				failed[name] += side.weight
			}
			if side.weight > 0 {
				r.verdicts.learn(again)
			}
		}
	}
	for _, name := range bad {
		r.decide(name, failed[name] > 0)
	}
	return nil
}

// decide classifies a test that failed at first, after its repetition.
func (r *result) decide(name string, moreOften bool) {
	switch {
	case moreOften:
		r.differ = append(r.differ, name)
	case r.verdicts[name] == "pass":
		r.slow = append(r.slow, name)
	default:
		r.undecided = append(r.undecided, name)
	}
}

func (w *workshop) log(s suite, kind string) string {
	return filepath.Join(w.dir, "logs", strings.ReplaceAll(s.path, "/", "-")+"-"+kind+".json")
}

// leftOut is the number of exclusions of a suite.
func leftOut(list []exclusion, name string) int {
	n := 0
	for _, e := range list {
		if e.suite == name {
			n++
		}
	}
	return n
}
