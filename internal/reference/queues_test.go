package reference

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

var knownKeys = regexp.MustCompile(`is not a known key: use (.*)`)

// parsed are the keys that the parser itself reports for a section.
func parsed(t *testing.T, s Section) []string {
	t.Helper()
	_, err := config.Parse(fmt.Appendf(nil, s.Frame, "zzz: 1"))
	if err == nil {
		t.Fatalf("%s: an unknown key is accepted", s.Title)
	}
	found := knownKeys.FindStringSubmatch(err.Error())
	if found == nil {
		t.Fatalf("%s: the frame does not fit: %v", s.Title, err)
	}
	return strings.Split(strings.SplitN(found[1], "\n", 2)[0], ", ")
}

// missing lists what is in only one of two lists, in any order.
func missing(documented, real []string) (out []string) {
	for _, name := range documented {
		if !slices.Contains(real, name) {
			out = append(out, name+" is on the page and not known")
		}
	}
	for _, name := range real {
		if !slices.Contains(documented, name) {
			out = append(out, name+" is known and not on the page")
		}
	}
	return out
}

func names(keys []Key) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.Name
	}
	return out
}

func TestSectionsHaveTheKeysOfTheParser(t *testing.T) {
	for _, s := range Sections() {
		for _, wrong := range missing(names(s.Keys), parsed(t, s)) {
			t.Errorf("%s: %s", s.Title, wrong)
		}
	}
	// The check finds planted differences of both kinds.
	if got := missing([]string{"a", "b"}, []string{"b", "c"}); len(got) != 2 {
		t.Errorf("one too many and one missing give %q", got)
	}
}

// warned is the warnings of the parser; it fails if the document is refused.
func warned(document string) ([]config.Problem, error) {
	spec, err := config.Parse([]byte(document))
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, document)
	}
	return spec.Warnings, nil
}

// content is a mapping of the section with the example of a key.
func content(s Section, k Key) string {
	parts := []string{k.Example}
	for _, need := range s.Needs {
		name, _, _ := strings.Cut(need, ":")
		if !strings.HasPrefix(k.Example, name+":") && !strings.Contains(k.Example, ", "+name+":") {
			parts = append(parts, need)
		}
	}
	return strings.Join(parts, ", ")
}

// judged tells whether the mark of a key is right: ignored keys give a warning, others
// none.
func judged(s Section, k Key) error {
	if k.Example == "" {
		return nil
	}
	warnings, err := warned(fmt.Sprintf(s.Frame, content(s, k)))
	switch {
	case err != nil:
		return err
	case k.Ignored && len(warnings) == 0:
		return errors.New("is marked as without effect, and nothing warns of it")
	case !k.Ignored && len(warnings) > 0:
		return fmt.Errorf("is not marked as without effect, and there are warnings: %v", warnings)
	}
	return nil
}

func TestIgnoredKeysAreMarked(t *testing.T) {
	for _, s := range Sections() {
		for _, k := range s.Keys {
			if err := judged(s, k); err != nil {
				t.Errorf("%s: %s: %v", s.Title, k.Name, err)
			}
			if k.Example != "" && !strings.HasPrefix(k.Example, k.Name+":") {
				t.Errorf("%s: %s has example %q", s.Title, k.Name, k.Example)
			}
			k.Ignored = !k.Ignored // the check finds a wrong mark
			if err := judged(s, k); err == nil && k.Example != "" {
				t.Errorf("%s: %s: a wrong mark goes unseen", s.Title, k.Name)
			}
		}
	}
}

// constants returns the values of the text constants of a file with this prefix of the
// name.
func constants(t *testing.T, path, prefix string) []string {
	t.Helper()
	file := expect.Get(parser.ParseFile(token.NewFileSet(), path, nil, 0))(t)
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, prefix) || len(spec.Values) == 0 {
			return true
		}
		if text := constant(spec.Values[0]); text != "" {
			out = append(out, text)
		}
		return true
	})
	return out
}

// constant is the value of a text, or of Domain followed by one.
func constant(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value) // numbers give no text
		return text
	case *ast.BinaryExpr:
		return placement.Domain + constant(e.Y)
	}
	return ""
}

func TestPropertiesAreThoseOfTheParser(t *testing.T) {
	real := constants(t, "../../pkg/queues/config/properties.go", "prop")
	for _, wrong := range missing(names(Properties()), real) {
		t.Error(wrong)
	}
	if len(real) < 9 {
		t.Errorf("only %q were found", real)
	}
	policies := func(properties string) (config.Policies, int) {
		spec := expect.Get(config.Parse(fmt.Appendf(nil, queueFrame, "name: a, properties: {"+properties+"}")))(t)
		return spec.Root.Children[0].Policies, len(spec.Warnings)
	}
	none, _ := policies("")
	for _, p := range Properties() {
		if same, _ := policies(p.Name + ": " + strconv.Quote(p.Default)); same != none {
			t.Errorf("%s: %q is not the default: %+v", p.Name, p.Default, same)
		}
		other, warnings := policies(p.Name + ": " + strconv.Quote(p.Example))
		if other == none && !p.Ignored {
			t.Errorf("%s: %q changes nothing", p.Name, p.Example)
		}
		if (warnings > 0) != p.Ignored {
			t.Errorf("%s: %d warnings, marked as without effect: %t", p.Name, warnings, p.Ignored)
		}
	}
}

var marked = regexp.MustCompile(`(yunikorn\.apache\.org|paddock\.io)/[A-Za-z][A-Za-z.-]*[A-Za-z]`)

func TestMarksAreThoseOfTheSource(t *testing.T) {
	documented := map[string]bool{}
	for _, m := range Marks() {
		documented[m.Name] = true
	}
	real := map[string]bool{}
	for _, name := range constants(t, "../../pkg/queues/placement/keys.go", "Key") {
		real[name] = true
	}
	for _, name := range constants(t, "../../pkg/informer/preemption.go", "AllowPreemption") {
		real[name] = true
	}
	real[informer.OriginatorAnnotation], real[informer.Coordinator] = true, true
	for _, r := range informer.Roles {
		real[r.Label] = true
	}
	files := expect.Get(filepath.Glob("../../manifests/admission/*/*.yaml"))(t)
	for _, file := range append(files, "../../manifests/admission/validate.yaml") {
		text := expect.Get(os.ReadFile(file))(t)
		for _, name := range marked.FindAllString(string(text), -1) {
			real[name] = true
		}
	}
	for _, wrong := range missing(slices.Collect(maps.Keys(documented)), slices.Collect(maps.Keys(real))) {
		t.Error(wrong)
	}
	conditions := []string{Conditions()[0].Name, Conditions()[1].Name}
	expect.Same(t, "conditions", []string{reasons.AdmittedCondition, reservations.HeldCondition}, conditions)
}
