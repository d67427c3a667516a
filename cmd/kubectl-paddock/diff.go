package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/config/compare"
)

// comparison is what is told of two documents.
type comparison struct {
	Differences []compare.Difference `json:"differences"`
}

func newDiff(_ *connection) *cobra.Command {
	var output *format
	var differ bool
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Tell what a new queue configuration changes",
		Long: `Compares what two queues.yaml files do, in words; how they are written does not
matter. "-" is the standard input. No cluster is needed.

Exit codes: 0 fine, 1 a file is invalid (or, with --exit-code, they differ), 2 a
file could not be read.`,
		Example: "  kubectl paddock config diff queues.yaml new-queues.yaml",
		Args:    arguments(2, 2, "the old file and the new one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			before, after, err := readSpecs(cmd, args[0], args[1])
			if err != nil {
				return err
			}
			c := comparison{Differences: compare.Specs(before, after)}
			if c.Differences == nil {
				c.Differences = []compare.Difference{}
			}
			if err := output.write(cmd.OutOrStdout(), c, c.print); err != nil {
				return err
			}
			if differ && len(c.Differences) > 0 {
				return errFound
			}
			return nil
		},
	}
	output = addOutput(cmd)
	cmd.Flags().BoolVar(&differ, "exit-code", false, "exit with 1 where there are differences")
	return cmd
}

// readSpecs reads both documents. Those that are invalid are told all about on
// the error stream.
func readSpecs(cmd *cobra.Command, oldName, newName string) (before, after *config.Spec, err error) {
	if oldName == standardInput && newName == standardInput {
		return nil, nil, usagef("only one of the files can be the standard input")
	}
	var specs [2]*config.Spec
	for i, name := range []string{oldName, newName} {
		text, err := readDocument(name, cmd.InOrStdin())
		if err != nil {
			return nil, nil, err
		}
		if specs[i], err = config.Parse(text); err != nil {
			v := judge(name, text)
			if err := printVerdicts(cmd.ErrOrStderr(), []verdict{v}); err != nil {
				return nil, nil, err
			}
		}
	}
	if specs[0] == nil || specs[1] == nil {
		return nil, nil, errFound
	}
	return specs[0], specs[1], nil
}

func (c *comparison) print(w io.Writer) error {
	var b strings.Builder
	for _, d := range c.Differences {
		if d.Queue != "" {
			fmt.Fprintf(&b, "%s: ", d.Queue)
		}
		fmt.Fprintln(&b, printable(d.String()))
	}
	if len(c.Differences) == 0 {
		fmt.Fprintln(&b, "no difference")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
