package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/spf13/cobra"

	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

func newPreview(conn *connection) *cobra.Command {
	var output *format
	var file string
	cmd := &cobra.Command{
		Use:   "preview -f FILE",
		Short: "Say what would become of a pod: would it fit, wait, or make others leave",
		Long: `Sends the manifest of a pod to the scheduler, which says what would become of such
a pod as things are: in which queue it would be, whether a quota refuses it, on how
many nodes it fits, and, if on none, which pods would leave for it, or why
none. Nothing is done, and the pod is not made.

Exit code 1 says that it would not fit as things are: it would wait, or make others
leave.`,
		Example: "  kubectl paddock preview -f pod.yaml\n  kubectl get pod worker-1 -o yaml | sed /nodeName/d | kubectl paddock preview -f -",
		Args:    arguments(0, 0, "no arguments but -f FILE"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return usagef("name the manifest by -f FILE; - is the standard input")
			}
			manifest, err := readFile(file, cmd.InOrStdin(), documents.PreviewBytes)
			if err != nil {
				return err
			}
			p, err := conn.preview(cmd.Context(), manifest)
			if err != nil {
				return err
			}
			if err := output.write(cmd.OutOrStdout(), p, func(w io.Writer) { printPreview(w, p) }); err != nil {
				return err
			}
			if p.Outcome != documents.PreviewFits {
				return errFound
			}
			return nil
		},
	}
	output = addOutput(cmd)
	cmd.Flags().StringVarP(&file, "filename", "f", "", "manifest of one pod, YAML or JSON; - is the standard input")
	return cmd
}

func (c *connection) preview(ctx context.Context, manifest []byte) (*documents.Preview, error) {
	body, err := c.request(ctx, http.MethodPost, "/api/v1/preview", nil, manifest)
	if err != nil {
		return nil, err
	}
	var p documents.Preview
	if err := json.Unmarshal(body, &p); err != nil || p.Outcome == "" {
		return nil, fmt.Errorf("the answer is no preview: is this the scheduler's REST interface?")
	}
	return &p, nil
}

func printPreview(w io.Writer, p *documents.Preview) {
	line := func(format string, args ...any) { fmt.Fprintln(w, printable(fmt.Sprintf(format, args...))) }
	line("%s: %s", p.Outcome, p.Summary)
	if p.Reason != nil {
		line("Reason: %s. %s", p.Reason.Code, p.Reason.Meaning)
	}
	line("Requests %s; priority %d; profile %s.", amountsText(p.Request), p.Priority, p.Profile)
	explainQueue(line, p.Queue)
	if p.Makes {
		line("  The queue is not there yet and would be made.")
	}
	if len(p.Quota) > 0 {
		fmt.Fprintln(w)
		quotaTable(p.Quota, p.Request, false).write(w)
		fmt.Fprintln(w)
	}
	if n := p.Nodes; n != nil {
		line("Nodes: %d; it fits on %d; held for others: %d", n.All, n.Fit, n.Held)
		for _, why := range slices.Sorted(maps.Keys(n.Refused)) {
			line("  %d: %s", n.Refused[why], why)
		}
	}
	if p.Waiting > 0 {
		line("Pods that wait for their turn now: %d; they may be tried first.", p.Waiting)
	}
	previewVictims(line, p)
	listed(line, "What to do:", p.ToDo)
	listed(line, "Not looked at:", p.NotLookedAt)
}

func previewVictims(line func(string, ...any), p *documents.Preview) {
	d := p.Decision
	if d == nil || len(d.Victims) == 0 {
		return
	}
	line("Would leave for it:")
	for _, v := range d.Victims {
		line("  %s/%s of queue %s on node %s, which requests %s", v.Namespace, v.Name, cmp.Or(v.Queue, "none"), v.Node, amountsText(v.Requests))
	}
	for _, n := range d.Numbers {
		if n.Guaranteed != nil && n.Used != nil {
			line("  law %s: queue %s uses %s of %s guaranteed %s", n.Law, n.Queue, resources.Format(n.Resource, *n.Used), resources.Format(n.Resource, *n.Guaranteed), n.Resource)
		}
	}
}
