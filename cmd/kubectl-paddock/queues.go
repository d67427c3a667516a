package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

func newQueues(conn *connection) *cobra.Command {
	var output *format
	var from source
	var types []string
	cmd := &cobra.Command{
		Use:   "queues [PATH]",
		Short: "Show the tree of queues with what they may use, use and wait for",
		Long: `Shows the queue PATH (root by default) and everything below it: what each is
guaranteed, what its pods use, its max, what waits, and what is special about it.
What is not limited or not guaranteed is "-".

-o json writes what the scheduler's REST interface answers; "config diff --usage"
and --usage here read it.`,
		Example: "  kubectl paddock queues\n  kubectl paddock queues root.research --type vcore",
		Args:    arguments(0, 1, "at most one queue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			tree, err := from.tree(cmd.Context(), conn, cmd.InOrStdin())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				if tree, err = findQueue(tree, args[0]); err != nil {
					return err
				}
			}
			return output.write(cmd.OutOrStdout(), tree, func(w io.Writer) { printQueues(w, tree, types) })
		},
	}
	output = addOutput(cmd)
	from.addFlags(cmd)
	cmd.Flags().StringSliceVar(&types, "type", nil, "resource types to show in the table, such as vcore,memory; all by default")
	return cmd
}

// source is where a command that shows queues has them from.
type source struct {
	usage string // file name; empty asks the scheduler
}

func (s *source) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.usage, "usage", "", "file with a recorded tree of queues, in place of the cluster's")
}

func (s *source) tree(ctx context.Context, conn *connection, in io.Reader) (*documents.Queue, error) {
	if s.usage != "" {
		return recordedTree(s.usage, in)
	}
	return liveTree(ctx, conn)
}

func findQueue(tree *documents.Queue, path string) (*documents.Queue, error) {
	path = strings.ToLower(path)
	q := tree
	for q.QueueName != path {
		i := slices.IndexFunc(q.Children, func(c *documents.Queue) bool { return queues.Within(path, c.QueueName) })
		if i < 0 {
			return nil, fmt.Errorf("there is no queue %q below %q", path, q.QueueName)
		}
		q = q.Children[i]
	}
	return q, nil
}

func printQueues(w io.Writer, tree *documents.Queue, types []string) {
	t := newTable("QUEUE", "TYPE", ">GUARANTEED", ">ALLOCATED", ">MAX", ">PENDING", "NOTES")
	addQueue(t, tree, 0, types)
	t.write(w)
}

// addQueue adds a row for each type of a queue, and those of its children.
func addQueue(t *table, q *documents.Queue, depth int, types []string) {
	name := q.QueueName
	if depth > 0 {
		name = strings.Repeat("  ", depth) + name[strings.LastIndexByte(name, '.')+1:]
	}
	notes := strings.Join(notesOf(q), ", ")
	for _, typ := range typesOf(q, types) {
		t.add(name, typ, amountIn(q.GuaranteedResource, typ), resources.Format(typ, q.AllocatedResource[typ]),
			amountIn(q.MaxResource, typ), resources.Format(typ, q.PendingResource[typ]), notes)
		name, notes = "", ""
	}
	if name != "" {
		t.add(name, "-", "-", "-", "-", "-", notes)
	}
	for _, c := range q.Children {
		addQueue(t, c, depth+1, types)
	}
}

// typesOf returns the types that say something of a queue, sorted.
func typesOf(q *documents.Queue, wanted []string) []string {
	all := map[string]bool{}
	for _, m := range []map[string]resources.Amount{q.GuaranteedResource, q.AllocatedResource, q.MaxResource, q.PendingResource} {
		for typ := range m {
			all[typ] = len(wanted) == 0 || slices.Contains(wanted, typ)
		}
	}
	maps.DeleteFunc(all, func(_ string, shown bool) bool { return !shown })
	return slices.Sorted(maps.Keys(all))
}

func amountIn(m map[string]resources.Amount, typ string) string {
	if a, ok := m[typ]; ok {
		return resources.Format(typ, a)
	}
	return "-"
}

// notesOf says what is special about a queue.
func notesOf(q *documents.Queue) []string {
	var notes []string
	note := func(is bool, text string) {
		if is {
			notes = append(notes, text)
		}
	}
	note(!q.IsManaged, "dynamic")
	note(q.Status != "" && q.Status != "Active", strings.ToLower(q.Status))
	note(q.IsPreemptionFence, "fence")
	note(!q.PreemptionEnabled, "preemption disabled")
	note(q.IsPriorityFence, "priority fence")
	note(q.PriorityOffset != 0, "priority offset "+strconv.Itoa(int(q.PriorityOffset)))
	delay := q.PreemptionDelay
	note(q.IsLeaf && delay != "" && delay != config.DefaultPreemptionDelay.String(), "delay "+delay)
	note(q.MaxRunningApps > 0, fmt.Sprintf("%d of %d applications", int(q.RunningApps)+len(q.AllocatingAcceptedApps), q.MaxRunningApps))
	return notes
}
