package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

const shipped = "../../docs/conformance.md"

func TestPageIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	page := "before\n" + begin(suitesTable) + suitesHeader + "| bind | 7 | 0 | 0 | 0 | 0 | 41 |\n| gone | 1 | 0 | 0 | 0 | 0 | 1 |\n" + end +
		"between\n" + begin(leftOutTable) + end + "after\n"
	expect.OK(t, os.WriteFile(path, []byte(page), 0o600))
	r := result{verdicts: verdicts{"TestA": "pass", "TestB": "skip", "TestC": "fail"}, undecided: []string{"TestC"}}
	taint := suite{path: "scheduler/taint"}
	expect.OK(t, writePage(path, map[string]string{taint.name(): row(taint, r, 2, 3.4)}, []exclusion{{"plugins", "^TestX$", "Why not."}}))
	got := expect.Get(os.ReadFile(path))(t)
	for _, want := range []string{
		"before\n", "between\n", "after\n", "| bind | 7 | 0 | 0 | 0 | 0 | 41 |\n", "| taint | 1 | 1 | 2 | 1 | 0 | 3 |\n",
		"| scoring | not run yet |", "| `plugins`, `TestX` | Why not. |\n", "| `serving` | ",
	} {
		expect.That(t, strings.Count(string(got), want) == 1, "%q is not there once:\n%s", want, got)
	}
	expect.That(t, !strings.Contains(string(got), "gone"), "a suite that is no more has a row")
	expect.OK(t, os.WriteFile(path, []byte("no tables"), 0o600))
	expect.That(t, writePage(path, nil, nil) != nil, "a page without tables is written without an error")
}

// The page lists the same exclusions and reasons as the command.
func TestPageSaysWhatIsLeftOut(t *testing.T) {
	source := expect.Get(os.ReadFile(shipped))(t)
	exclusions := expect.Get(parseExclusions(exclusionsText))(t)
	got := expect.Get(table(string(source), leftOutTable))(t)
	expect.Same(t, "docs/conformance.md, left out", leftOutHeader+leftOutRows(exclusions), got)
	rows := expect.Get(table(string(source), suitesTable))(t)
	expect.Same(t, "docs/conformance.md, suites", suitesHeader+mergeRows(rows, nil), rows)
}
