package planner

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// digest contains what every plan reads of a node's pods, leaf by leaf, in one piece of
// memory. A plan that follows a pointer to each pod of a large cluster spends most of its
// time on cache misses.
type digest struct {
	entries []entry
	runs    []run
	// amounts are the requests of the entries, width amounts each.
	amounts []int64
	width   int
	// least and most are the smallest and the largest request of all entries, by type;
	// empty without entries.
	least, most []int64
}

// entry is a pod with the data that the laws about single victims read.
type entry struct {
	pod        *Pod
	created    int64  // in seconds; order within one second is ignored
	app        uint32 // hash of pod.App
	priority   int32
	budget     int32 // index of the only one, or noBudget, or manyBudgets
	kind       class // its class, whatever its budgets still allow
	protection Protection
	originates bool // it is an originator
	slow       bool
}

const (
	noBudget    = -1
	manyBudgets = -2
)

// run is the entries of one leaf.
type run struct {
	leaf queues.ID
	to   int32 // end of the entries, which begin at the end of the run before
	// protected is the number of protected entries.
	protected int32
}

// newDigest makes the digest of a node's pods.
func newDigest(pods []*Pod) *digest {
	d := &digest{entries: make([]entry, len(pods))}
	for i, p := range pods {
		d.entries[i] = newEntry(p)
		d.width = max(d.width, len(p.Request))
	}
	slices.SortStableFunc(d.entries, func(a, b entry) int { return cmp.Compare(a.pod.Leaf, b.pod.Leaf) })
	d.amounts = make([]int64, len(pods)*d.width)
	for i, e := range d.entries {
		copy(d.amounts[i*d.width:], e.pod.Request)
		if i == 0 {
			d.least, d.most = slices.Clone(d.request(0)), slices.Clone(d.request(0))
		}
		for t, amount := range d.request(i) {
			d.least[t], d.most[t] = min(d.least[t], amount), max(d.most[t], amount)
		}
		if i == 0 || d.entries[i-1].pod.Leaf != e.pod.Leaf {
			d.runs = append(d.runs, run{leaf: e.pod.Leaf})
		}
		r := &d.runs[len(d.runs)-1]
		r.to = int32(i + 1)
		if e.protection != Unprotected {
			r.protected++
		}
	}
	return d
}

func newEntry(p *Pod) entry {
	e := entry{pod: p, created: p.Created.Unix(), app: hash(p.App), priority: p.Priority, protection: p.Protection, originates: p.Originator, slow: p.Slow}
	switch len(p.Budgets) {
	case 0:
		e.budget = noBudget
	case 1:
		e.budget = int32(p.Budgets[0])
	default:
		e.budget = manyBudgets
	}
	switch {
	case p.OptedOut:
		e.kind = optedOut
	case p.Originator:
		e.kind = originator
	}
	return e
}

// request returns the request of an entry.
func (d *digest) request(i int) Amounts {
	end := (i + 1) * d.width
	return d.amounts[i*d.width : end : end]
}

// read returns the digest of a node. For a Node literal it makes a new digest on each
// call.
func (n *Node) read() *digest {
	if n.digest != nil {
		return n.digest
	}
	return newDigest(n.Pods)
}

// hash is FNV-1a. Names with different hashes need not be compared.
func hash(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}
