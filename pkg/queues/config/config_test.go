package config

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

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
	for _, c := range []struct{ document, want string }{
		{laughs.String(), "more than the 1048576 values allowed, aliases written out"},
		{deep, "nested more than 100 levels"},
		{"# " + strings.Repeat("x", MaxDocumentBytes), "more than the 8388608 allowed"},
		{strings.Repeat("[", 20_000), "not YAML"},
		{"a: [" + strings.Repeat("a,", MaxDocumentBytes/2-5) + "]", "more than the 1048576 values allowed"},
		{"a: [" + strings.Repeat("{a,a,a},", 200_000) + "]", "more than the 1048576 values allowed, aliases written out"},
		{nested("limits: [" + strings.Repeat("a,", 100_000) + "]"), "more; correct these first"},
		{nested("queues: [" + strings.Repeat("{name: b},", 100_000) + "]"), "the paths of all queues together have more than 33554432 bytes"},
		{aliased("[" + strings.Repeat("{},", 10) + "]"), "is not a queue name"},
		{aliased("[{name: \"" + strings.Repeat("?", 1<<20) + "\"}]"), "aliases written out"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Parse([]byte(c.document))
		runtime.ReadMemStats(&after)
		said, took := fmt.Sprint(err), after.TotalAlloc-before.TotalAlloc
		expect.That(t, err != nil && strings.Contains(said, c.want), "%.40q: %.200s, want %s", c.document, said, c.want)
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

// TestDefaultDocument: the document says what the built-in configuration does.
func TestDefaultDocument(t *testing.T) {
	spec := expect.Get(Parse([]byte(DefaultDocument)))(t)
	expect.That(t, !spec.IsDefault() && Default().IsDefault(), "IsDefault is wrong")
	spec.Checksum, spec.Document = "", ""
	expect.Same(t, "", Default(), spec)
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
