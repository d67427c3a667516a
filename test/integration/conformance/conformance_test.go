// Package conformance_test runs the shortest of upstream's suites with our plugins in
// every test run: that the suites can still be rewritten, built and run is known then,
// and not only at night.
package conformance_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
)

// passed finds in the table of the command how many tests of the suite passed.
var passed = regexp.MustCompile(`(?m)^\| extender \| (\d+) \|`)

// TestUpstreamsExtenderSuite takes little more than building the suite does. A pod has
// to get past our order and our filter, and the extenders have to be asked.
func TestUpstreamsExtenderSuite(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "run", "./test/conformance", "-suites", "^extender$")
	command.Dir, command.Stderr = "../../..", os.Stderr
	out, err := command.Output()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
	row := passed.FindSubmatch(out)
	if row == nil {
		t.Fatal("the table has no row of the suite")
	}
	if n, err := strconv.Atoi(string(row[1])); err != nil || n < 1 {
		t.Errorf("%s tests passed, %v", row[1], err)
	}
}
