package reference

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	unsaid  = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors are the link targets behind # in a page: headings in lower case, without
// punctuation, with hyphens for spaces.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		out[strings.ReplaceAll(unsaid.ReplaceAllString(strings.ToLower(found[1]), ""), " ", "-")] = true
	}
	return out
}

// broken lists links of a page without a target; pages have the texts by path.
func broken(path string, pages map[string]string, exists func(string) bool) []string {
	var out []string
	for _, found := range link.FindAllStringSubmatch(pages[path], -1) {
		if strings.Contains(found[1], "://") {
			continue
		}
		file, anchor, _ := strings.Cut(found[1], "#")
		target := path
		if file != "" {
			target = filepath.Join(filepath.Dir(path), file)
		}
		text, page := pages[target]
		switch {
		case !page && !exists(target):
			out = append(out, found[1])
		case anchor != "" && !anchors(text)[anchor]:
			out = append(out, found[1])
		}
	}
	return out
}

func TestLinksLeadSomewhere(t *testing.T) {
	const root = "../.."
	files := expect.Get(filepath.Glob(root + "/docs/*.md"))(t)
	pages := map[string]string{}
	for _, file := range append(files, root+"/README.md") {
		text := expect.Get(os.ReadFile(file))(t)
		pages[strings.TrimPrefix(file, root+"/")] = string(text)
	}
	exists := func(path string) bool { _, err := os.Stat(filepath.Join(root, path)); return err == nil }
	for path := range pages {
		for _, target := range broken(path, pages, exists) {
			t.Errorf("%s: the link to %s leads nowhere", path, target)
		}
		expect.That(t, path == "README.md" || strings.Contains(pages["README.md"], "("+path+")"),
			"README.md does not lead to %s", path)
	}
	planted := map[string]string{"a.md": "# One `two`\n[x](b.md) [y](#one-two) [z](a.md#three) [w](https://x)"}
	got := broken("a.md", planted, func(string) bool { return false })
	expect.Same(t, "broken links", []string{"b.md", "a.md#three"}, got)
}

var (
	alert  = regexp.MustCompile(`(?m)^\s+- alert: (\w+)$`)
	answer = regexp.MustCompile("(?m)^\\| `(\\w+)` \\|")
)

// unanswered lists alerts for which the page does not say what to do, and names on the
// page that are no alerts.
func unanswered(rules, page string) []string {
	names := func(found [][]string) (out []string) {
		for _, f := range found {
			out = append(out, f[1])
		}
		return out
	}
	return missing(names(answer.FindAllStringSubmatch(page, -1)), names(alert.FindAllStringSubmatch(rules, -1)))
}

func TestEveryAlertHasAnAnswer(t *testing.T) {
	rules := expect.Get(os.ReadFile("../../manifests/monitoring/rules.yaml"))(t)
	page := expect.Get(os.ReadFile("../../docs/operations.md"))(t)
	for _, wrong := range unanswered(string(rules), string(page)) {
		t.Errorf("operations.md: alert %s", wrong)
	}
	got := unanswered("  - alert: A\n  - alert: B\n", "| `B` | x |\n| `C` | y |\n")
	expect.Same(t, "unanswered", []string{"C is on the page and not known", "A is known and not on the page"}, got)
}
