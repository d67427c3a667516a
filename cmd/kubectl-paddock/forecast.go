package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/forecast"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// cluster is the cluster a new configuration is held against.
type cluster struct {
	live bool
	source
}

func (c *cluster) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.live, "live", false, "say what NEW means for what runs and waits in the cluster now")
	cmd.Flags().StringVar(&c.usage, "usage", "", "the same for a recorded tree of queues, as queues -o json writes it")
}

func (c *cluster) wanted() bool { return c.live || c.usage != "" }

// check refuses flags and arguments that contradict each other.
func (c *cluster) check(args []string) error {
	if c.live && c.usage != "" {
		return usagef("--live and --usage exclude each other")
	}
	inputs := 0
	for _, name := range append(slices.Clone(args), c.usage) {
		if name == standardInput {
			inputs++
		}
	}
	if inputs > 1 {
		return usagef("only one of the files can be the standard input")
	}
	return nil
}

// booksOf translates a tree as it is served.
func booksOf(tree *documents.Queue) forecast.Books {
	b := forecast.Books{Capacity: resources.VectorFrom(tree.MaxResource)}
	var visit func(q *documents.Queue)
	visit = func(q *documents.Queue) {
		b.Entries = append(b.Entries, forecast.Entry{
			Path: q.QueueName, Leaf: q.IsLeaf, Managed: q.IsManaged, Draining: q.Status == queues.Draining.String(),
			Guaranteed: resources.GuaranteeFrom(q.GuaranteedResource),
			Max:        resources.LimitFrom(q.MaxResource),
			Allocated:  resources.VectorFrom(q.AllocatedResource), Pending: resources.VectorFrom(q.PendingResource),
		})
		for _, c := range q.Children {
			visit(c)
		}
	}
	visit(tree)
	return b
}

// printForecast writes the findings, by class.
func (c *comparison) printForecast(w io.Writer) {
	fmt.Fprintln(w)
	if len(c.OtherQueues) > 0 {
		named := c.OtherQueues[:min(len(c.OtherQueues), 3)]
		fmt.Fprintln(w, printable("The cluster does not run the old file; it has other settings, or queues the file does not name, for example "+
			strings.Join(named, ", ")+". What follows may be wrong."))
	}
	found := section(w, "Over their max: nothing is stopped; nothing new starts before they are below it.", c.Forecast.OverMax,
		func(o forecast.OverMax) forecast.Status { return o.Status })
	found = section(w, "Guarantees that can never be met:", c.Forecast.Unmet,
		func(u forecast.Unmet) forecast.Status { return u.Status }) || found
	found = section(w, "Queues that take nothing new and have pods: what runs goes on. What waits in a removed queue goes on, too; in a parent it is placed again.",
		c.Forecast.Stranded, func(s forecast.Stranded) forecast.Status { return s.Status }) || found
	found = section(w, "Could lose pods by preemption, by laws 2, 4, 5 and 7; priorities and opt-outs of pods decide in the end:", c.Forecast.Losers,
		func(l forecast.Loser) forecast.Status { return l.Status }) || found
	if !found {
		fmt.Fprintln(w, "Nothing to say about what the cluster uses now.")
	}
}

// shownAsBefore is how many findings that do not change are listed.
const shownAsBefore = 20

// section writes one class of findings, what changes first, and tells whether
// there are any.
func section[T fmt.Stringer](w io.Writer, title string, findings []T, status func(T) forecast.Status) bool {
	if len(findings) == 0 {
		return false
	}
	fmt.Fprintln(w, title)
	for _, which := range []forecast.Status{forecast.New, forecast.Gone, forecast.Kept} {
		left := len(findings)
		if which == forecast.Kept {
			left = shownAsBefore
		}
		hidden := 0
		for _, f := range findings {
			switch {
			case status(f) != which:
			case left == 0:
				hidden++
			default:
				left--
				fmt.Fprintf(w, "  %-10s %s\n", which, printable(f.String()))
			}
		}
		if hidden > 0 {
			fmt.Fprintf(w, "  %-10s %d more; -o json lists them\n", which, hidden)
		}
	}
	return true
}
