package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// verdict is what is told of one document.
type verdict struct {
	// File is its name; "-" for the standard input.
	File     string           `json:"file"`
	Valid    bool             `json:"valid"`
	Errors   []config.Problem `json:"errors,omitempty"`
	Warnings []config.Problem `json:"warnings,omitempty"`
}

func newValidate() *cobra.Command {
	var output *format
	var strict bool
	cmd := &cobra.Command{
		Use:   "validate FILE...",
		Short: "Find all errors of queue configurations",
		Long: `Reads queues.yaml files as the scheduler does and prints every error and warning
with its line and path. "-" is the standard input. No cluster is needed.

Exit codes: 0 valid, 1 a file is invalid (or, with --strict, has warnings), 2 a
file could not be read.`,
		Example: "  kubectl paddock config validate queues.yaml",
		Args:    arguments(1, math.MaxInt, "one file or more"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var verdicts []verdict
			for _, name := range args {
				text, err := readDocument(name, cmd.InOrStdin())
				if err != nil {
					return err
				}
				verdicts = append(verdicts, validateText(name, text))
			}
			err := output.write(cmd.OutOrStdout(), verdicts, func(w io.Writer) { printVerdicts(w, verdicts) })
			if err == nil && slices.ContainsFunc(verdicts, func(v verdict) bool { return !v.Valid || strict && len(v.Warnings) > 0 }) {
				return errFound
			}
			return err
		},
	}
	output = addOutput(cmd)
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	return cmd
}

// readDocument reads a queues.yaml. One that is too long is left to the parser.
func readDocument(name string, in io.Reader) ([]byte, error) {
	return readFile(name, in, 2*config.MaxDocumentBytes)
}

func validateText(name string, text []byte) verdict {
	spec, err := config.Parse(text)
	if err != nil {
		if invalid, ok := errors.AsType[*config.InvalidError](err); ok {
			return verdict{File: name, Errors: invalid.Problems}
		}
		return verdict{File: name, Errors: []config.Problem{{Text: err.Error()}}}
	}
	return verdict{File: name, Valid: true, Warnings: spec.Warnings}
}

func printVerdicts(w io.Writer, verdicts []verdict) {
	for _, v := range verdicts {
		name := v.File
		if name == standardInput {
			name = "(standard input)"
		}
		printProblems(w, name, "error", v.Errors)
		printProblems(w, name, "warning", v.Warnings)
		state := "valid"
		if !v.Valid {
			state = "invalid"
		}
		fmt.Fprintf(w, "%s: %s, %s, %s\n", printable(name), state, count(len(v.Errors), "error"), count(len(v.Warnings), "warning"))
	}
}

// printProblems writes problems as compilers do, so that editors and CI find the place.
func printProblems(w io.Writer, file, kind string, list []config.Problem) {
	for _, p := range list {
		parts := []string{file}
		if p.Line > 0 {
			parts[0] += ":" + strconv.Itoa(p.Line)
		}
		for _, part := range []string{kind, p.Path, p.Key, p.Text} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		fmt.Fprintln(w, printable(strings.Join(parts, ": ")))
	}
}

func count(n int, noun string) string {
	switch n {
	case 0:
		return "no " + noun + "s"
	case 1:
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
