package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"

	"github.com/cockroachdb/datadriven"
)

// The files in testdata have these commands; the input of each is a document; lines count
// from 1.
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
