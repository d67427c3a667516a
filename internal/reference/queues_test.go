package reference

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
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

// parsed are the keys that the parser itself reports for a mapping.
func parsed(t *testing.T, m mapping) []string {
	t.Helper()
	_, err := config.Parse(fmt.Appendf(nil, m.frame, "zzz: 1"))
	found := knownKeys.FindStringSubmatch(fmt.Sprint(err))
	if found == nil {
		t.Fatalf("%s: an unknown key is accepted, or the frame does not fit: %v", m.title, err)
	}
	return strings.Split(found[1], ", ")
}

// key is a key of a mapping, or a property of a queue, as the page has it.
type key struct {
	name, standard string // standard is the default
	ignored        bool
}

// keys are those that a section of the page lists.
func keys(t *testing.T, heading string) []key {
	t.Helper()
	var out []key
	for _, cells := range rows(section(t, readPage(t), heading)) {
		name, ignored := strings.CutSuffix(cells[0], " †")
		out = append(out, key{strings.Trim(name, "`"), cells[2], ignored})
	}
	return out
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

func names(keys []key) []string {
	var out []string
	for _, k := range keys {
		out = append(out, k.name)
	}
	return out
}

func TestSectionsHaveTheKeysOfTheParser(t *testing.T) {
	for _, m := range mappings() {
		expect.Same(t, m.title, []string(nil), missing(names(keys(t, "### "+m.title)), parsed(t, m)))
	}
	expect.Same(t, "sections with keys", len(mappings()), strings.Count(readPage(t), "\n| key | "))
	// The check finds planted differences of both kinds.
	expect.Same(t, "one too many and one missing", 2, len(missing([]string{"a", "b"}, []string{"b", "c"})))
}

// content is a mapping with an example.
func content(m mapping, example string) string {
	parts := []string{example}
	for _, need := range m.needs {
		name, _, _ := strings.Cut(need, ":")
		if !strings.HasPrefix(example, name+":") && !strings.Contains(example, ", "+name+":") {
			parts = append(parts, need)
		}
	}
	return strings.Join(parts, ", ")
}

// judged tells whether the mark of a key is right: ignored keys give a warning, others none.
func judged(m mapping, example string, ignored bool) error {
	spec, err := config.Parse(fmt.Appendf(nil, m.frame, content(m, example)))
	if err != nil {
		return fmt.Errorf("%s: %s: %w", m.title, example, err)
	}
	if ignored != (len(spec.Warnings) > 0) {
		return fmt.Errorf("%s: %s is marked as without effect: %t, and the warnings are: %v",
			m.title, example, ignored, spec.Warnings)
	}
	return nil
}

func TestIgnoredKeysAreMarked(t *testing.T) {
	for _, m := range mappings() {
		for _, k := range keys(t, "### "+m.title) {
			i := slices.IndexFunc(m.examples, func(example string) bool { return strings.HasPrefix(example, k.name+":") })
			if i < 0 {
				// Nothing warns of checksum.
				expect.That(t, k.name == "checksum", "%s: %s has no example", m.title, k.name)
				continue
			}
			expect.Holds(t, judged(m, m.examples[i], k.ignored))
			expect.Fails(t, judged(m, m.examples[i], !k.ignored), "is marked") // the check finds a wrong mark
		}
	}
}

// constants returns the values of the text constants of a file with this prefix of the name.
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
	properties := keys(t, "### Properties of a queue")
	expect.Same(t, "properties", []string(nil), missing(names(properties), real))
	expect.That(t, len(real) >= 9, "only %q were found", real)
	policies := func(properties string) (config.Policies, int) {
		spec := expect.Get(config.Parse(fmt.Appendf(nil, queueFrame, "name: a, properties: {"+properties+"}")))(t)
		return spec.Root.Children[0].Policies, len(spec.Warnings)
	}
	none, _ := policies("")
	for _, p := range properties {
		same, _ := policies(p.name + ": " + strconv.Quote(p.standard))
		expect.That(t, same == none, "%s: %q is not the default: %+v", p.name, p.standard, same)
		other, warnings := policies(p.name + ": " + strconv.Quote(otherValues[p.name]))
		expect.That(t, other != none || p.ignored, "%s: %q changes nothing", p.name, otherValues[p.name])
		expect.Same(t, p.name+" is marked as without effect, as warnings say", warnings > 0, p.ignored)
	}
}

var marked = regexp.MustCompile(`(yunikorn\.apache\.org|paddock\.io)/[A-Za-z][A-Za-z.-]*[A-Za-z]`)

func TestMarksAreThoseOfTheSource(t *testing.T) {
	read, written, _ := strings.Cut(section(t, readPage(t), "## Labels and annotations"), "Written by the scheduler:")
	first := func(text string) (out []string) {
		for _, cells := range rows(text) {
			out = append(out, strings.Trim(cells[0], "`"))
		}
		return out
	}
	real := append(constants(t, "../../pkg/queues/placement/keys.go", "Key"), constants(t, "../../pkg/informer/preemption.go", "AllowPreemption")...)
	real = append(real, informer.OriginatorAnnotation, informer.Coordinator)
	for _, r := range informer.Roles {
		real = append(real, r.Label)
		row := fmt.Sprintf("\n| `%s` | Pod | label | `%s` makes the pod an originator (%s), ", r.Label, r.Value, r.Of)
		expect.Says(t, read, row)
	}
	expect.Same(t, "roles", len(informer.Roles), strings.Count(read, "` makes the pod an originator ("))
	files := expect.Get(filepath.Glob("../../manifests/admission/*/*.yaml"))(t)
	for _, file := range append(files, "../../manifests/admission/validate.yaml") {
		text := expect.Get(os.ReadFile(file))(t)
		real = append(real, marked.FindAllString(string(text), -1)...)
	}
	expect.Same(t, "labels and annotations", []string(nil), missing(first(read), real))
	expect.Same(t, "conditions", []string{reasons.AdmittedCondition, reservations.HeldCondition}, first(written))
}

// mapping is a mapping of queues.yaml. A section of the page lists its keys.
type mapping struct {
	title string   // of the section
	frame string   // a document with "%s" in place of the content of the mapping
	needs []string // keys, as YAML, without which it is invalid
	// examples have each key with a value, as YAML in one line, maybe followed by other
	// keys that it needs.
	examples []string
}

const (
	queueFrame = "partitions: [{queues: [{%s}]}]"
	rootFrame  = "partitions: [{%s}]"
)

// mappings are all mappings of queues.yaml from the outside to the inside.
func mappings() []mapping {
	return []mapping{
		{"Document", "{%s}", nil, []string{"partitions: [{queues: [{name: a}]}]"}},
		{"Partition", rootFrame, []string{"queues: [{name: a}]"}, []string{
			"name: default", "queues: [{name: a}]", "placementrules: [{name: provided}]", "limits: [{users: [ann], maxapplications: 1}]",
			"preemption: {enabled: false}", "nodesortpolicy: {type: fair}", "usergroupresolver: {type: os}",
		}},
		{"Queue", queueFrame, []string{"name: a"}, []string{
			"name: a", "parent: true", "resources: {max: {vcore: 2}}", "maxapplications: 3", "properties: {preemption.policy: fence}",
			"submitacl: \"ann,bob dev\"", "adminacl: ann", "childtemplate: {maxapplications: 2}, parent: true",
			"limits: [{users: [ann], maxapplications: 1}]", "queues: [{name: b}]",
		}},
		{"Resources of a queue", "partitions: [{queues: [{name: a, resources: {%s}}]}]", nil, []string{
			"guaranteed: {vcore: 4, memory: 16Gi}", "max: {vcore: 8, nvidia.com/gpu: 2}",
		}},
		{"Child template", "partitions: [{queues: [{name: a, parent: true, childtemplate: {%s}}]}]", nil, []string{
			"maxapplications: 3", "properties: {preemption.delay: 5s}", "resources: {max: {vcore: 2}}",
		}},
		{"Limit of users and groups", "partitions: [{queues: [{name: a, limits: [{%s}]}]}]", []string{"users: [ann]", "maxapplications: 2"}, []string{
			"limit: what ann may use", "users: [ann]", "groups: [dev]", "maxresources: {vcore: 2}", "maxapplications: 2",
		}},
		{"Placement rule", "partitions: [{queues: [{name: a}], placementrules: [{%s}]}]", []string{"name: user", "create: true"}, []string{
			"name: user", "create: true", "value: root.a, name: fixed", "filter: {users: [ann]}", "parent: {name: user, create: true}",
		}},
		{
			"Filter of a placement rule", "partitions: [{queues: [{name: a}], placementrules: [{name: user, create: true, filter: {%s}}]}]", []string{"groups: [dev]"},
			[]string{"type: deny", "users: [ann]", "groups: [dev]"},
		},
		{"Preemption of a partition", "partitions: [{queues: [{name: a}], preemption: {%s}}]", nil, []string{"enabled: false", "quotapreemptionenabled: true"}},
		{"Node sort policy", "partitions: [{queues: [{name: a}], nodesortpolicy: {%s}}]", nil, []string{"type: fair", "resourceweights: {vcore: 1.5}"}},
		{"User and group resolver", "partitions: [{queues: [{name: a}], usergroupresolver: {%s}}]", nil, []string{"type: os"}},
	}
}

// otherValues are, by property of a queue, values other than the default.
var otherValues = map[string]string{
	"application.sort.policy": "fair", "application.sort.priority": "disabled",
	"priority.policy": "fence", "priority.offset": "10",
	"preemption.policy": "fence", "preemption.delay": "5s",
	"application.unschedasks.backoff": "3", "application.unschedasks.backoff.delay": "10s", "quota.preemption.delay": "10s",
}
