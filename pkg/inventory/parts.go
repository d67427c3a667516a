package inventory

import (
	"maps"
	"slices"
)

// parts are all applications or all nodes, by key. R is the store's record of one, M is its
// form in views.
type parts[K comparable, R, M any] struct {
	by     map[K]*part[R, M]
	stale  []*part[R, M]
	listed []*part[R, M] // those of the last list, in its order
	// moved is true if members of the list came or went, or if their order changed.
	moved   bool
	place   func(*Pod) *int32
	make    func(*R, []*Pod) *M
	compare func(a, b *M) int
}

// part is an application or a node. It is rebuilt for the next view when it is stale.
type part[R, M any] struct {
	record *R // nil before the source reports it, and for an unknown node
	pods   members
	made   *M // the version of the last view; nil before the first
	stale  bool
}

func (p *parts[K, R, M]) get(key K) *part[R, M] {
	x := p.by[key]
	if x == nil {
		x = &part[R, M]{pods: members{place: p.place}}
		p.by[key] = x
	}
	return x
}

func (p *parts[K, R, M]) touch(x *part[R, M]) {
	if !x.stale {
		x.stale = true
		p.stale = append(p.stale, x)
	}
}

func (p *parts[K, R, M]) same() bool { return len(p.stale) == 0 && !p.moved }

// refresh returns the list as it is now. It keeps the order of the list before, unless members
// came, went or moved.
func (p *parts[K, R, M]) refresh(before []*M) []*M {
	if p.same() {
		return before
	}
	for _, x := range p.stale {
		if x.stale = false; x.record != nil {
			x.made = p.make(x.record, slices.SortedFunc(slices.Values(x.pods.list), oldestFirst))
		}
	}
	if p.moved {
		p.listed = slices.DeleteFunc(slices.Collect(maps.Values(p.by)), func(x *part[R, M]) bool { return x.record == nil })
		slices.SortFunc(p.listed, func(a, b *part[R, M]) int { return p.compare(a.made, b.made) })
	}
	out := make([]*M, 0, len(p.listed))
	for _, x := range p.listed {
		out = append(out, x.made)
	}
	p.stale, p.moved = nil, false
	return out
}
