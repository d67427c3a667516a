package forecast

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Books are what was recorded of a cluster.
type Books struct {
	// Capacity is what the nodes hold. Where it is empty, nothing is known of
	// nodes, and no guarantee is compared with them.
	Capacity resources.Vector
	// Entries are the queues, each path once, parents before children.
	Entries []Entry
}

// Entry is what was recorded of one queue.
type Entry struct {
	// Path is the full path, such as "root.a".
	Path string
	// Leaf and Managed are as in [queues.Settings]; Draining is its state.
	Leaf, Managed, Draining bool
	// Guaranteed and Max are the queue's own. Those of a dynamic queue, which may be
	// a template's or a namespace's, are taken over; managed queues have those of
	// the configuration.
	Guaranteed resources.Guarantee
	Max        resources.Limit
	// Allocated and Pending are those of the queue with all below it.
	Allocated, Pending resources.Vector
}

// Under returns the tree the cluster would have if it ran with the first
// specification and went over to the next ones, one after the other. Other are
// the managed queues in the books that the first specification does not name, or
// gives another guarantee or max: it is then not what the cluster runs. Those it
// does not name are treated as removed. The error names an entry that is no queue.
func (b Books) Under(first *config.Spec, next ...*config.Spec) (tree *queues.Snapshot, other []string, err error) {
	d := queues.NewDraftFrom(first)
	d.SetCapacity(b.Capacity)
	for _, e := range b.Entries {
		same, err := enter(d, e)
		if err != nil {
			return nil, nil, err
		}
		if !same {
			other = append(other, e.Path)
		}
	}
	b.charge(d)
	for _, spec := range next {
		d.Apply(spec)
	}
	return d.Publish(nil), other, nil
}

// enter makes the queue of an entry where it is missing, and tells whether the
// tree agrees with the entry.
func enter(d *queues.Draft, e Entry) (same bool, err error) {
	segments := strings.Split(e.Path, ".")
	if segments[0] != config.RootName {
		return false, fmt.Errorf("queue %q is not below %s", e.Path, config.RootName)
	}
	if slices.Contains(segments, "") {
		return false, fmt.Errorf("queue %q: a name in it is empty", e.Path)
	}
	if q, ok := d.Find(e.Path); ok {
		free := q.IsRoot() || !e.Managed || e.Draining // of what the configuration says
		return free || q.Guaranteed.Equal(e.Guaranteed) && q.Max.Equal(e.Max), nil
	}
	id := d.AddDynamic(e.Path, "")
	q := d.Queue(id)
	parent := d.Queue(q.Parent)
	s := *q.Settings
	s.Leaf, s.Guaranteed, s.Max = e.Leaf, e.Guaranteed, e.Max
	s.PathMax = s.Max.Min(parent.PathMax)
	if !e.Leaf {
		s.Template = parent.Template
	}
	if e.Managed {
		s.Managed, s.State = true, queues.Draining
	}
	d.SetSettings(id, s)
	return !e.Managed || e.Draining, nil
}

// charge gives every queue what it uses itself: what is recorded of it without
// what is recorded of its children.
func (b Books) charge(d *queues.Draft) {
	type sums struct{ allocated, pending resources.Vector }
	below := map[string]sums{} // by path of the parent
	for _, e := range b.Entries {
		if i := strings.LastIndexByte(e.Path, '.'); i >= 0 {
			s := below[e.Path[:i]]
			below[e.Path[:i]] = sums{s.allocated.Add(e.Allocated), s.pending.Add(e.Pending)}
		}
	}
	for _, e := range b.Entries {
		q, ok := d.Find(e.Path)
		if !ok {
			continue
		}
		s := below[e.Path]
		allocated, pending := e.Allocated.Sub(s.allocated).Floor0(), e.Pending.Sub(s.pending).Floor0()
		if allocated.IsZero() && pending.IsZero() {
			continue
		}
		d.Update(q.ID, func(u *queues.Usage) {
			u.Allocated, u.Pending = u.Allocated.Add(allocated), u.Pending.Add(pending)
		})
	}
}

// own is what a queue uses itself, or waits for, without the queues below it.
func own(v queues.View, q *queues.Queue, of func(*queues.Queue) resources.Vector) resources.Vector {
	own := of(q)
	for _, c := range q.Children {
		own = own.Sub(of(v.Queue(c)))
	}
	return own.Floor0()
}
