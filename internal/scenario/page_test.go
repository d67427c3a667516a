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

// These are the names on the page that can go stale.
var (
	pageStory = regexp.MustCompile("`((?:laws|pairs|loops|defects)/[a-z0-9_]+)`")
	pageFile  = regexp.MustCompile("`((?:pkg|test)/[a-z0-9_/]+\\.txt)`")
	pageTest  = regexp.MustCompile("`((?:pkg|test)/[a-z/]+) (Test[A-Za-z]+)`")
)

// TestPageIsInStep: each name on the page is there, and each story, rule and pair of laws is on the page.
func TestPageIsInStep(t *testing.T) {
	text := expect.Get(os.ReadFile(page))(t)
	expect.Same(t, "what is stale on the page", []string(nil), staleOnPage(t, string(text)))
}

// TestPageOutOfStepIsNoticed changes the page, each time in one way.
func TestPageOutOfStepIsNoticed(t *testing.T) {
	text := expect.Get(os.ReadFile(page))(t)
	for _, test := range []struct{ from, to, want string }{
		{"`defects/stale_filter_state`, ", "", "defects/stale_filter_state.txt is not on the page"},
		{"`loops/circle`", "`loops/square`", "there is no pkg/planner/testdata/loops/square.txt"},
		{"d7_need.txt", "d9_need.txt", "there is no pkg/planner/daemonset/testdata/d9_need.txt"},
		{"TestHoldEndsWhenItsNodeRefusesThePod", "TestKnots", "test/framework has no TestKnots"},
		{"node_bound_delay.txt", "node_bound.txt", "pkg/store/testdata/node_bound_delay.txt is not on the page"},
		{"d6_single.txt", "d6_multiple.txt", "pkg/planner/daemonset/testdata/d6_single.txt is not on the page"},
		{"| D8 no victim", "| No victim", "no case is named for D8"},
		{"| 3-5 |", "| 3 and 5 |", "not once on the page: 3-5 [a-z]"},
		{"| 2-5 | `pairs/law2_law5` |", "| 2-5 |  |", "not once on the page: 2-5 `pairs/law2_law5`"},
		{"| 6-7 | `pairs/law6_law7` |", "| 6-7 | `pairs/law5_law6` |", "not once on the page: 6-7 `pairs/law6_law7`"},
	} {
		changed := strings.ReplaceAll(string(text), test.from, test.to)
		expect.That(t, changed != string(text), "the page has no %q", test.from)
		expect.Says(t, strings.Join(staleOnPage(t, changed), "\n"), test.want)
	}
}

func staleOnPage(t *testing.T, text string) (wrong []string) {
	t.Helper()
	var named, all []string
	for _, m := range pageStory.FindAllStringSubmatch(text, -1) {
		named = append(named, "pkg/planner/testdata/"+m[1]+".txt")
	}
	for _, m := range pageFile.FindAllStringSubmatch(text, -1) {
		named = append(named, m[1])
	}
	for _, name := range named {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			wrong = append(wrong, "there is no "+name)
		}
	}
	for _, pattern := range []string{"pkg/planner/testdata/*/*.txt", "pkg/planner/daemonset/testdata/*.txt", "pkg/store/testdata/node_bound*.txt"} {
		files := expect.Get(fs.Glob(os.DirFS(root), pattern))(t)
		expect.That(t, len(files) > 0, "there is no %s", pattern)
		all = append(all, files...)
		for _, name := range files {
			if !slices.Contains(named, name) {
				wrong = append(wrong, name+" is not on the page")
			}
		}
	}
	for _, m := range pageTest.FindAllStringSubmatch(text, -1) {
		if !hasTest(t, filepath.Join(root, m[1]), m[2]) {
			wrong = append(wrong, m[1]+" has no "+m[2])
		}
	}
	said := func(row, what string) int {
		return len(regexp.MustCompile(`(?m)^\| `+row+`[^|]*\|[^|]*`+what).FindAllString(text, -1))
	}
	for rule := 1; rule <= 8; rule++ {
		if row := fmt.Sprint("D", rule); said(row, "`") == 0 {
			wrong = append(wrong, "no case is named for "+row)
		}
	}
	for a := 1; a <= 7; a++ {
		for b := a + 1; b <= 7; b++ {
			row, what := fmt.Sprintf("%d-%d ", a, b), "[a-z]"
			if story := fmt.Sprintf("pairs/law%d_law%d", a, b); slices.Contains(all, "pkg/planner/testdata/"+story+".txt") {
				what = "`" + story + "`"
			}
			if said(row, what) != 1 {
				wrong = append(wrong, "not once on the page: "+row+what)
			}
		}
	}
	return wrong
}

func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files := expect.Get(filepath.Glob(filepath.Join(dir, "*_test.go")))(t)
	return slices.ContainsFunc(files, func(file string) bool {
		return strings.Contains(string(expect.Get(os.ReadFile(file))(t)), "\nfunc "+name+"(t *testing.T)")
	})
}
