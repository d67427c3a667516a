package judge

import (
	"fmt"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// roomOnNode judges whether the victims free what the asker lacks on its node.
func (j *judge) roomOnNode() error {
	free := vectorOf(j.snapshot, j.node.Free)
	for i, v := range j.victims {
		if j.nodes[i] == j.node.Name {
			free = free.Add(vectorOf(j.snapshot, v.Request))
		}
	}
	for name, want := range j.ask.All() {
		if free.Get(name) < want {
			return fmt.Errorf("node %s then has %s %s, and the asker requests %s",
				j.node.Name, resources.Format(name, free.Get(name)), name, resources.Format(name, want))
		}
	}
	return nil
}

// roomBelowMax judges whether no queue of the asker exceeds its max once the victims are
// gone.
func (j *judge) roomBelowMax(victims []*planner.Pod) error {
	for _, q := range j.pathToRoot(j.d.Ask.Leaf) {
		if q.IsRoot() {
			continue
		}
		used := q.Used().Add(q.Arriving)
		for _, v := range victims {
			if queues.Within(j.snapshot.Queues.Queue(v.Leaf).Path, q.Path) {
				used = used.Sub(vectorOf(j.snapshot, v.Request))
			}
		}
		if !q.Max.Allows(used, j.ask) {
			return fmt.Errorf("law 7: queue %s would still be over its max", q.Path)
		}
	}
	return nil
}

// neededElsewhere judges whether every victim on another node is needed for a max (P3).
func (j *judge) neededElsewhere() []error {
	var errs []error
	for i, v := range j.victims {
		if j.nodes[i] == j.node.Name {
			continue
		}
		others := slices.Delete(slices.Clone(j.victims), i, i+1)
		if j.roomBelowMax(others) == nil {
			errs = append(errs, fmt.Errorf("victim %s/%s: P3: it is on node %s and no max needs it", v.Namespace, v.Name, j.nodes[i]))
		}
	}
	return errs
}

// pathToRoot lists the queue and its ancestors, leaf first.
func (j *judge) pathToRoot(id queues.ID) []*queues.Queue {
	return slices.Collect(queues.Ancestors(j.snapshot.Queues, id))
}

// vectorOf returns amounts as a vector.
func vectorOf(snapshot *planner.Snapshot, a planner.Amounts) resources.Vector {
	var entries []resources.Entry
	for t, amount := range a {
		entries = append(entries, resources.Entry{Name: snapshot.Types[t], Amount: resources.Amount(amount)})
	}
	return resources.VectorOf(entries...)
}
