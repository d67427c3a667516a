package inventory

import (
	"hash/maphash"
)

// named finds pods by their names. Several have one name when a pod was made anew and the
// end of the first was not reported yet. Only a hash of the name is kept, and pods with
// the same hash form a chain.
type named struct {
	hash  func(podName) uint64
	first map[uint64]*Pod
}

func newNamed() named {
	seed := maphash.MakeSeed()
	return named{hash: func(n podName) uint64 { return maphash.Comparable(seed, n) }, first: map[uint64]*Pod{}}
}

// podName is how people name a pod.
type podName struct{ namespace, name string }

func (n *named) add(p *Pod) {
	h := n.hash(podName{p.Namespace, p.Name})
	p.next = n.first[h]
	n.first[h] = p
}

// remove takes out a pod, if it is there.
func (n *named) remove(p *Pod) {
	h := n.hash(podName{p.Namespace, p.Name})
	if n.first[h] == p {
		if n.first[h] = p.next; p.next == nil {
			delete(n.first, h)
		}
		return
	}
	for before := n.first[h]; before != nil; before = before.next {
		if before.next == p {
			before.next = p.next
			return
		}
	}
}

// youngest returns the youngest pod of a name; nil for none.
func (n *named) youngest(name podName) *Pod {
	var found *Pod
	for p := n.first[n.hash(name)]; p != nil; p = p.next {
		if p.Namespace == name.namespace && p.Name == name.name && (found == nil || oldestFirst(found, p) < 0) {
			found = p
		}
	}
	return found
}
