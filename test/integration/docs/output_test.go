package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// changing are the parts of an output that differ from run to run, and their replacements
// on a page.
var changing = []struct {
	part  *regexp.Regexp
	shown string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "2026-01-02T03:04:05Z"},
	{regexp.MustCompile(`this one in \d+[hms0-9.]*`), "this one in 59m30s"},
	{regexp.MustCompile(`Let through at the moment: \d+ of at most \d+`), "Let through at the moment: 0 of at most 4"},
	{regexp.MustCompile(`Tried without success: \d+`), "Tried without success: 3"},
	{regexp.MustCompile(`(?m)(\S)[ ]+$`), "$1"},
	{regexp.MustCompile(`(?m)(  +)(\d+h)?(\d+m)?\d+s(  +|$)`), "${1}40s$4"},
	{regexp.MustCompile(`\bx\d+ over \S+`), "x2 over 40s"},
}

// steady returns an output without the parts that differ from run to run.
func steady(text string) string {
	for _, c := range changing {
		text = c.part.ReplaceAllString(text, c.shown)
	}
	return strings.TrimRight(text, "\n")
}

// shorten cuts an output where the page cuts it, with a last line of dots.
func shorten(output, page string) string {
	shown := strings.Split(page, "\n")
	if shown[len(shown)-1] != "..." {
		return output
	}
	lines := strings.Split(output, "\n")
	if len(lines) < len(shown) {
		return output
	}
	return strings.Join(append(slices.Clone(lines[:len(shown)-1]), "..."), "\n")
}

func sameOutput(page, real string) error {
	if diff := cmp.Diff(shorten(steady(real), page), page); diff != "" {
		return fmt.Errorf("the page shows another output than there is (-); write it anew with -args -rewrite\n%s", diff)
	}
	return nil
}

// edit replaces the lines after from up to to, counted from 1.
type edit struct {
	from, to int
	text     string
}

// rewritePage writes outputs into a page, the last one first.
func rewritePage(page string, edits []edit) error {
	path := filepath.Join(suite.root, page)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, e := range edits {
		lines = slices.Replace(lines, e.from, e.to, strings.Split(e.text, "\n")...)
	}
	return os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644)
}

func TestOutputs(t *testing.T) {
	const real = "Pod a/b waits since 2026-11-22T06:41:03Z\nReason: A.\nMore.\n"
	for _, c := range []struct {
		page string
		same bool
	}{
		{"Pod a/b waits since 2026-01-02T03:04:05Z\nReason: A.\nMore.", true},
		{"Pod a/b waits since 2026-01-02T03:04:05Z\n...", true},
		{"Pod a/b waits since 2026-01-02T03:04:05Z\nReason: B.\n...", false},
		{"Pod a/b waits since 2026-01-02T03:04:05Z\nReason: A.", false},
	} {
		if err := sameOutput(c.page, real); (err == nil) != c.same {
			t.Errorf("%q: %v", c.page, err)
		}
	}
}
