// Package conformance_test runs some of upstream's tests with our plugins in every test run. So every
// change shows, and not only the nightly run, that the suites can still be rewritten, built and run,
// and that the verdicts that depend most on the order and the filter are the same.
package conformance_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// row finds in the command's table how many tests of a suite passed.
var row = regexp.MustCompile(`(?m)^\| (\S+) \| (\d+) \|`)

// TestUpstreamsTests takes little more time than the build of the suites. Of each suite
// it expects at least as many verdicts as there are tests, subtests included.
func TestUpstreamsTests(t *testing.T) {
	for _, c := range []struct {
		name, suites, only string
		want               map[string]int
	}{
		{"order and filter", "^(extender|queueing)$", "", map[string]int{"extender": 1, "queueing": 9}},
		{
			"preemption and nominated nodes", "^preemption(/nominatednodename)?$",
			`TestPreferNominatedNode|TestPreemption/^basic_pod_preemption_\(.*Async_API_calls_enabled:_true.*Binding:_true`,
			map[string]int{"preemption": 3, "preemption/nominatednodename": 5},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			command := exec.CommandContext(t.Context(), "go", "run", "./test/conformance", "-suites", c.suites, "-run", c.only)
			command.Dir, command.Stderr = "../../..", os.Stderr
			out, err := command.Output()
			t.Logf("%s", out)
			if err != nil {
				t.Fatal(err)
			}
			passed := map[string]int{}
			for _, m := range row.FindAllStringSubmatch(string(out), -1) {
				passed[m[1]], _ = strconv.Atoi(m[2])
			}
			for suite, want := range c.want {
				expect.That(t, passed[suite] >= want,
					"%d tests of suite %s passed, want %d", passed[suite], suite, want)
			}
		})
	}
}
