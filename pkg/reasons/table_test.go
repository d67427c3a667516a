package reasons

import (
	"errors"
	"flag"
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

// TestTable: the table is in order, and planted bugs in an entry are found, too.
func TestTable(t *testing.T) {
	expect.Holds(t, checkTable(Table()))
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
	none := Reason{}
	expect.That(t, !r.None() && none.None() && none.String() == "", "%q, of nothing %q", r, none)
}

func TestNewPanicsOnACodeThatIsNotInTheTable(t *testing.T) {
	for _, code := range []Code{"", "NotACode", "overmax"} {
		func() {
			defer func() { expect.Says(t, fmt.Sprint(recover()), `"`+string(code)+`"`) }()
			New(code, "never seen")
		}()
	}
}

// TestReasonsThatDoNotPassHaveARemedy: where no waiting helps, the remedy is another one.
func TestReasonsThatDoNotPassHaveARemedy(t *testing.T) {
	for _, code := range []Code{OverMax, OverUserLimit, OverGroupLimit} {
		passes := New(code, "queue root.a: requested 3, max 2")
		never := passes.NeverIf(true)
		expect.That(t, strings.HasPrefix(passes.Remedy(), "Wait") && !passes.Never,
			"%s passes, and people are told %q", code, passes.Remedy())
		expect.That(t, strings.HasPrefix(never.Remedy(), "Ask for less, or raise") && never.Never,
			"%s does not pass, and people are told %q", code, never.Remedy())
		want := "queue root.a: requested 3, max 2: it can never start, because the request alone is more"
		expect.Same(t, "sentence", want, never.Text)
	}
	expect.Same(t, "remedy of a code that is not in the table", "", (Reason{Code: "Other"}).Remedy())
}

var rewrite = flag.Bool("rewrite", false, "write the page of reasons as the table has them")

const pagePath = "../../docs/reasons.md"

const pageHead = `# Why a pod waits

<!-- Made from pkg/reasons/table.go: go test ./pkg/reasons -rewrite -->

A pod that waits carries the pod condition ` + "`" + AdmittedCondition + "`" + ` with status False. The
condition's reason is one of the codes below, and its message says which queue,
user or rule it is about, with the numbers of the case, and what to do. The same is
in an event of the pod, and in REST. ` + "`kubectl describe pod`" + ` shows both.

While a node is held for a pod, its condition ` + "`paddock.io/NodeHeld`" + ` is True, with reason
` + "`MakingRoom`" + ` or, of a DaemonSet pod, also ` + "`WaitingForRoom` or `RoomAwaited`" + `; it is False, with the reason why the hold ended, once
there is none any more.

Some codes are warnings for which nothing waits: they appear as events only, on
the pod, the namespace or the ConfigMap they are about.

| code | what it means | what to do |
|---|---|---|
`

// notes are added on the page to the meaning of a code that another condition of a pod has, too.
var notes = map[Code]string{
	SchedulingGated: " `kubectl get pods` shows this code also for pods without gates: a quota, the PodGroup or a missing queue keeps such a pod out of the " +
		"[demand](autoscalers.md#for-which-pods-nodes-are-added), see its condition `" + AdmittedCondition + "`.",
}

func page() string {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, e := range Table() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", e.Code, e.Meaning+notes[e.Code], e.Remedy)
	}
	return b.String()
}

func TestPageSaysWhatTheTableSays(t *testing.T) {
	want := page()
	if *rewrite {
		expect.OK(t, os.WriteFile(pagePath, []byte(want), 0o644))
	}
	got := expect.Get(os.ReadFile(pagePath))(t)
	expect.Same(t, "the page and the table (-) differ; make it anew with: go test ./pkg/reasons -rewrite", want, string(got))
}

const troubleshootingPath = "../../docs/troubleshooting.md"

// untold lists the codes of a table that a page has no section for, or one that
// does not say what the table says; and sections for codes that are not there.
func untold(page string, entries []Entry) []string {
	var out []string
	sections := map[string]string{}
	for i, section := range strings.Split(page, "\n### `") {
		if code, text, found := strings.Cut(section, "`\n"); i > 0 && found {
			sections[code] = text
		}
	}
	for _, e := range entries {
		text, found := sections[string(e.Code)]
		switch {
		case !found:
			out = append(out, string(e.Code)+" has no section")
		case !strings.Contains(text, e.Meaning):
			out = append(out, string(e.Code)+" does not say what it means: "+e.Meaning)
		case !strings.Contains(text, "**Do:** "+e.Remedy):
			out = append(out, string(e.Code)+" does not say what to do: "+e.Remedy)
		case strings.TrimSpace(text) == e.Meaning+"\n\n**Do:** "+e.Remedy:
			out = append(out, string(e.Code)+" says nothing that the table does not")
		}
		delete(sections, string(e.Code))
	}
	for code := range sections {
		out = append(out, code+" is no code any more")
	}
	slices.Sort(out)
	return out
}

func TestTroubleshootingHasEveryCode(t *testing.T) {
	page := expect.Get(os.ReadFile(troubleshootingPath))(t)
	for _, wrong := range untold(string(page), Table()) {
		t.Errorf("%s: %s", troubleshootingPath, wrong)
	}
}

func TestWrongTroubleshootingPagesAreFound(t *testing.T) {
	page := "# Page\n\n### `Good`\n\nIt is good.\n\nLook.\n\n**Do:** Nothing.\n\n### `Bare`\n\nIt is bare.\n\n**Do:** Less.\n\n### `Vague`\n\nHm.\n\n**Do:** More.\n\n### `Old`\n\nGone.\n"
	entries := []Entry{{"Good", "It is good.", "Nothing."}, {"Bare", "It is bare.", "Less."}, {"Vague", "It is clear.", "More."}, {"New", "It is new.", "Look."}}
	want := []string{"Bare says nothing that the table does not", "New has no section", "Old is no code any more", "Vague does not say what it means: It is clear."}
	expect.Same(t, "untold", want, untold(page, entries))
}

// notInAFile are the codes that no file of testdata has, each with its test.
var notInAFile = map[Code]string{
	ConfigurationInvalid:       "pkg/app TestInvalidAtTheStartOfALeader",
	ConfigurationUnreadable:    "pkg/app TestConfigMapsThatCannotBeRead",
	NamespaceAnnotationInvalid: "pkg/app TestInvalidAtTheStartOfALeader",
	NodeHeld:                   "pkg/plugins/reservation TestFilterKeepsTheNodeForItsHolder",
}

func notShown(codes []Code, text string) []Code {
	words := map[string]bool{}
	for _, word := range regexp.MustCompile(`[A-Z]\w+`).FindAllString(text, -1) {
		words[word] = true
	}
	return slices.DeleteFunc(slices.Clone(codes), func(c Code) bool { return words[string(c)] })
}

// TestEveryReasonIsShown: a script or a page of a test has each code, so its conditions
// are met somewhere.
func TestEveryReasonIsShown(t *testing.T) {
	var codes []Code
	for _, entry := range Table() {
		codes = append(codes, entry.Code)
	}
	var all strings.Builder
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(path, "/testdata/") {
			return err
		}
		text, err := os.ReadFile(filepath.Join("..", path))
		all.Write(text)
		return err
	})
	expect.OK(t, err)
	missing := notShown(codes, all.String())
	for code := range notInAFile {
		missing = slices.DeleteFunc(missing, func(c Code) bool { return c == code })
	}
	expect.That(t, len(missing) == 0, "no file of testdata has %v", missing)
	expect.Same(t, "a new code is not noticed", []Code{"New"}, notShown([]Code{"New", OverMax}, "OverMax, Newer"))
}
