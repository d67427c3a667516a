package planner

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Digest contains what every plan reads of a node's pods, leaf by leaf, in one piece of
// memory. A plan that follows a pointer to each pod of a large cluster spends most of its
// time on cache misses.
type Digest struct {
	Entries []Entry
	Runs    []Run
	// amounts are the requests of the entries, width amounts each.
	amounts []int64
	width   int
	// Least is the smallest request of all entries, by type; empty without entries.
	Least []int64
}

// Entry is a pod with the data that the laws about single victims read.
type Entry struct {
	Pod        *Pod
	Created    int64  // Unix seconds; order within one second is ignored
	App        uint32 // hash of pod.App
	Priority   int32
	Budget     int32 // index of the only one, or NoBudget, or ManyBudgets
	Class      Class // its class, whatever its budgets still allow
	Protection Protection
	Originates bool // it is an originator
	Slow       bool
}

// Class is the rank of a single victim by the first three criteria.
type Class uint8

// The classes, the least harmful first. A violator is covered by a budget without
// disruptions left.
const (
	ClassPlain Class = iota
	ClassOriginator
	ClassViolator
	ClassOptedOut
	Classes
)

// In Entry.Budget: NoBudget for a pod that no budget covers, ManyBudgets for one that several
// cover.
const (
	NoBudget    = -1
	ManyBudgets = -2
)

// Run is the entries of one leaf.
type Run struct {
	Leaf     queues.ID
	From, To int32 // the entries from From on and before To
	// Protected is the number of protected entries.
	Protected int32
}

// newDigest makes the digest of a node's pods.
func newDigest(pods []*Pod) *Digest {
	d := &Digest{Entries: make([]Entry, len(pods))}
	for i, p := range pods {
		d.Entries[i] = newEntry(p)
		d.width = max(d.width, len(p.Request))
	}
	slices.SortStableFunc(d.Entries, func(a, b Entry) int { return cmp.Compare(a.Pod.Leaf, b.Pod.Leaf) })
	d.amounts = make([]int64, len(pods)*d.width)
	for i, e := range d.Entries {
		copy(d.amounts[i*d.width:], e.Pod.Request)
		if i == 0 {
			d.Least = slices.Clone(d.Request(0))
		}
		for t, amount := range d.Request(i) {
			d.Least[t] = min(d.Least[t], amount)
		}
		if i == 0 || d.Entries[i-1].Pod.Leaf != e.Pod.Leaf {
			d.Runs = append(d.Runs, Run{Leaf: e.Pod.Leaf, From: int32(i)})
		}
		r := &d.Runs[len(d.Runs)-1]
		r.To = int32(i + 1)
		if e.Protection != Unprotected {
			r.Protected++
		}
	}
	return d
}

func newEntry(p *Pod) Entry {
	e := Entry{
		Pod:        p,
		Created:    p.Created.Unix(),
		App:        HashApp(p.App),
		Priority:   p.Priority,
		Protection: p.Protection,
		Originates: p.Originator,
		Slow:       p.Slow,
	}
	switch len(p.Budgets) {
	case 0:
		e.Budget = NoBudget
	case 1:
		e.Budget = int32(p.Budgets[0])
	default:
		e.Budget = ManyBudgets
	}
	switch {
	case p.OptedOut:
		e.Class = ClassOptedOut
	case p.Originator:
		e.Class = ClassOriginator
	}
	return e
}

// Request returns the request of an entry.
func (d *Digest) Request(i int) Amounts {
	end := (i + 1) * d.width
	return d.amounts[i*d.width : end : end]
}

// Digest returns the digest of a node.
func (n *Node) Digest() *Digest { return n.digest }

// HashApp is FNV-1a. Names with different hashes need not be compared.
func HashApp(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}
