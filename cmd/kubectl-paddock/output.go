package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// format is the value of -o.
type format string

const (
	asTable format = "table"
	asJSON  format = "json"
	asYAML  format = "yaml"
)

var formats = []format{asTable, asJSON, asYAML}

func (f *format) String() string { return string(*f) }

// Type names the kind of value in the help.
func (f *format) Type() string { return "format" }

// Set implements the flag.
func (f *format) Set(s string) error {
	if !slices.Contains(formats, format(s)) {
		return fmt.Errorf("must be table, json or yaml")
	}
	*f = format(s)
	return nil
}

func addOutput(cmd *cobra.Command) *format {
	f := asTable
	cmd.Flags().VarP(&f, "output", "o", "table, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]cobra.Completion{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return &f
}

// write writes value as the format says; table writes the form for people, to memory.
func (f format) write(w io.Writer, value any, table func(io.Writer)) error {
	var b bytes.Buffer
	if f == asTable {
		table(&b)
		_, err := w.Write(b.Bytes())
		return err
	}
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	text, err := escaped(b.String()), error(nil)
	if f == asYAML {
		text, err = yamlOf(b.String())
	}
	if err == nil {
		_, err = io.WriteString(w, text)
	}
	return err
}

// escaped writes the characters of a JSON document that have power over a terminal as
// escapes. Line ends of the document are no part of a string.
func escaped(document string) string {
	var b strings.Builder
	for _, r := range document {
		if r != '\n' && powerful(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// yamlOf returns a JSON document as YAML. Not all the characters that have power over a
// terminal would be escaped there, so they are replaced.
func yamlOf(document string) (string, error) {
	lines := strings.Split(document, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	text, err := yaml.JSONToYAML([]byte(strings.Join(lines, "\n")))
	return string(text), err
}

// powerful tells whether a character has power over a terminal: it is a control character,
// ends a line, or changes the direction of the text.
func powerful(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// printable takes the power over a terminal from text that others wrote.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if powerful(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}
