package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"
)

// The files in testdata have these commands; the input of each is a document; lines count from 1.
//
//	parse             the dump and the warnings, or all problems
//	diff              two documents with a line ==== between them: the differences
//	summary           paths and kinds of all queues only
//	configmaps        see sourcesOf: the document and the options
//	quantity name=... one quantity per line: the amount and how it is written back
//	acl               one list per line, in double quotes

func TestValid(t *testing.T) {
	datadriven.Walk(t, "testdata/valid", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			parse := func(document string) *Spec { return expect.Get(Parse([]byte(document)))(t) }
			switch d.Cmd {
			case "parse":
				return showSpec(parse(d.Input))
			case "diff":
				before, after, _ := strings.Cut(d.Input+"\n", "====\n")
				return showDifferences(Diff(parse(before), parse(after)))
			case "summary":
				var b strings.Builder
				for q := range parse(d.Input).Root.All() {
					fmt.Fprintln(&b, q.Path, q.kind())
				}
				return b.String()
			case "configmaps":
				return showConfigMaps(d.Input)
			case "quantity":
				var name string
				d.ScanArgs(t, "name", &name)
				return eachLine(d.Input, func(line string) string { return showQuantity(name, line) })
			case "acl":
				return eachLine(d.Input, showACL)
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func TestInvalid(t *testing.T) {
	datadriven.Walk(t, "testdata/invalid", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "configmaps" {
				return showConfigMaps(d.Input)
			}
			spec, err := Parse([]byte(d.Input))
			var invalid *InvalidError
			if spec != nil || !errors.As(err, &invalid) || len(invalid.Problems) == 0 {
				d.Fatalf(t, "accepted, or refused without problems: %v", err)
			}
			return err.Error() + "\n"
		})
	})
}

func showSpec(spec *Spec) string {
	out := spec.Dump()
	for _, w := range spec.Warnings {
		out += fmt.Sprintf("warning: %s\n", w)
	}
	return out
}

func showDifferences(list []Difference) string {
	out := ""
	for _, d := range list {
		out += fmt.Sprintf("%s [%s]\n", d, d.Effect)
	}
	return cmp.Or(out, "no difference\n")
}

func eachLine(input string, show func(string) string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(input, "\n") {
		fmt.Fprintf(&b, "%s -> %s\n", line, show(line))
	}
	return b.String()
}

func showQuantity(name, line string) string {
	amount, err := quantity.Parse(name, strings.Trim(line, `"`))
	if err != nil {
		return "error: " + err.Error()
	}
	return fmt.Sprintf("%d, written %s", amount, quantity.Format(name, amount))
}

func showACL(line string) string {
	acl, ignored, err := parseACL(strings.Trim(line, `"`))
	if err != nil {
		return "error: " + err.Error()
	}
	if len(ignored) > 0 {
		return fmt.Sprintf("%v, ignored %q", acl, ignored)
	}
	return acl.String()
}

// sourcesOf reads lines "defaults data KEY=VALUE" and "configs binary KEY=VALUE";
// a value "gzip:TEXT" is compressed, "cut:TEXT" compressed and cut short, "zeros:N" is N zero bytes compressed, and
// "\n" is a line break.
func sourcesOf(input string) (defaults, configs Source) {
	defaults = Source{map[string]string{}, map[string][]byte{}}
	configs = Source{map[string]string{}, map[string][]byte{}}
	for line := range strings.Lines(input) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		key, value, _ := strings.Cut(fields[2], "=")
		value = strings.ReplaceAll(value, `\n`, "\n")
		source := defaults
		if fields[0] == "configs" {
			source = configs
		}
		if fields[1] == "data" {
			source.Data[key] = value
			continue
		}
		source.BinaryData[key] = packed(value)
	}
	return defaults, configs
}

func packed(value string) []byte {
	kind, text, _ := strings.Cut(value, ":")
	switch kind {
	case "gzip":
		return expect.Gzipped(text)
	case "cut":
		whole := expect.Gzipped(text)
		return whole[:len(whole)-6]
	case "zeros":
		n, err := strconv.Atoi(text)
		if err != nil {
			panic(err)
		}
		return expect.Gzipped(strings.Repeat("\x00", n))
	}
	return []byte(value)
}

func showConfigMaps(input string) string {
	document, options, err := FromConfigMaps(sourcesOf(input))
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	if len(document) > 100 {
		fmt.Fprintf(&b, "document: %d bytes\n", len(document))
	} else {
		fmt.Fprintf(&b, "document: %q\n", document)
	}
	for _, key := range slices.Sorted(maps.Keys(options)) {
		fmt.Fprintf(&b, "%s=%s\n", key, options[key])
	}
	return b.String()
}

// Dump writes the specification as text: one line per fact, queues in the order
// of [Queue.All], nothing that is at its default. Equal texts mean that
// both specifications do the same. Checksum and Warnings are not in it.
func (s *Spec) Dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "preemption %s\n", onOff(s.PreemptionEnabled))
	for i, rule := range s.Rules {
		fmt.Fprintf(&b, "rule %d: %s\n", i, rule)
	}
	for q := range s.Root.All() {
		q.dump(&b)
	}
	return b.String()
}

func (q *Queue) dump(b *strings.Builder) {
	fmt.Fprintf(b, "%s %s\n", q.Path, q.kind())
	line := func(key, value, unset string) {
		if value != unset {
			fmt.Fprintf(b, "  %s: %s\n", key, value)
		}
	}
	line("guaranteed", guaranteeText(q.Guaranteed), "none")
	line("max", limitText(q.Max), "unlimited")
	line("maxapplications", countText(q.MaxApplications), "unlimited")
	line("submit", q.SubmitACL.String(), "nobody")
	line("admin", q.AdminACL.String(), "nobody")
	line("properties", propertiesText(q.Properties), "none")
	line("policies", q.Policies.String(), "default")
	for _, l := range q.Limits {
		line("limit", l.String(), "")
	}
	line("template", q.Template.String(), "none")
}

// String renders what differs from [DefaultPolicies], "default" where nothing does.
func (p Policies) String() string {
	standard := DefaultPolicies()
	var parts []string
	add := func(differs bool, format string, args ...any) {
		if differs {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(p.ApplicationSort != standard.ApplicationSort, "sort=%s", p.ApplicationSort)
	add(p.PrioritySort != standard.PrioritySort, "prioritysort=%s", onOff(p.PrioritySort))
	add(p.PriorityFence, "priorityfence")
	add(p.PriorityOffset != 0, "offset=%d", p.PriorityOffset)
	add(p.Preemption != standard.Preemption, "preemption=%s", p.Preemption)
	add(p.PreemptionDelay != standard.PreemptionDelay, "delay=%v", p.PreemptionDelay)
	if len(parts) == 0 {
		return "default"
	}
	return strings.Join(parts, " ")
}

// FuzzParse expects of any text that it is refused with problems, or accepted with a
// specification that is the same each time.
func FuzzParse(f *testing.F) {
	for _, document := range seeds(f) {
		f.Add([]byte(document))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		spec, err := Parse(document)
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("refused without problems: %v", err)
			}
			lines := strings.Count(err.Error(), "\n") + 1
			expect.That(t, len(invalid.Problems) == lines, "%d problems: %q", len(invalid.Problems), err)
			return
		}
		again := expect.Get(Parse(document))(t)
		expect.That(t, again.Dump() == spec.Dump() && len(Diff(spec, again)) == 0, "it is read differently")
	})
}

// FuzzConfigMaps expects of what two ConfigMaps have that it is refused with the name of the ConfigMap,
// or gives a document that is one of theirs or unpacked from one, and options that are no documents.
func FuzzConfigMaps(f *testing.F) {
	packed := expect.Gzipped("partitions: []")
	f.Add("queues.yaml", "partitions: []", "queues.yaml.gz", packed)
	f.Add("service.policyGroup", "other", "other.yaml.gz", packed[:10])
	f.Add("queues.yaml.gz", "", "queues.yaml", []byte("\xff"))
	f.Add("log.level", "7", "", []byte{})
	f.Fuzz(func(t *testing.T, key, value, packedKey string, packed []byte) {
		configs := Source{Data: map[string]string{key: value}, BinaryData: map[string][]byte{packedKey: packed}}
		document, options, err := FromConfigMaps(Source{}, configs)
		if err != nil {
			expect.Fails(t, err, QueuesConfigMap)
			expect.That(t, document == nil && options == nil, "%q, %v", document, options)
			return
		}
		if text, err := unpack(packed); len(document) > 0 && string(document) != value && (err != nil || string(document) != text) {
			t.Errorf("document %q is in no ConfigMap", document)
		}
		for name := range options {
			expect.That(t, !strings.HasSuffix(name, documentSuffix), "option %q is a document", name)
		}
	})
}

func seeds(f *testing.F) (out []string) {
	for _, path := range expect.Get(filepath.Glob("testdata/*/*.txt"))(f) {
		content := string(expect.Get(os.ReadFile(path))(f))
		for block := range strings.SplitSeq(content, "\nparse\n") {
			if document, _, ok := strings.Cut(block, "----"); ok && !strings.HasPrefix(block, "#") {
				out = append(out, document)
			}
		}
	}
	expect.That(f, len(out) >= 50, "only %d seeds", len(out))
	return out
}

func TestNoDocumentIsDefault(t *testing.T) {
	for _, document := range []string{"", " \n\n", "# comment\n", "---\n"} {
		expect.Same(t, fmt.Sprintf("%q", document), Default(), expect.Get(Parse([]byte(document)))(t))
	}
	expect.That(t, Default().Root.SubmitACL.Allows("anybody", nil), "default does not let all submit")
}

func TestChecksum(t *testing.T) {
	const body = "partitions:\n- queues: []\n"
	const plain = "80952AE6B5B07FB9032B090B82D176482FEB24982D7F4DA32C85D723BA9AAC9C" // by sha256sum
	expect.Same(t, "hash", plain, Checksum([]byte(body)))
	for _, same := range []string{"checksum: ABC\n" + body, body + "checksum: ABC", body + "checksum:\n"} {
		expect.Same(t, "hash of "+same, plain, Checksum([]byte(same)))
	}
	for _, other := range []string{body + "# checksum: ABC\n", body + "\n", ""} {
		expect.That(t, Checksum([]byte(other)) != plain, "%q hashes to the same", other)
	}
	expect.Same(t, "of the spec", plain, expect.Get(Parse([]byte("checksum: x\n"+body)))(t).Checksum)
}

func TestProblemString(t *testing.T) {
	for want, p := range map[string]Problem{
		"text":                  {Text: "text"},
		"line 3: text":          {Line: 3, Text: "text"},
		"root.a: text":          {Path: "root.a", Text: "text"},
		"line 3: root: k: text": {3, "root", "k", "text"},
	} {
		expect.Same(t, "problem", want, p.String())
	}
}

// TestBombs gives documents that are small and would be large, or deep, once read, or
// what is to be said of them.
func TestBombs(t *testing.T) {
	const words, memory = 4 << 20, 600 << 20
	var laughs strings.Builder
	laughs.WriteString("partitions:\n- queues:\n  - &q0 {name: a}\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&laughs, "  - &q%d {name: a, queues: [*q%d, *q%d]}\n", i, i-1, i-1)
	}
	deep := "partitions: [{queues: " + strings.Repeat("[{name: a, queues: ", MaxDepth+1) + "[]" + strings.Repeat("}]", MaxDepth+1) + "}]"
	var rules strings.Builder // each has the one before it in the place of its last parent
	rules.WriteString("partitions:\n- placementrules:\n  - &r0 {name: user}\n")
	for i := 1; i < 6; i++ {
		fmt.Fprintf(&rules, "  - &r%d %s*r%d%s\n", i, strings.Repeat("{name: user, parent: ", 9_000), i-1, strings.Repeat("}", 9_000))
	}
	const tooLarge = "the document is too large here, and the rest is not checked"
	level, inside := "[{name: a, resources: {max: {n0: 1}}, queues: ", "partitions: [{queues: [{name: a, "
	levels := strings.Repeat(level, MaxDepth-2) + "[]" + strings.Repeat("}]", MaxDepth-2)
	siblings := "[" + repeat("{name: q%d, properties: {n0: 1}},", 10_000) + "]"
	users := "limits: [{users: ['*'], maxresources: &m {" + repeat("n%d: 1,", 500) + "}}], queues: [{name: b, limits: [{users: [" +
		repeat("u%d,", 100_000) + "], maxresources: *m}]}]}]}]"
	expression := "{name: user, filter: {users: ['x{1000}']}},"
	for _, c := range []struct{ document, want string }{
		{rules.String(), tooLarge},
		{inside + "resources: {max: {" + repeat("n%d: 1,", 100_000) + "}}, queues: " + levels + "}]}]", tooLarge},
		{inside + "properties: {" + repeat("n%d: 1,", 10_000) + "}, queues: " + siblings + "}]}]", tooLarge},
		{inside + users, tooLarge},
		{"partitions: [{placementrules: [" + strings.Repeat(expression, 100_000) + "]}]", tooLarge},
		{inside + "queues: " + levels[:len(levels)-len("[]"+strings.Repeat("}]", MaxDepth-2))] + "[{name: z, resources: {guaranteed: {" +
			repeat("n%d: 1,", 100_000) + "}}}]" + strings.Repeat("}]", MaxDepth-2) + "}]}]", tooLarge},
		{"partitions: [{placementrules: [{name: fixed, create: true, value: root" + strings.Repeat(".a", 500_000) + "}], queues: [{name: root}]}]",
			"is more than 101 levels deep"},
		{laughs.String(), "more than the 1048576 values allowed, aliases written out"},
		{deep, "nested more than 100 levels"},
		{"# " + strings.Repeat("x", MaxDocumentBytes), "more than the 8388608 allowed"},
		{strings.Repeat("[", 20_000), "not YAML"},
		{"a: [" + strings.Repeat("a,", MaxDocumentBytes/2-5) + "]", "more than the 1048576 values allowed"},
		{"a: [" + strings.Repeat("{a,a,a},", 200_000) + "]", "more than the 1048576 values allowed, aliases written out"},
		{nested("limits: [" + strings.Repeat("a,", 100_000) + "]"), "more; correct these first"},
		{nested("queues: [" + strings.Repeat("{name: b},", 100_000) + "]"), tooLarge},
		{aliased("[" + strings.Repeat("{},", 10) + "]"), "is not a queue name"},
		{aliased("[{name: \"" + strings.Repeat("?", 1<<20) + "\"}]"), "aliases written out"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse([]byte(c.document))
		runtime.ReadMemStats(&after)
		said, took := fmt.Sprint(err), after.TotalAlloc-before.TotalAlloc
		expect.That(t, strings.Contains(said, c.want), "%.40q: %.200s, want %s", c.document, said, c.want)
		expect.That(t, len(said) <= words && took <= memory,
			"%.40q: %d bytes are said of it, and %d MiB made of it", c.document, len(said), took>>20)
	}
	justRight := strings.Replace(strings.Replace(deep, "[{name: a, queues: ", "", 1), "}]", "", 1)
	expect.Get(Parse([]byte(justRight)))(t)
}

// TestProse has few values in as much text as there may be, in a comment and in a value:
// commas and colons in them do not make it a document with too many.
func TestProse(t *testing.T) {
	const line = "# Who asked for this: team research, until May; see ticket 4711 [closed], and ask ann, bob or eve.\n"
	const queues = "partitions:\n- queues:\n  - name: root\n    properties: {who: '%s'}\n"
	room := MaxDocumentBytes - len(queues)
	for _, document := range []string{
		strings.Repeat(line, room/len(line)) + fmt.Sprintf(queues, "ann"),
		fmt.Sprintf(queues, strings.Repeat(strings.Trim(line, "#\n"), room/len(line))),
	} {
		expect.Get(Parse([]byte(document)))(t)
	}
}

// repeat writes a text n times, with a number in it.
func repeat(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// nested is a document with something in a queue with a path of 6 KB.
func nested(inside string) string {
	level := "[{name: " + strings.Repeat("a", 64) + ", queues: "
	return "partitions: [{queues: [{name: root, queues: " + strings.Repeat(level, MaxDepth-3) +
		"[{name: b, " + inside + "}]" + strings.Repeat("}]", MaxDepth-3) + "}]}]"
}

// aliased is a document with 20,000 queues that have the same queues.
func aliased(queues string) string {
	var b strings.Builder
	b.WriteString("partitions:\n- queues:\n  - name: root\n    queues:\n    - {name: first, queues: &k " + queues + "}\n")
	for i := range 20_000 {
		fmt.Fprintf(&b, "    - {name: q%d, queues: *k}\n", i)
	}
	return b.String()
}

// TestDocumentsAreNotKept writes over the document after it was read.
func TestDocumentsAreNotKept(t *testing.T) {
	document := []byte("partitions:\n- queues:\n  - name: first\n    properties: {team: x}\n")
	spec := expect.Get(Parse(document))(t)
	before := spec.Dump()
	copy(document, bytes.Repeat([]byte("z"), len(document)))
	expect.Same(t, "the specification changed with the document", before, spec.Dump())
}

// TestDefault: there is a queue for each namespace, and the document with the same content is
// another configuration.
func TestDefault(t *testing.T) {
	spec := expect.Get(Parse([]byte(DefaultDocument)))(t)
	expect.That(t, !spec.IsDefault() && Default().IsDefault(), "IsDefault is wrong")
	expect.Same(t, "", "preemption enabled\nrule 0: tag namespace create\nroot parent\n  submit: everybody\n", Default().Dump())
}

// TestLongTexts makes sure that no mistake fills a screen.
func TestLongTexts(t *testing.T) {
	long := strings.Repeat("x", 5000)
	_, err := Parse([]byte("partitions:\n- queues:\n  - name: " + long + "\n    " + long[:1000] + ": 1\n    parent: " + long + "\n"))
	expect.That(t, err != nil && len(err.Error()) <= 1500, "too long: %v", err)
}

// TestManyKeys has more keys than are looked through one by one.
func TestManyKeys(t *testing.T) {
	var b strings.Builder
	b.WriteString("partitions:\n- queues:\n  - name: a\n    properties:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "      key%d: x\n", i)
	}
	spec := expect.Get(Parse([]byte(b.String())))(t)
	expect.Same(t, "properties", 100, len(spec.Root.Children[0].Properties))
	_, err := Parse([]byte(b.String() + "      key7: y\n      key99: y\n"))
	const want = "line 105: root.a: properties.key7: is given twice, first in line 12\n" +
		"line 106: root.a: properties.key99: is given twice, first in line 104"
	expect.Same(t, "problems", want, fmt.Sprint(err))
}

// large is a document with n leaves below parents of 50, six types of settings each.
func large(n int) []byte {
	var b bytes.Buffer
	b.WriteString("partitions:\n- name: default\n  placementrules:\n  - name: tag\n    value: namespace\n    create: true\n  queues:\n  - name: root\n    submitacl: '*'\n    queues:\n")
	for i := range n {
		if i%50 == 0 {
			fmt.Fprintf(&b, "    - name: parent-%d\n      resources:\n        guaranteed: {vcore: 500, memory: 500Gi}\n        max: {vcore: 5000, memory: 5000Gi}\n      queues:\n", i)
		}
		fmt.Fprintf(&b, `      - name: leaf-%d
        submitacl: "user-%d dev"
        maxapplications: 10
        properties:
          application.sort.policy: fair
          preemption.delay: 60s
        resources:
          guaranteed: {vcore: 10, memory: 10Gi}
          max: {vcore: 100, memory: 100Gi}
        limits:
        - limit: one
          users: [user-%d]
          maxresources: {vcore: 5}
`, i, i, i)
	}
	return b.Bytes()
}

func BenchmarkParse5000(b *testing.B) {
	document := large(5000)
	b.SetBytes(int64(len(document)))
	b.ReportAllocs()
	for b.Loop() {
		expect.Get(Parse(document))(b)
	}
}
