package reasons

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// TestTableHasEveryDeclaredCode reads the package's source, so that a constant without an
// entry in the table is found.
func TestTableHasEveryDeclaredCode(t *testing.T) {
	var listed []declaredCode
	names := map[Code]string{}
	declared := declaredCodes(t)
	for _, c := range declared {
		names[c.code] = c.name
	}
	for _, entry := range Table() {
		listed = append(listed, declaredCode{names[entry.Code], entry.Code})
	}
	// In the same order, too: the way of a pod.
	expect.Same(t, "constants of type Code (-) and the table (+) differ", declared, listed, cmp.AllowUnexported(declaredCode{}))
	if len(declared) == 0 {
		t.Error("no constant was found in the source")
	}
}

// declaredCode is a constant of type Code as it stands in the source.
type declaredCode struct {
	name string
	code Code
}

func declaredCodes(t *testing.T) []declaredCode {
	t.Helper()
	sources := expect.Get(filepath.Glob("*.go"))(t)
	var out []declaredCode
	for _, source := range sources {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		file := expect.Get(parser.ParseFile(token.NewFileSet(), source, nil, 0))(t)
		out = append(out, codesIn(t, file)...)
	}
	return out
}

func codesIn(t *testing.T, file *ast.File) []declaredCode {
	t.Helper()
	var out []declaredCode
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Code" {
			return true
		}
		for i, name := range spec.Names {
			value, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatalf("constant %s: %v", name.Name, err)
			}
			out = append(out, declaredCode{name.Name, Code(value)})
		}
		return true
	})
	return out
}

func TestCodesAreNamedLikeTheirConstants(t *testing.T) {
	for _, c := range declaredCodes(t) {
		expect.Same(t, "a constant and its value", string(c.code), c.name)
	}
}

// A code is an event reason and a metric label.
var codeForm = regexp.MustCompile(`^[A-Z][A-Za-z]{0,62}$`)

// checkTable returns what is wrong with a table.
func checkTable(entries []Entry) error {
	var errs []error
	fail := func(code Code, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", code, fmt.Sprintf(format, args...)))
	}
	codes, meanings := map[Code]bool{}, map[string]bool{}
	for _, e := range entries {
		if codes[e.Code] {
			fail(e.Code, "is listed twice")
		}
		if meanings[e.Meaning] {
			fail(e.Code, "means the same as another code")
		}
		codes[e.Code], meanings[e.Meaning] = true, true
		if !codeForm.MatchString(string(e.Code)) {
			fail(e.Code, "cannot be an event reason")
		}
		for kind, text := range map[string]string{"meaning": e.Meaning, "remedy": e.Remedy} {
			switch {
			case strings.TrimSpace(text) != text || text == "":
				fail(e.Code, "the %s is empty or has white space around it", kind)
			case !strings.HasSuffix(text, "."):
				fail(e.Code, "the %s does not end with a period", kind)
			case strings.Contains(text, "%!") || strings.Contains(text, "\n"):
				fail(e.Code, "the %s is not plain text", kind)
			case strings.ToUpper(text[:1]) != text[:1]:
				fail(e.Code, "the %s does not begin like a sentence", kind)
			}
		}
	}
	return errors.Join(errs...)
}

func TestTable(t *testing.T) {
	expect.Holds(t, checkTable(Table()))
}

// TestTableCheckFindsPlantedBugs shows that the check above is worth something.
func TestTableCheckFindsPlantedBugs(t *testing.T) {
	good := Entry{"Good", "It is good.", "Nothing."}
	expect.OK(t, checkTable([]Entry{good}))
	for name, bad := range map[string]Entry{
		"twice":            {"Good", "It is better.", "Nothing."},
		"same meaning":     {"Better", "It is good.", "Nothing."},
		"no code":          {"", "It is better.", "Nothing."},
		"not a reason":     {"not good", "It is better.", "Nothing."},
		"no period":        {"Better", "It is better", "Nothing."},
		"no remedy":        {"Better", "It is better.", ""},
		"space at the end": {"Better", "It is better.", "Nothing. "},
		"small letter":     {"Better", "it is better.", "Nothing."},
	} {
		if checkTable([]Entry{good, bad}) == nil {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestTableIsACopy(t *testing.T) {
	Table()[0] = Entry{}
	if Table()[0].Code == "" {
		t.Error("a caller wrote to the table")
	}
}

func TestExplain(t *testing.T) {
	for _, want := range Table() {
		if got, known := Explain(want.Code); !known || got != want {
			t.Errorf("%s: got %+v, %t", want.Code, got, known)
		}
	}
	if got, known := Explain("NotACode"); known || got != (Entry{}) {
		t.Errorf("unknown code: got %+v, %t", got, known)
	}
}
