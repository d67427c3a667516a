package reasons

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// constant is a constant of type Code as it stands in the source.
var constant = regexp.MustCompile(`(?m)^(?:\t|const )(\w+)\s+Code = "(\w+)"`)

// TestTableHasEveryDeclaredCode: in the order of the constants, the way of a pod. Each constant
// is named like its value.
func TestTableHasEveryDeclaredCode(t *testing.T) {
	var declared, listed []Code
	for _, source := range expect.Get(filepath.Glob("*.go"))(t) {
		if strings.HasSuffix(source, "_test.go") {
			continue
		}
		text := string(expect.Get(os.ReadFile(source))(t))
		constants := constant.FindAllStringSubmatch(text, -1)
		expect.Same(t, "codes that are read in "+source, strings.Count(text, " Code = \""), len(constants))
		for _, c := range constants {
			expect.Same(t, "a constant and its value", c[2], c[1])
			declared = append(declared, Code(c[2]))
		}
	}
	for _, entry := range Table() {
		listed = append(listed, entry.Code)
	}
	expect.Same(t, "constants of type Code (-) and the table (+) differ", declared, listed)
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
			case strings.Contains(text, "%!") || strings.ContainsAny(text, "\n|"):
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
		"a bar":            {"Better", "It is a|b.", "Nothing."}, // it would end a cell of the page
		"small letter":     {"Better", "it is better.", "Nothing."},
	} {
		expect.That(t, checkTable([]Entry{good, bad}) != nil, "%s: not found", name)
	}
}

func TestTableIsACopy(t *testing.T) {
	Table()[0] = Entry{}
	expect.That(t, Table()[0].Code != "", "a caller wrote to the table")
}

func TestExplain(t *testing.T) {
	for _, want := range Table() {
		got, known := Explain(want.Code)
		expect.That(t, known && got == want, "%s: got %+v, %t", want.Code, got, known)
	}
	got, known := Explain("NotACode")
	expect.That(t, !known && got == Entry{}, "unknown code: got %+v, %t", got, known)
}

// TestReason: the text has its arguments as they are, and the zero reason is none.
func TestReason(t *testing.T) {
	r := New(OverMax, "queue %s has %d of %d.", "root.100%d", 7, 8)
	expect.Same(t, "reason", Reason{Code: OverMax, Text: "queue root.100%d has 7 of 8."}, r)
	expect.Same(t, "in one line", "OverMax: queue root.100%d has 7 of 8.", r.String())
	if none := (Reason{}); r.None() || !none.None() || none.String() != "" {
		t.Errorf("None is %t, of the zero reason %t; String %q", r.None(), none.None(), none)
	}
}

func TestNewPanicsOnACodeThatIsNotInTheTable(t *testing.T) {
	for _, code := range []Code{"", "NotACode", "overmax"} {
		func() {
			defer func() {
				if message := fmt.Sprint(recover()); !strings.Contains(message, `"`+string(code)+`"`) {
					t.Errorf("panic %q does not name %q", message, code)
				}
			}()
			New(code, "never seen")
		}()
	}
}

// TestReasonsThatDoNotPassHaveARemedy: where no waiting helps, the remedy is another one.
func TestReasonsThatDoNotPassHaveARemedy(t *testing.T) {
	for _, code := range []Code{OverMax, OverUserLimit, OverGroupLimit} {
		passes, never := New(code, "queue root.a: requested 3, max 2"), New(code, "queue root.a: requested 3, max 2").NeverIf(true)
		expect.That(t, strings.HasPrefix(passes.Remedy(), "Wait") && !passes.Never,
			"%s passes, and people are told %q", code, passes.Remedy())
		expect.That(t, strings.HasPrefix(never.Remedy(), "Ask for less, or raise") && never.Never,
			"%s does not pass, and people are told %q", code, never.Remedy())
		want := "queue root.a: requested 3, max 2: it can never start, because the request alone is more"
		expect.Same(t, "sentence", want, never.Text)
	}
	expect.Same(t, "remedy of a code that is not in the table", "", (Reason{Code: "Other"}).Remedy())
}
