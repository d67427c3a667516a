package main

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// standing is how a queue uses what it is entitled to.
type standing struct {
	Queue string `json:"queue"`
	// Percent is what it uses of what it is entitled to, in the type in which that
	// is most, rounded down; Of says of what: guaranteed or cluster, empty where
	// neither names the type.
	Percent int64  `json:"percent"`
	Of      string `json:"of,omitempty"`
	// Type is that type; the amounts are in it. Empty where nothing is used.
	Type       string            `json:"type,omitempty"`
	Allocated  resources.Amount  `json:"allocated"`
	Guaranteed *resources.Amount `json:"guaranteed,omitempty"`
	Pending    resources.Amount  `json:"pending"`

	share resources.Share
}

func newTop(conn *connection) *cobra.Command {
	var output *format
	var from source
	var all bool
	cmd := &cobra.Command{
		Use:   "top",
		Short: "Show which queues use most of what they are guaranteed",
		Long: `Sorts leaf queues by what they use of their guarantee, in the type in which that
is most. A type that a queue is not guaranteed is measured against the cluster.`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			tree, err := from.tree(cmd.Context(), conn, cmd.InOrStdin())
			if err != nil {
				return err
			}
			list := standings(tree, all)
			return output.write(cmd.OutOrStdout(), list, func(w io.Writer) { printStandings(w, list) })
		},
	}
	output = addOutput(cmd)
	from.addFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "show parents, too")
	return cmd
}

// standings lists the leaves, or all queues, the largest share first.
func standings(tree *documents.Queue, all bool) []standing {
	list := []standing{}
	var visit func(q *documents.Queue)
	visit = func(q *documents.Queue) {
		if all || q.IsLeaf {
			list = append(list, standingOf(q, tree.MaxResource))
		}
		for _, c := range q.Children {
			visit(c)
		}
	}
	visit(tree)
	slices.SortFunc(list, func(a, b standing) int {
		return cmp.Or(b.share.Compare(a.share), cmp.Compare(a.Queue, b.Queue))
	})
	return list
}

func standingOf(q *documents.Queue, cluster map[string]resources.Amount) standing {
	s := standing{Queue: q.QueueName}
	for _, typ := range slices.Sorted(maps.Keys(q.AllocatedResource)) {
		of, what := q.GuaranteedResource[typ], "guaranteed"
		if _, named := q.GuaranteedResource[typ]; !named {
			if of, named = cluster[typ]; !named {
				continue
			}
			what = "cluster"
		}
		used := q.AllocatedResource[typ]
		share := resources.ShareOf(used, of)
		if share.Compare(s.share) > 0 {
			s.share, s.Type, s.Of, s.Percent = share, typ, what, documents.PercentOf(used, of)
		}
	}
	s.Allocated, s.Pending = q.AllocatedResource[s.Type], q.PendingResource[s.Type]
	if g, ok := q.GuaranteedResource[s.Type]; ok {
		s.Guaranteed = &g
	}
	return s
}

func printStandings(w io.Writer, list []standing) {
	t := newTable("QUEUE", ">USES", "OF", "TYPE", ">ALLOCATED", ">GUARANTEED", ">PENDING")
	for _, s := range list {
		if s.Type == "" {
			t.add(s.Queue, "0%", "-", "-", "-", "-", "-")
			continue
		}
		guaranteed := "-"
		if s.Guaranteed != nil {
			guaranteed = resources.Format(s.Type, *s.Guaranteed)
		}
		t.add(s.Queue, strconv.FormatInt(s.Percent, 10)+"%", s.Of, s.Type,
			resources.Format(s.Type, s.Allocated), guaranteed, resources.Format(s.Type, s.Pending))
	}
	t.write(w)
}
