package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/forecast"
)

// comparison is what is told of two documents.
type comparison struct {
	Differences []config.Difference `json:"differences"`
	// Forecast is what the difference means for a cluster; nil where none is looked at.
	Forecast *forecast.Forecast `json:"forecast,omitempty"`
	// OtherQueues are queues that the cluster has from a configuration and the old
	// document does not name or sets otherwise: it is not what the cluster runs.
	OtherQueues []string `json:"otherQueues,omitempty"`
}

const diffHelp = `Compares what two queues.yaml files do, in words; how they are written does not
matter. "-" is the standard input. With two files no cluster is needed.

With --live or --usage it also says what NEW means for what runs and waits now:
which queues would be over their max, which guarantees can never be met, which
pods would be left in queues that are gone, and which queues could lose pods to
which others by preemption. OLD should be what the cluster runs; where it is left
out, the scheduler is asked for the configuration in force.

Exit codes: 0 fine; 1 a file is invalid, or something of the first three is new,
or, with --exit-code, they differ; 2 a file or the cluster could not be read.`

func newDiff(conn *connection) *cobra.Command {
	var output *format
	var from cluster
	var differ bool
	cmd := &cobra.Command{
		Use:   "diff [OLD] NEW",
		Short: "Tell what a new queue configuration changes, and what it means for a cluster",
		Long:  diffHelp,
		Example: "  kubectl paddock config diff queues.yaml new-queues.yaml\n" +
			"  kubectl paddock config diff queues.yaml new-queues.yaml --live\n" +
			"  kubectl paddock config diff new-queues.yaml --live\n" +
			"  kubectl paddock queues -o json > usage.json\n" +
			"  kubectl paddock config diff queues.yaml new-queues.yaml --usage usage.json",
		Args: arguments(1, 2, "the old file and the new one, or the new one only"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := from.check(args); err != nil {
				return err
			}
			c, err := compared(cmd, conn, from, args)
			if err != nil {
				return err
			}
			if err := output.write(cmd.OutOrStdout(), c, c.print); err != nil {
				return err
			}
			if differ && len(c.Differences) > 0 || c.Forecast != nil && c.Forecast.Worse() {
				return errFound
			}
			return nil
		},
	}
	output = addOutput(cmd)
	from.addFlags(cmd)
	cmd.Flags().BoolVar(&differ, "exit-code", false, "exit with 1 where there are differences")
	return cmd
}

// compared reads both documents, and the cluster where it is wanted.
func compared(cmd *cobra.Command, conn *connection, from cluster, names []string) (*comparison, error) {
	before, after, err := readSpecs(cmd, conn, names)
	if err != nil {
		return nil, err
	}
	c := &comparison{Differences: config.Diff(before, after)}
	if c.Differences == nil {
		c.Differences = []config.Difference{}
	}
	if from.wanted() {
		return c, c.look(cmd, conn, from, before, after)
	}
	return c, nil
}

// document is a configuration as it was read, with a name for people.
type document struct {
	name string
	text []byte
}

// readSpecs reads both documents. Those that are invalid are told all about on
// the error stream.
func readSpecs(cmd *cobra.Command, conn *connection, names []string) (before, after *config.Spec, err error) {
	documents, err := readDocuments(cmd, conn, names)
	if err != nil {
		return nil, nil, err
	}
	var specs [2]*config.Spec
	for i, d := range documents {
		if specs[i], err = config.Parse(d.text); err != nil {
			if err := asTable.write(cmd.ErrOrStderr(), nil, func(w io.Writer) { printVerdicts(w, []verdict{validateText(d.name, d.text)}) }); err != nil {
				return nil, nil, err
			}
		}
	}
	if specs[0] == nil || specs[1] == nil {
		return nil, nil, errFound
	}
	return specs[0], specs[1], nil
}

// readDocuments reads the old document and the new one; the old one is what is
// in force where only one is named.
func readDocuments(cmd *cobra.Command, conn *connection, names []string) ([]document, error) {
	var documents []document
	if len(names) == 1 {
		text, err := inForce(cmd.Context(), conn)
		if err != nil {
			return nil, fmt.Errorf("read the configuration in force: %w; or name the old file", err)
		}
		documents = append(documents, document{"(configuration in force)", text})
	}
	for _, name := range names {
		text, err := readDocument(name, cmd.InOrStdin())
		if err != nil {
			return nil, err
		}
		documents = append(documents, document{name, text})
	}
	return documents, nil
}

// inForce asks the scheduler for its configuration. A scheduler has a valid one; a server
// without one is no scheduler.
func inForce(ctx context.Context, conn *connection) ([]byte, error) {
	text, err := conn.request(ctx, http.MethodGet, configPath, nil, nil)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("the answer is empty: is this the scheduler's REST interface?")
	}
	if _, err := config.Parse(text); err != nil {
		return nil, fmt.Errorf("the answer is no configuration: %s: is this the scheduler's REST interface?", printable(err.Error()))
	}
	return text, nil
}

// look adds the forecast for a cluster.
func (c *comparison) look(cmd *cobra.Command, conn *connection, from cluster, before, after *config.Spec) error {
	tree, err := from.tree(cmd.Context(), conn, cmd.InOrStdin())
	if err != nil {
		return err
	}
	books := booksOf(tree)
	then, other, err := books.Under(before)
	if err != nil {
		return err
	}
	now, _, err := books.Under(before, after)
	if err != nil {
		return err
	}
	f := forecast.Compare(forecast.Of(then, before.PreemptionEnabled), forecast.Of(now, after.PreemptionEnabled))
	c.Forecast, c.OtherQueues = &f, other
	return nil
}

func (c *comparison) print(w io.Writer) {
	for _, d := range c.Differences {
		fmt.Fprintln(w, printable(d.String()))
	}
	if len(c.Differences) == 0 {
		fmt.Fprintln(w, "no difference")
	}
	if c.Forecast != nil {
		c.printForecast(w)
	}
}
