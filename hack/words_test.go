package hack

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

type words struct {
	all    int
	people []string // words for people, with their places
	coined []string // identifiers and words of comments that the field has another word for
}

var (
	word   = regexp.MustCompile(`[A-Za-z']+`)
	people = regexp.MustCompile(`^(?i:who|whom|nobody|somebody|everybody)$`)
	// ofTests are names of tests with such a word.
	ofTests = regexp.MustCompile(`^(Test|Fuzz|Benchmark).*(Who|Nobody|Somebody|Everybody)(m?[A-Z_]|m?$)`)
	// coined are words that the code does not use in any case of letters, or in this one.
	coined = regexp.MustCompile(`^((?i:annex|scenery|toil|roused|stir|chronicle|journal|census|probing|twins?|skim|dig|slab|shelf|desk|lane|turnstile|` +
		`overtaken|hopeless|thrift|salvage|floor|outgrown|forgo|decline|putOff|callOff|giveUp|lend|rehears(e|al|ed|ing)|imagined?|onStage|` +
		`attend|tidy|invite(All)?|see|witness|inLine|mates|together|asking|scenes?|stance|outlook|route|lift|lead|fore(tell|told)|adopt(All)?|resume|` +
		`parked|cooling|settled?|renew(All)?|(planning)?worlds?|prospect|clearance|retrial|owes)|givenUp|register|Disrupted|StepCalledOff|OwnAsks|NotOwed|KeptBack|GroupNamed)$`)
	// coinedInCode are words that have an ordinary meaning in tests.
	coinedInCode = regexp.MustCompile(`^(apart|early|pool|seed|required|pace|owed|erred)$`)
	// coinedInStore are words that mean something else in the order of queues.
	coinedInStore = regexp.MustCompile(`^asks$`)
	// inComments are those of them that have no ordinary meaning in a comment.
	inComments = regexp.MustCompile(`(?i)\b(annex|scenery|toil|roused|stir|chronicle|journals?|census|probing|twins?|skim|dig|slab|shelf|desk|lane|` +
		`turnstile|hopeless|thrift|salvage|outgrown|forgo|rehears(e|al|ed|ing)|imagined?|onStage|inLine|mates|stance|foretell|foretold|` +
		`adopt(ed|s)?|parked|cooling|worlds?|required-node)\b`)
)

// read adds a file. Its text is nil where the file is to be read.
func (w *words) read(t *testing.T, name string, text any) {
	t.Helper()
	files := token.NewFileSet()
	f := expect.Get(parser.ParseFile(files, name, text, parser.ParseComments))(t)
	for _, group := range f.Comments {
		for _, found := range word.FindAllString(group.Text(), -1) {
			if w.all++; people.MatchString(found) {
				w.people = append(w.people, files.Position(group.Pos()).String()+": "+found)
			}
		}
		for _, found := range inComments.FindAllString(group.Text(), -1) {
			w.coined = append(w.coined, files.Position(group.Pos()).String()+": "+found)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		switch {
		case !ok:
		case ofTests.MatchString(id.Name):
			w.people = append(w.people, files.Position(id.Pos()).String()+": "+id.Name)
		case coined.MatchString(id.Name), coinedInCode.MatchString(id.Name) && !strings.HasSuffix(name, "_test.go"),
			coinedInStore.MatchString(id.Name) && strings.Contains(name, "pkg/store/"):
			w.coined = append(w.coined, files.Position(id.Pos()).String()+": "+id.Name)
		}
		return true
	})
}

// tooManyPeople tells whether more than one word in 5,000 is one for people. Comments say
// of things what they do; people are users and administrators.
func (w *words) tooManyPeople() bool { return len(w.people)*5000 > w.all }

// read reads the files below the directories that are tests, or those that are none.
func read(t *testing.T, tests bool, dirs ...string) words {
	t.Helper()
	var w words
	for _, name := range goFiles(t, tests, dirs...) {
		w.read(t, name, nil)
	}
	return w
}

// goFiles lists the test files below directories, or all other Go files there if tests is false.
func goFiles(t *testing.T, tests bool, dirs ...string) (out []string) {
	t.Helper()
	for _, dir := range dirs {
		expect.OK(t, filepath.WalkDir(filepath.Join("..", dir), func(name string, _ fs.DirEntry, err error) error {
			ofTests := strings.HasSuffix(name, "_test.go")
			if strings.HasSuffix(name, ".go") && ofTests == tests && !strings.Contains(name, "testdata") {
				out = append(out, name)
			}
			return err
		}))
	}
	return out
}

func (w *words) check(t *testing.T) {
	t.Helper()
	people := strings.Join(w.people, "\n")
	expect.That(t, !w.tooManyPeople(), "of %d words more than 1 in 5,000:\n%s", w.all, people)
	expect.That(t, len(w.coined) == 0,
		"words that the field has other ones for:\n%s", strings.Join(w.coined, "\n"))
}

// TestWordsOfTheCode: comments speak of things as things, and they and identifiers have the
// words that a maintainer of kube-scheduler would expect.
func TestWordsOfTheCode(t *testing.T) {
	w := read(t, false, "apis", "cmd", "internal", "pkg")
	w.check(t)
}

// TestWordsOfTests: the same for tests, and for their names.
func TestWordsOfTests(t *testing.T) {
	w := read(t, true, "apis", "cmd", "hack", "internal", "pkg", "test", "tools")
	expect.That(t, w.all >= 10_000, "only %d words of comments were read", w.all)
	w.check(t)
}

func TestWordsAreFound(t *testing.T) {
	var w words
	w.read(t, "a.go", "// Package a waits for whom nobody knows. Its pods are parked.\npackage a\n\nvar twins, seed int\n\nfunc TestEndOfWhoWaits() {}\n")
	w.read(t, "pkg/store/a.go", "package a\n\nvar asks int\n")
	w.read(t, "a_test.go", "package a\n\nvar World, seed int\n")
	expect.That(t, w.tooManyPeople() && len(w.people) == 3 && len(w.coined) == 5,
		"found %q and %q", w.people, w.coined)
}
