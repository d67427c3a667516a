package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/rest"
)

// about says which decisions or holds are wanted.
type about struct {
	namespace, pod, queue string
	victim                string // of decisions only
	limit                 int
}

func (a *about) addFlags(cmd *cobra.Command, what string) {
	f := cmd.Flags()
	f.StringVarP(&a.namespace, "namespace", "n", "", "only "+what+" for pods of this namespace")
	f.StringVar(&a.pod, "pod", "", "only "+what+" for pods of this name")
	f.StringVar(&a.queue, "queue", "", "only "+what+" for pods of this queue, or of queues below it")
	f.IntVar(&a.limit, "limit", 20, "how many at most, the last first")
}

func (a *about) query() (url.Values, error) {
	if a.limit <= 0 {
		return nil, usagef("--limit %d: it is the number of entries that are wanted, 1 or more", a.limit)
	}
	q := url.Values{"limit": {strconv.Itoa(a.limit)}}
	for name, value := range map[string]string{"namespace": a.namespace, "pod": a.pod, "queue": a.queue, "victim": a.victim} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q, nil
}

func newDecisions(conn *connection) *cobra.Command {
	var output *format
	var which about
	cmd := &cobra.Command{
		Use:   "decisions",
		Short: "Show for whom pods were preempted, and why for others not",
		Long: `Shows the last decisions about pods for which others were to make room, the last
first: who asked, who goes, on which node, and what became of it. -o yaml shows
the numbers that each law was asked about.`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			query, err := which.query()
			if err != nil {
				return err
			}
			var list rest.Decisions
			if err := conn.read(cmd.Context(), decisionsPath, query, &list); err != nil {
				return err
			}
			conn.caution(cmd.ErrOrStderr())
			return output.write(cmd.OutOrStdout(), list, func(w io.Writer) error { return printDecisions(w, &list) })
		},
	}
	output = addOutput(cmd)
	which.addFlags(cmd, "decisions")
	cmd.Flags().StringVar(&which.victim, "victim", "", "only decisions by which the pod of this name or UID was to go")
	return cmd
}

func printDecisions(w io.Writer, list *rest.Decisions) error {
	if len(list.Decisions) == 0 {
		_, err := fmt.Fprintln(w, "No decisions.")
		return err
	}
	t := newTable("TIME", "POD", "QUEUE", "OUTCOME", "NODE", "VICTIMS", "STAGE", "MESSAGE")
	for _, d := range list.Decisions {
		outcome := string(d.Outcome)
		if d.Times > 1 {
			outcome += fmt.Sprintf(" (%d times)", d.Times)
		}
		t.add(moment(d.Last), named(d.Asker), orDash(d.Queue), outcome, orDash(d.Node), victimsOf(d), stageOf(d), d.Message)
	}
	return t.write(w)
}

// mostNamed is how many pods a cell names.
const mostNamed = 3

func victimsOf(d *record.Decision) string {
	names := make([]string, 0, len(d.Victims))
	for i := range d.Victims {
		names = append(names, named(d.Victims[i].Pod))
	}
	return few(names)
}

// few names the first of them and counts the rest.
func few(names []string) string {
	switch {
	case len(names) == 0:
		return "-"
	case len(names) > mostNamed:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNamed], ", "), len(names)-mostNamed)
	}
	return strings.Join(names, ", ")
}

// named is namespace and name of a pod, or its UID where no more is known.
func named(p record.Pod) string {
	if p.Name == "" {
		return string(p.UID)
	}
	return p.Namespace + "/" + p.Name
}

func stageOf(d *record.Decision) string {
	if len(d.Stages) == 0 {
		return "-"
	}
	return d.Stages[len(d.Stages)-1].Stage
}

// moment is a time to the second, the same wherever it is read.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// decode reads an answer of the scheduler.
func decode(body []byte, path string, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer at %s is not what was expected: %w: is that the scheduler, and of the same version?", path, err)
	}
	return nil
}
