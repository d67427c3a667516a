package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

func newHolds(conn *connection) *cobra.Command {
	var output *format
	var which about
	var ended bool
	cmd := &cobra.Command{
		Use:   "holds",
		Short: "Show which nodes are held, for which pod, and until when",
		Long: `Shows the nodes that are held for pods, which pods these wait for, until when, and
whether the node has the taint that keeps other schedulers off.
With --ended, the last holds that are over, and why they ended.`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list documents.Holds
			if err := which.read(cmd, conn, holdsPath, &list); err != nil {
				return err
			}
			return output.write(cmd.OutOrStdout(), list, func(w io.Writer) {
				if ended {
					printEnded(w, list.Ended)
				} else {
					printHolds(w, list.Holds)
				}
			})
		},
	}
	output = addOutput(cmd)
	which.addFlags(cmd, "holds", "holds that ended")
	cmd.Flags().BoolVar(&ended, "ended", false, "show those that are over")
	return cmd
}

func printHolds(w io.Writer, list []documents.Hold) {
	if len(list) == 0 {
		fmt.Fprintln(w, "No node is held.")
		return
	}
	t := newTable("NODE", "POD", "QUEUE", "KIND", "STATE", "SINCE", "UNTIL", "TAINT", "WAITS FOR")
	for i := range list {
		h := &list[i]
		until := "-"
		if !h.Until.IsZero() {
			until = moment(h.Until)
		}
		taint := "-"
		if h.Taint != "" {
			taint = "yes"
		}
		t.add(h.Node, named(h.Asker), cmp.Or(h.Queue, "-"), string(h.Kind), h.State, moment(h.Since), until, taint, waitsFor(h))
	}
	t.write(w)
}

// waitsFor names the pods that have still to leave, and marks those that were leaving
// anyway.
func waitsFor(h *documents.Hold) string {
	var names []string
	for _, l := range h.WaitsFor {
		name := named(l.Ref)
		if !l.Chosen {
			name += " (leaves anyway)"
		}
		names = append(names, name)
	}
	if len(names) == 0 && h.Note != "" {
		return h.Note
	}
	return few(names)
}

func printEnded(w io.Writer, list []record.EndedHold) {
	if len(list) == 0 {
		fmt.Fprintln(w, "No hold has ended.")
		return
	}
	t := newTable("ENDED", "NODE", "POD", "QUEUE", "KIND", "SINCE", "END", "MESSAGE")
	for i := range list {
		h := &list[i]
		t.add(moment(h.Ended), h.Node, named(h.Asker), cmp.Or(h.Queue, "-"), string(h.Kind), moment(h.Since), string(h.End), cmp.Or(h.Message, "-"))
	}
	t.write(w)
}
