package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// tests are the sources of a suite, dying a run of it that ends in its second test.
const (
	tests = `package x
func TestMain(m *testing.M) {}
func TestA(t *testing.T) {}
func TestB(t *testing.T) {}
func TestC(t *testing.T) {}
func TestSkipped(t *testing.T) {}
func BenchmarkD(b *testing.B) {}
`
	dying = `#!/bin/sh
case "$*" in
*TestC*) printf '=== RUN   TestC\n--- PASS: TestC (0.00s)\nPASS\n' ;;
*) printf '=== RUN   TestA\n--- PASS: TestA (0.00s)\n=== RUN   TestB\n'; exit 2 ;;
esac
`
)

func newTrial(t *testing.T, program string) trial {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"x_test.go": tests, "x.test": program} {
		expect.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700)) //nolint:gosec // one of them is a program
	}
	return trial{binary: filepath.Join(dir, "x.test"), dir: dir, log: filepath.Join(dir, "log"), skip: "^TestSkipped$"}
}

func TestARunThatDiesIsGoneOnWith(t *testing.T) {
	got := expect.Get(newTrial(t, dying).run(t.Context()))(t)
	expect.Same(t, "verdicts", verdicts{"TestA": "pass", "TestB": "fail", "TestC": "pass"}, got)
}

func TestTestsThatNeverRanAreUnfinished(t *testing.T) {
	one := "#!/bin/sh\nprintf '=== RUN   TestA\\n--- PASS: TestA (0.00s)\\nPASS\\n'\n"
	got := expect.Get(newTrial(t, one).run(t.Context()))(t)
	want := verdicts{"TestA": "pass", "TestB": "unfinished", "TestC": "unfinished"}
	expect.Same(t, "verdicts", want, got)
	_, err := newTrial(t, "#!/bin/sh\nexit 1\n").run(t.Context())
	expect.That(t, err != nil, "a run without tests is no error")
	none := newTrial(t, dying)
	none.only = "^TestX$"
	_, err = none.run(t.Context())
	expect.That(t, err != nil, "a trial of no test is no error")
}

func TestVerdictsAreLearned(t *testing.T) {
	v := verdicts{"A": "pass", "B": "unfinished", "C": "fail"}
	v.learn(verdicts{"A": "fail", "B": "pass", "C": "fail", "D": "skip"})
	expect.Same(t, "verdicts", verdicts{"A": "pass", "B": "pass", "C": "fail", "D": "skip"}, v)
	r := result{verdicts: v}
	r.decide("A", true)
	r.decide("B", false)
	r.decide("C", false)
	expect.Same(t, "differ, slow, undecided", [][]string{{"A"}, {"B"}, {"C"}}, [][]string{r.differ, r.slow, r.undecided})
}

func TestASuiteThatMadeNoSchedulerOfOurs(t *testing.T) {
	none, made := filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "made")
	expect.OK(t, os.WriteFile(made, nil, 0o600))
	for _, c := range []struct {
		trial trial
		wrong bool
	}{{trial{mark: none}, true}, {trial{mark: made}, false}, {trial{mark: none, only: "TestOne"}, true}} {
		err := c.trial.madeOurs(suite{path: "scheduler/x"})
		expect.That(t, (err != nil) == c.wrong, "mark %s, only %q: %v", c.trial.mark, c.trial.only, err)
	}
}

// A bug is noticed by tests that fail with it and pass without, not by tests that fail in
// both cases or did not end.
func TestBugIsNoticedByTestsThatFailOnlyWithIt(t *testing.T) {
	with := verdicts{"TestA": "fail", "TestB": "fail", "TestC": "unfinished", "TestD": "pass", "TestE": "fail"}
	without := verdicts{"TestA": "pass", "TestB": "fail", "TestC": "pass", "TestD": "pass"}
	expect.Same(t, "noticed by", []string{"TestA"}, noticedBy(with, without))
}
