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

// words counts what the comments and the identifiers of Go files say.
type words struct {
	all    int
	people []string // words for people, with their places
	coined []string // identifiers that the field has another word for
}

var (
	word   = regexp.MustCompile(`[A-Za-z']+`)
	people = regexp.MustCompile(`^(?i:who|whom|nobody|somebody|everybody)$`)
	coined = regexp.MustCompile(`^(annex|scenery|toil|roused|chronicle|census|probing|twins|skim|slab|turnstile|overtaken|hopeless|outgrown|Forgo|PutOff|CallOff|lend|[Rr]ehears(e|al|ed|ing)|attend|tidy|invite(All)?|[Ww]itness|imagine|inLine|Asking|OwnAsks|NotOwed|putOff)$`)
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
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && coined.MatchString(id.Name) {
			w.coined = append(w.coined, files.Position(id.Pos()).String()+": "+id.Name)
		}
		return true
	})
}

// tooManyPeople tells whether more than one word in 5,000 is one for people. Comments say
// of things what they do; people are users and administrators.
func (w *words) tooManyPeople() bool { return len(w.people)*5000 > w.all }

// TestWordsOfTheCode: comments speak of things as things, and identifiers have the words
// that a maintainer of kube-scheduler would expect.
func TestWordsOfTheCode(t *testing.T) {
	var w words
	for _, dir := range []string{"apis", "cmd", "internal", "pkg"} {
		err := filepath.WalkDir(filepath.Join("..", dir), func(name string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") && !strings.Contains(name, "testdata") {
				w.read(t, name, nil)
			}
			return err
		})
		expect.OK(t, err)
	}
	if w.tooManyPeople() {
		t.Errorf("%d words for people in %d words of comments, at most 1 in 5,000:\n%s", len(w.people), w.all, strings.Join(w.people, "\n"))
	}
	if len(w.coined) > 0 {
		t.Errorf("identifiers that the field has other words for:\n%s", strings.Join(w.coined, "\n"))
	}
}

// TestWordsAreFound plants words of both kinds.
func TestWordsAreFound(t *testing.T) {
	var w words
	w.read(t, "a.go", "// Package a waits for whom nobody knows.\npackage a\n\nvar twins int\n")
	if !w.tooManyPeople() || len(w.people) != 2 || len(w.coined) != 1 {
		t.Errorf("found %q and %q", w.people, w.coined)
	}
}
