package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

func newExplain(conn *connection) *cobra.Command {
	cmd := &cobra.Command{Use: "explain", Short: "Say why a pod waits, and what would have to change"}
	group(cmd)
	cmd.AddCommand(newExplainPod(conn))
	return cmd
}

func newExplainPod(conn *connection) *cobra.Command {
	var output *format
	var namespace string
	cmd := &cobra.Command{
		Use:   "pod NAME",
		Short: "Say why a pod waits, and what would have to change",
		Long: `Shows what the scheduler knows of a pod: its queue and how it was found, what each
queue of the path says of its request, which pods are before it, which node is held
for it and for which pods it waits, and what would have to change for it to run.

A pod that does not exist, or that another scheduler has yet to place, ends with
exit code 1.`,
		Example: "  kubectl paddock explain pod worker-1 -n team-a\n  kubectl paddock explain pod worker-1 -o json",
		Args:    arguments(1, 1, "the name of one pod"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if namespace == "" {
				namespace = conn.namespace()
			}
			x, err := conn.explanation(cmd.Context(), namespace, strings.TrimPrefix(args[0], "pod/"))
			if missing, ok := errors.AsType[*missingError](err); ok {
				fmt.Fprintln(cmd.ErrOrStderr(), printable(missing.told))
				return errFound
			}
			if err != nil {
				return err
			}
			return output.write(cmd.OutOrStdout(), x, func(w io.Writer) { printExplanation(w, x) })
		},
	}
	output = addOutput(cmd)
	cmd.Flags().StringVarP(&namespace, "namespace", "n", "", "namespace of the pod; that of the kubeconfig's context by default")
	return cmd
}

func (c *connection) explanation(ctx context.Context, namespace, name string) (*documents.Explanation, error) {
	if !plainName(namespace) || !plainName(name) {
		return nil, usagef("%q in namespace %q is no name of a pod", name, namespace)
	}
	var x documents.Explanation
	if err := c.read(ctx, "/api/v1/pods/"+namespace+"/"+name+"/explain", nil, &x); err != nil {
		return nil, err
	}
	if x.Name != name {
		return nil, fmt.Errorf("the answer explains no pod %s/%s: is this the scheduler's REST interface?", namespace, name)
	}
	return &x, nil
}

// plainName tells whether a name can stand in a path as it is.
func plainName(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/?#% ")
}

func printExplanation(w io.Writer, x *documents.Explanation) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintln(&b, printable(fmt.Sprintf(format, args...))) }
	line("%s", x.Summary)
	if x.Reason != nil {
		line("Reason: %s. %s", x.Reason.Code, x.Reason.Meaning)
	}
	line("Requests %s; priority %d.", amountsText(x.Request), x.Priority)
	if x.Attempts > 0 {
		line("Tried without success: %d, the last time %s.", x.Attempts, timeOf(x.LastAttempt))
	}
	if !x.NextAttempt.IsZero() {
		line("It is tried again at %s, or earlier.", timeOf(x.NextAttempt))
	}
	explainQueue(line, x.Queue)
	if len(x.Quota) > 0 {
		fmt.Fprintln(&b)
		quotaTable(x.Quota, x.Request, x.Hold != nil).write(&b)
		for _, q := range x.Quota {
			if q.Refuses != nil {
				line("Refused: %s", q.Refuses.Message)
			}
		}
	}
	if x.Limits != nil {
		line("Limited: %s", x.Limits.Message)
	}
	fmt.Fprintln(&b)
	explainOrder(line, x)
	explainRoom(line, x)
	listed(line, "What to do:", x.ToDo)
	fmt.Fprintln(w, strings.TrimRight(b.String(), "\n"))
}

// listed prints items below a title; nothing without any.
func listed(line func(string, ...any), title string, items []string) {
	if len(items) > 0 {
		line("%s", title)
	}
	for _, item := range items {
		line("  - %s", item)
	}
}

func explainQueue(line func(string, ...any), q *documents.ExplainedQueue) {
	if q == nil {
		return
	}
	switch {
	case q.Path != "" && q.FoundBy != "":
		line("Queue %s, by rule %q; application %s of user %s.", q.Path, q.FoundBy, q.Application, q.User)
	case q.Path != "":
		line("Queue %s; application %s of user %s.", q.Path, q.Application, q.User)
	default:
		line("It has no queue; application %s of user %s.", q.Application, q.User)
	}
	for _, r := range q.Rules {
		if r.Message != "" && q.Path != "" {
			line("  before that, rule %q: %s", r.Rule, r.Message)
		} else if r.Message != "" {
			line("  rule %q: %s", r.Rule, r.Message)
		}
	}
	if q.Note != "" {
		line("Note: %s.", q.Note)
	}
}

// quotaTable has a row for each queue and type of a request; holds tells whether the pod holds a
// node.
func quotaTable(path []documents.QueueQuota, request map[string]resources.Amount, holds bool) *table {
	t := newTable("QUEUE", "TYPE", ">GUARANTEED", ">ALLOCATED", ">ARRIVING", ">MAX", ">HEADROOM", "VERDICT")
	for _, q := range path {
		name := q.Queue
		for _, typ := range slices.Sorted(maps.Keys(request)) {
			t.add(name, typ, amountIn(q.Guaranteed, typ), resources.Format(typ, q.Allocated[typ]), resources.Format(typ, q.Arriving[typ]),
				amountIn(q.Max, typ), amountIn(q.Headroom, typ), verdictOf(&q, typ, request[typ], holds))
			name = ""
		}
	}
	return t
}

// verdictOf says of a type whether the max of a queue refuses, and whether the
// queue is under its guarantee. What arrives takes no room from a pod that holds a node: it
// counts itself, and its plan counted the others.
func verdictOf(q *documents.QueueQuota, typ string, requested resources.Amount, holds bool) string {
	room, limited := q.Headroom[typ]
	if !holds {
		room -= q.Arriving[typ]
	}
	switch {
	case q.Refuses != nil && limited && room < requested:
		return "refuses"
	case slices.Contains(q.UnderGuarantee, typ):
		return "under its guarantee"
	}
	return ""
}

func explainOrder(line func(string, ...any), x *documents.Explanation) {
	o := x.Order
	if o == nil {
		return
	}
	if !o.Waits {
		line("It is not in the order now; the reason above has to pass first.")
	} else {
		atLeast := map[bool]string{true: "at least ", false: ""}[o.AtLeast]
		line("Order: %d wait in its queue and may run; before it %s%d, of applications: %d.", o.InLeaf, atLeast, o.PodsBefore, o.ApplicationsBefore)
		if len(o.First) > 0 {
			line("  The first of them: %s", podsText(o.First))
		}
		for _, q := range o.Queues {
			line("  Queue %s is number %d of %d; before it: %s", q.Queue, q.Place, q.Of, cmp.Or(strings.Join(q.Before, ", "), "none"))
		}
	}
	if o.Next != nil {
		line("  Next of all %d: %s", o.InAll, named(*o.Next))
	}
	if x.Window != nil {
		line("  Let through at the moment: %d of at most %d.", x.Window.Taken, x.Window.Size)
	}
}

func explainRoom(line func(string, ...any), x *documents.Explanation) {
	if h := x.Hold; h != nil {
		line("Node %s is held for it since %s; it waits for: %s", h.Node, timeOf(h.Since), cmp.Or(podsText(h.WaitsFor), "none"))
		if h.Note != "" {
			line("  %s", h.Note)
		}
	}
	if x.MakesRoomFor != nil {
		line("It makes room for %s.", named(*x.MakesRoomFor))
	}
	if r := x.Room; r != nil && x.State != "tried" {
		if r.Reason != nil {
			line("Making room: %s: %s", r.Reason.Code, r.Reason.Message)
		}
		if r.LastRefusal != nil {
			line("Last plan, %s: %s: %s", timeOf(r.LastPlan), r.LastRefusal.Code, r.LastRefusal.Message)
		}
	}
	if d := x.LastDecision; d != nil {
		line("Last decision, %s: %s: %s", moment(d.Last), d.Outcome, d.Message)
	}
	if h := x.LastHold; h != nil && h.Message != "" {
		line("Its last hold, of node %s, ended %s: %s: %s", h.Node, moment(h.Ended), h.End, h.Message)
	}
}

func podsText(pods []objects.Ref) string {
	var names []string
	for _, p := range pods {
		names = append(names, named(p))
	}
	return strings.Join(names, ", ")
}

func amountsText(m map[string]resources.Amount) string {
	var parts []string
	for _, typ := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, typ+"="+resources.Format(typ, m[typ]))
	}
	return cmp.Or(strings.Join(parts, " "), "none")
}

// timeOf is a time to the second.
func timeOf(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return moment(t)
}
