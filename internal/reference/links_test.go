package reference

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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
		expect.Same(t, path+": links that lead nowhere", []string(nil), broken(path, pages, exists))
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
	expect.Same(t, "alerts of operations.md", []string(nil), unanswered(string(rules), string(page)))
	got := unanswered("  - alert: A\n  - alert: B\n", "| `B` | x |\n| `C` | y |\n")
	expect.Same(t, "unanswered", []string{"C is on the page and not known", "A is known and not on the page"}, got)
}

// A decision begins with its number and a sentence in bold.
var decision = regexp.MustCompile(`(?m)^(\d+)\. \*\*(.*)$`)

// An entry begins with its number. It is a decision, or "See N" if decision N replaced it.
var (
	entry = regexp.MustCompile(`(?m)^(\d+)\. (.*)$`)
	moved = regexp.MustCompile(`^See (\d+)\.$`)
)

// misnumbered lists numbers that do not rise, titles that occur twice, and entries that
// are neither a decision nor lead to one.
func misnumbered(decisions string) []string {
	var out []string
	titles, decided, last := map[string]string{}, map[string]bool{}, 0
	for _, d := range decision.FindAllStringSubmatch(decisions, -1) {
		title, _, _ := strings.Cut(d[2], "**")
		if first, twice := titles[title]; twice {
			out = append(out, fmt.Sprintf("%s has the title of %s", d[1], first))
		}
		titles[title], decided[d[1]] = d[1], true
	}
	for _, e := range entry.FindAllStringSubmatch(decisions, -1) {
		number, err := strconv.Atoi(e[1])
		if err != nil || number <= last {
			out = append(out, fmt.Sprintf("%s follows %d", e[1], last))
		}
		last = number
		to := moved.FindStringSubmatch(e[2])
		if !strings.HasPrefix(e[2], "**") && (to == nil || !decided[to[1]]) {
			out = append(out, e[1]+" leads to no decision")
		}
	}
	return out
}

// marks names each ruling marked † in laws, in their order, by the beginning of its row
// on the page for migration from YuniKorn, and gives words of the ruling.
var marks = []struct{ row, words string }{
	{"words: max of root", "treat root as unlimited †"},
	{"law 2", "of which the queue has less than its guarantee †"},
	{"law 2, shortages", "Preemption makes no shortage larger †"},
	{"kept", "laws 2 and 4 goes by `kept` †"},
	{"law 4", "(seed 003, flow 1) †"},
	{"law 5", "not guaranteed to it †"},
	{"law 7", "anywhere inside the policy fence †"},
	{"originators", "created in the same second †"},
	{"D1", "with that name and UID †"},
	{"never victims", "is never static †"},
	{"D4", "of lower or equal raw priority †"},
}

// rowOf finds the name in a row that is marked.
var rowOf = regexp.MustCompile(`(?m)^\| ([^|]*) † \| `)

// unlisted lists rulings marked † in laws and decisions about YuniKorn that the migration
// page does not have, and entries that only the page has.
func unlisted(laws, decisions, page string) []string {
	var out []string
	listed := map[string]bool{}
	for _, found := range rowOf.FindAllStringSubmatch(page, -1) {
		if listed[found[1]] || !slices.ContainsFunc(marks, func(m struct{ row, words string }) bool { return m.row == found[1] && strings.Contains(laws, m.words) }) {
			out = append(out, "a ruling for row "+found[1])
		}
		listed[found[1]] = true
	}
	named := 0
	for _, m := range marks {
		n := strings.Count(laws, m.words)
		if named += n; n > 0 && !listed[m.row] {
			out = append(out, m.row+" †")
		}
	}
	// The first one in laws explains the mark.
	if marked := strings.Count(laws, "†") - 1; marked != named {
		out = append(out, "a name for every ruling marked †")
	}
	for _, d := range decision.FindAllStringSubmatch(decisions, -1) {
		number := regexp.MustCompile(`[Dd]ecision ` + d[1] + `\b`)
		if strings.Contains(d[2], "YuniKorn") && !number.MatchString(page) {
			out = append(out, "decision "+d[1])
		}
	}
	return out
}

func TestEveryDepartureFromYuniKornIsListed(t *testing.T) {
	read := func(name string) string { return string(expect.Get(os.ReadFile("../../docs/" + name))(t)) }
	lacks := unlisted(read("laws.md"), read("decisions.md"), read("migrate-from-yunikorn.md"))
	expect.Same(t, "what migrate-from-yunikorn.md lacks", []string(nil), lacks)
	expect.Same(t, "what is misnumbered in decisions.md", []string(nil), misnumbered(read("decisions.md")))
	numbers := misnumbered("1. **A.** x\n2. See 4.\n3. See 2.\n4. **B.**\n4. **A.**\n6. C\n")
	expect.Same(t, "what is misnumbered",
		[]string{"4 has the title of 1", "3 leads to no decision", "4 follows 4", "6 leads to no decision"}, numbers)
	const laws = "Marked †.\n5. not guaranteed to it †\n7. anywhere inside the policy fence † and another †\n"
	const decisions = "1. **A.** As YuniKorn.\n2. **B.** Not so.\n3. **C.** YuniKorn.\n"
	got := unlisted(laws, decisions, "| law 4 † | x |\n| law 5 † | x |\n| law 5 † | y |\ndecision 11, decision 3")
	want := []string{"a ruling for row law 4", "a ruling for row law 5", "law 7 †", "a name for every ruling marked †", "decision 1"}
	expect.Same(t, "what is not listed", want, got)
}
