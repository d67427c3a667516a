package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// The page docs/conformance.md has two tables that this command writes, each between a
// line that names it and one that ends it.
const (
	suitesTable   = "suites"
	leftOutTable  = "left out"
	suitesHeader  = "| suite | passed | skipped by upstream | left out | undecided | differ | seconds |\n|---|---|---|---|---|---|---|\n"
	leftOutHeader = "| suite, test | why |\n|---|---|\n"
)

// row is the line of a suite in the table.
func row(s suite, r result, leftOut int, seconds float64) string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %.0f |\n", s.name(), r.verdicts.count("pass"), r.verdicts.count("skip"),
		leftOut, len(r.undecided), len(r.differ), seconds)
}

// writePage replaces the rows of the suites that were run, and the present exclusions.
func writePage(path string, rows map[string]string, exclusions []exclusion) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	page := string(source)
	old, err := table(page, suitesTable)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	page = replaceTable(page, suitesTable, suitesHeader+mergeRows(old, rows))
	if _, err := table(page, leftOutTable); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	page = replaceTable(page, leftOutTable, leftOutHeader+leftOutRows(exclusions))
	return os.WriteFile(path, []byte(page), 0o644) //nolint:gosec // the page is public
}

func begin(name string) string {
	return "<!-- " + name + ": written by go run ./test/conformance -write -->\n"
}

const end = "<!-- end -->\n"

// table returns the text between the lines of a table.
func table(page, name string) (string, error) {
	_, after, ok := strings.Cut(page, begin(name))
	if !ok {
		return "", fmt.Errorf("no line %q", strings.TrimSpace(begin(name)))
	}
	inside, _, ok := strings.Cut(after, end)
	if !ok {
		return "", fmt.Errorf("no line %q after %q", strings.TrimSpace(end), strings.TrimSpace(begin(name)))
	}
	return inside, nil
}

// replaceTable replaces that text.
func replaceTable(page, name, lines string) string {
	before, after, _ := strings.Cut(page, begin(name))
	_, after, _ = strings.Cut(after, end)
	return before + begin(name) + lines + end + after
}

// mergeRows returns the rows of all suites, in their order; a suite that was not run now
// keeps its row, and one that was never run says so.
func mergeRows(old string, rows map[string]string) string {
	known := map[string]string{}
	for line := range strings.Lines(old) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			known[strings.TrimSpace(cells[1])] = line
		}
	}
	maps.Copy(known, rows)
	var out strings.Builder
	for _, s := range suites {
		line := known[s.name()]
		if line == "" {
			line = fmt.Sprintf("| %s | not run yet | | | | | |\n", s.name())
		}
		out.WriteString(line)
	}
	return out.String()
}

func leftOutRows(exclusions []exclusion) string {
	var out strings.Builder
	for _, path := range slices.Sorted(maps.Keys(left)) {
		fmt.Fprintf(&out, "| `%s` | %s |\n", suite{path: path}.name(), left[path])
	}
	for _, e := range exclusions {
		fmt.Fprintf(&out, "| `%s`, `%s` | %s |\n", e.suite, strings.Trim(e.pattern, "^$"), e.reason)
	}
	return out.String()
}
