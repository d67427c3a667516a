package scenario

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// page says which scenario shows what; root is the directory of its names.
const page, root = "../../docs/cases.md", "../.."

// pageNames are the names on the page that can go stale.
var (
	pageStory = regexp.MustCompile("`((?:laws|pairs|loops|defects)/[a-z0-9_]+)`")
	pageFile  = regexp.MustCompile("`((?:pkg|test)/[a-z0-9_/]+\\.txt)`")
	pageTest  = regexp.MustCompile("`((?:pkg|test)/[a-z/]+) (Test[A-Za-z]+)`")
	pageRule  = regexp.MustCompile("(?m)^\\| (D[1-8])[^|]* \\|[^|]*`[^|]*\\|")
	pagePair  = regexp.MustCompile(`(?m)^\| (\d)-(\d) \| (.*) \|$`)
)

// TestPageIsInStep: each name on the page is there, and each story is on the page.
func TestPageIsInStep(t *testing.T) {
	text := expect.Get(os.ReadFile(page))(t)
	expect.Same(t, "what is stale on the page", []string(nil), staleOnPage(t, string(text)))
}

// TestPageOutOfStepIsNoticed changes the page, each time in one way.
func TestPageOutOfStepIsNoticed(t *testing.T) {
	text := expect.Get(os.ReadFile(page))(t)
	for _, test := range []struct{ from, to, want string }{
		{"`defects/stale_filter_state`, ", "", "defects/stale_filter_state is not on the page"},
		{"`loops/circle`", "`loops/square`", "there is no story loops/square"},
		{"d7_need.txt", "d9_need.txt", "pkg/planner/daemonset/testdata/d9_need.txt"},
		{"TestHoldEndsWhenItsNodeRefusesThePod", "TestKnots", "test/framework has no TestKnots"},
		{"d6_single.txt", "d6_multiple.txt", "pkg/planner/daemonset/testdata/d6_single.txt is not on the page"},
		{"node_bound_delay.txt", "node_bound.txt", "pkg/store/testdata/node_bound_delay.txt is not on the page"},
		{"| D8 no victim", "| No victim", "rule D8 is not on the page"},
		{"| 3-5 |", "| 3 and 5 |", "laws 3 and 5 are there 0 times"},
		{"| 2-5 | `pairs/law2_law5` |", "| 2-5 |  |", "of laws 2 and 5 nothing is said"},
		{"| 6-7 | `pairs/law6_law7` |", "| 6-7 | `pairs/law5_law6` |", "laws 6 and 7 have a story that is not named"},
	} {
		changed := strings.ReplaceAll(string(text), test.from, test.to)
		expect.That(t, changed != string(text), "the page has no %q", test.from)
		expect.Says(t, strings.Join(staleOnPage(t, changed), "\n"), test.want)
	}
}

func staleOnPage(t *testing.T, text string) []string {
	t.Helper()
	told := storyNames(t)
	var wrong, named []string
	for _, m := range pageStory.FindAllStringSubmatch(text, -1) {
		if named = append(named, m[1]); !slices.Contains(told, m[1]) {
			wrong = append(wrong, "there is no story "+m[1])
		}
	}
	for _, name := range told {
		if !slices.Contains(named, name) {
			wrong = append(wrong, name+" is not on the page")
		}
	}
	for _, m := range pageFile.FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	for _, m := range pageTest.FindAllStringSubmatch(text, -1) {
		if !hasTest(t, filepath.Join(root, m[1]), m[2]) {
			wrong = append(wrong, m[1]+" has no "+m[2])
		}
	}
	wrong = append(wrong, missingCases(t, text)...)
	return append(wrong, stalePairs(text, told)...)
}

// missingCases lists what the page does not say of pods of DaemonSets: a rule, or a file of cases.
func missingCases(t *testing.T, text string) []string {
	t.Helper()
	var wrong []string
	rules := map[string]bool{}
	for _, m := range pageRule.FindAllStringSubmatch(text, -1) {
		rules[m[1]] = true
	}
	for rule := 1; rule <= 8; rule++ {
		if name := fmt.Sprint("D", rule); !rules[name] {
			wrong = append(wrong, "rule "+name+" is not on the page")
		}
	}
	for _, pattern := range []string{"pkg/planner/daemonset/testdata/*.txt", "pkg/store/testdata/node_bound*.txt"} {
		files := expect.Get(fs.Glob(os.DirFS(root), pattern))(t)
		if len(files) == 0 {
			t.Fatal("there are no files of cases", pattern)
		}
		for _, name := range files {
			if !strings.Contains(text, "`"+name+"`") {
				wrong = append(wrong, name+" is not on the page")
			}
		}
	}
	return wrong
}

// stalePairs lists what is wrong with the pairs of laws: each is there once, with
// its story if it has one, and with something else if not.
func stalePairs(text string, told []string) []string {
	var wrong []string
	rows := map[string][]string{}
	for _, m := range pagePair.FindAllStringSubmatch(text, -1) {
		rows[m[1]+m[2]] = append(rows[m[1]+m[2]], m[3])
	}
	for a := 1; a <= 7; a++ {
		for b := a + 1; b <= 7; b++ {
			said, story := rows[fmt.Sprintf("%d%d", a, b)], fmt.Sprintf("pairs/law%d_law%d", a, b)
			switch {
			case len(said) != 1:
				wrong = append(wrong, fmt.Sprintf("laws %d and %d are there %d times", a, b, len(said)))
			case strings.TrimSpace(said[0]) == "":
				wrong = append(wrong, fmt.Sprintf("of laws %d and %d nothing is said", a, b))
			case slices.Contains(told, story) && !strings.Contains(said[0], "`"+story+"`"):
				wrong = append(wrong, fmt.Sprintf("laws %d and %d have a story that is not named", a, b))
			}
		}
	}
	return wrong
}

// storyNames are the files of all stories, as the page has them.
func storyNames(t *testing.T) []string {
	t.Helper()
	files := expect.Get(fs.Glob(os.DirFS(stories), "*/*"))(t)
	for i, file := range files {
		files[i] = strings.TrimSuffix(file, ".txt")
	}
	return files
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files := expect.Get(filepath.Glob(filepath.Join(dir, "*_test.go")))(t)
	return slices.ContainsFunc(files, func(file string) bool {
		return strings.Contains(string(expect.Get(os.ReadFile(file))(t)), "\nfunc "+name+"(t *testing.T)")
	})
}
