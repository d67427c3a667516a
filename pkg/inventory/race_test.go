package inventory

import (
	"fmt"
	"sync"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// TestManyReadersOneWriter is for the race detector, and for views that go
// back in time or mix two moments: a pod that is on a node is in its application.
func TestManyReadersOneWriter(t *testing.T) {
	s := newStore()
	inv := New(s)
	w := truth{pods: map[string]objects.Pod{}, nodes: map[string]int{}}
	for i := range 4 {
		w.do(move{"node", i, 3}, s)
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			before := uint64(0)
			for {
				v := inv.View()
				if v.Queues.Generation() < before {
					t.Errorf("generation %d after %d", v.Queues.Generation(), before)
					return
				}
				before = v.Queues.Generation()
				if err := consistent(v); err != nil {
					t.Error(err)
					return
				}
				inv.Whys(v.Unplaced)
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for n := range 2000 {
		i := n % 10
		w.do(move{[]string{"pod", "bind", "delete"}[n/10%3], i, n % 3}, s)
	}
	close(stop)
	readers.Wait()
	inv.View()
	expect.Holds(t, inv.Check())
}

func TestInconsistentViewsAreNoticed(t *testing.T) {
	s := newStore()
	w := truth{pods: map[string]objects.Pod{}, nodes: map[string]int{}}
	w.do(move{"node", 1, 3}, s)
	w.do(move{"pod", 0, 1}, s)
	w.do(move{"bind", 0, 1}, s)
	expect.That(t, consistent(New(faulty{s, "pods are stuck"}).View()) != nil,
		"a pod that runs for its queue and waits for its application is not noticed")
}

// consistent holds what a view says in several places against each other.
func consistent(v *View) error {
	onNodes, inApps := 0, 0
	for _, n := range v.Nodes {
		onNodes += len(n.Allocations)
	}
	var used, pending int64
	for _, a := range v.Applications {
		inApps += len(a.Allocations)
		used += int64(a.Usage.Allocated.Get("vcore"))
		pending += int64(len(a.Requests))
	}
	root := v.Queues.Root()
	if onNodes != inApps || v.Containers() != inApps || used != int64(root.Allocated.Get("vcore")) || pending != int64(root.Pending.Get("pods")) {
		return fmt.Errorf("%d pods on nodes, %d in applications; they use %d of root's %v, and %d of its %v wait",
			onNodes, inApps, used, root.Allocated, pending, root.Pending)
	}
	return nil
}
