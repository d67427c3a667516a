package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
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
		n, _ := strconv.Atoi(text)
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
			expect.That(t, errors.As(err, &invalid), "refused without problems: %v", err)
			lines := strings.Count(err.Error(), "\n") + 1
			expect.That(t, len(invalid.Problems) == lines, "%d problems: %q", len(invalid.Problems), err)
			return
		}
		again := expect.Get(Parse(document))(t)
		expect.That(t, again.Dump() == spec.Dump() && len(Diff(spec, again)) == 0, "read differently the second time")
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
