package scenario

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// Case is one plan of a file.
type Case struct {
	// Name is unique: the file, and the number of the plan in it.
	Name string
	// State is that when the plan is made; it is not shared.
	State *State
	// Ask is the asker.
	Ask Ask
	// Strict is argument strictGuarantee.
	Strict bool
	// Want is the outcome in the file.
	Want Outcome
}

// Cases reads all plans of the files below a directory, in the order of the
// files' names.
func Cases(t *testing.T, dir string) []Case {
	t.Helper()
	var cases []Case
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		cases = append(cases, casesOf(t, path, strings.TrimSuffix(filepath.ToSlash(name), ".txt"))...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func casesOf(t *testing.T, path, name string) []Case {
	t.Helper()
	var cases []Case
	expected := ""
	story := Tell(func(s *State, a Ask, strict bool) (Outcome, string, error) {
		want, err := ReadOutcome(a.Name, expected)
		if err != nil {
			return want, "", err
		}
		cases = append(cases, Case{fmt.Sprintf("%s/%d", name, len(cases)+1), s.clone(), a, strict, want})
		return want, expected, nil
	})
	datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		expected = d.Expected
		out, err := story.Command(d)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return out
	})
	return cases
}
