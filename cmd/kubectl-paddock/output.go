package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

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

// write writes value as the format says; table writes the form for people.
func (f format) write(w io.Writer, value any, table func(io.Writer) error) error {
	switch f {
	case asJSON:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		e.SetEscapeHTML(false)
		return e.Encode(value)
	case asYAML:
		text, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	return table(w)
}

// printable takes the power over a terminal from text that others wrote.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069' {
			return '\uFFFD'
		}
		return r
	}, s)
}
