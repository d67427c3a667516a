package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// about says which decisions or holds are wanted.
type about struct {
	namespace, pod, queue string
	victim                string // of decisions only
	limit                 int
}

// addFlags adds the flags; what is shown, and limited are those that --limit is about.
func (a *about) addFlags(cmd *cobra.Command, what, limited string) {
	f := cmd.Flags()
	f.StringVarP(&a.namespace, "namespace", "n", "", "only "+what+" for pods of this namespace")
	f.StringVar(&a.pod, "pod", "", "only "+what+" for pods of this name")
	f.StringVar(&a.queue, "queue", "", "only "+what+" for pods of this queue, or of queues below it")
	f.IntVar(&a.limit, "limit", 20, "how many "+limited+" at most, the last first")
}

// read asks for what is wanted at a path.
func (a *about) read(cmd *cobra.Command, conn *connection, path string, into any) error {
	if a.limit <= 0 {
		return usagef("--limit %d: it is the number of entries that are wanted, 1 or more", a.limit)
	}
	q := url.Values{"limit": {strconv.Itoa(a.limit)}}
	for name, value := range map[string]string{"namespace": a.namespace, "pod": a.pod, "queue": a.queue, "victim": a.victim} {
		if value != "" {
			q.Set(name, value)
		}
	}
	err := conn.read(cmd.Context(), path, q, into)
	if err == nil {
		conn.caution(cmd.ErrOrStderr())
	}
	return err
}

func newDecisions(conn *connection) *cobra.Command {
	var output *format
	var which about
	cmd := &cobra.Command{
		Use:   "decisions",
		Short: "Show for which pods others were preempted, and why not for the rest",
		Long: `Shows the last decisions to preempt pods, or not to, newest first: for which pod,
the victims, the node, and the result. -o yaml shows the numbers that each law was
asked about.`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list documents.Decisions
			if err := which.read(cmd, conn, decisionsPath, &list); err != nil {
				return err
			}
			return output.write(cmd.OutOrStdout(), list, func(w io.Writer) { printDecisions(w, &list) })
		},
	}
	output = addOutput(cmd)
	which.addFlags(cmd, "decisions", "decisions")
	cmd.Flags().StringVar(&which.victim, "victim", "", "only decisions by which the pod of this name or UID was to go")
	cmd.AddCommand(newVerify(conn))
	return cmd
}

func newVerify(conn *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "verify [FILE]",
		Short: "Judge recorded decisions again by laws 2 to 7 and D7",
		Long: `Judges each decision by which pods were to go, from the numbers that it was made
with: those that the scheduler remembers, or those in FILE, which "decisions -o
yaml" or "-o json" wrote. "-" is the standard input. With FILE no cluster is needed.

Not judged, because the record has no numbers for it: law 1 (opted-out pods only as
the last resort), law 3 by application, fences and policies of law 7, and the filters.

Exit codes: 0 all are lawful, 1 one breaks a law (a defect of the scheduler: please
report it with the decision), 2 the decisions could not be read.`,
		Example: "  kubectl paddock decisions verify\n" +
			"  kubectl paddock decisions --limit 1000 -o yaml > decisions.yaml\n" +
			"  kubectl paddock decisions verify decisions.yaml",
		Args: arguments(0, 1, "no arguments, or one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := recorded(cmd, conn, args)
			if err != nil {
				return err
			}
			return verify(cmd.OutOrStdout(), list)
		},
	}
}

// recorded reads decisions from a file, or from the scheduler.
func recorded(cmd *cobra.Command, conn *connection, args []string) (*documents.Decisions, error) {
	var list documents.Decisions
	if len(args) == 0 {
		all := about{limit: math.MaxInt32}
		return &list, all.read(cmd, conn, decisionsPath, &list)
	}
	text, err := readFile(args[0], cmd.InOrStdin(), maxAnswer)
	if err != nil {
		return nil, err
	}
	err = yaml.Unmarshal(text, &list)
	if err == nil && (list.Decisions == nil || slices.Contains(list.Decisions, nil)) {
		err = errors.New("it has no list of decisions")
	}
	if err != nil {
		return nil, fmt.Errorf("%s is no record of decisions: %w; record one with: kubectl paddock decisions -o yaml", args[0], err)
	}
	return &list, nil
}

// verify prints what each decision breaks, and how many were judged.
func verify(w io.Writer, list *documents.Decisions) error {
	var lawful, unlawful, without int
	var b strings.Builder
	for _, d := range list.Decisions {
		broken, judged := d.Verify()
		for _, what := range broken {
			fmt.Fprintf(&b, "%s\n", printable(fmt.Sprintf("%s: %s: %s", d.ID, named(d.Asker), what)))
		}
		switch {
		case !judged:
			without++
		case len(broken) > 0:
			unlawful++
		default:
			lawful++
		}
	}
	fmt.Fprintf(&b, "%d lawful, %d break a law, %d without victims or numbers\n", lawful, unlawful, without)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if unlawful > 0 {
		return errFound
	}
	return nil
}

func printDecisions(w io.Writer, list *documents.Decisions) {
	if len(list.Decisions) == 0 {
		fmt.Fprintln(w, "No decisions.")
		return
	}
	t := newTable("TIME", "POD", "QUEUE", "OUTCOME", "NODE", "VICTIMS", "STAGE", "MESSAGE")
	for _, d := range list.Decisions {
		outcome := string(d.Outcome)
		if d.Times > 1 {
			outcome += fmt.Sprintf(" (%d times)", d.Times)
		}
		t.add(moment(d.Last), named(d.Asker), cmp.Or(d.Queue, "-"), outcome, cmp.Or(d.Node, "-"), victimsOf(d), stageOf(d), d.Message)
	}
	t.write(w)
}

// mostNamed is how many pods a cell names.
const mostNamed = 3

func victimsOf(d *record.Decision) string {
	names := make([]string, 0, len(d.Victims))
	for i := range d.Victims {
		names = append(names, named(d.Victims[i].Ref))
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
func named(p objects.Ref) string {
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
