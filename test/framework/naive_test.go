package framework_test

import (
	"cmp"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// naive is the hierarchical order from first principles, for queues that are children of
// root and pods of one core: sort all pending pods by the current usage, take the first,
// start over. It shares no code with the plugins and has no index except a sorted list of
// pods per application.
type naive struct {
	queues   []*naiveQueue // by name
	capacity struct{ cores, pods int64 }
}

type naiveQueue struct {
	name       string
	guaranteed int64 // cores; 0 is none
	fair       bool  // applications by share, not by age
	used       int64 // pods, and cores
	apps       []*naiveApp
}

type naiveApp struct {
	queue     *naiveQueue
	name      string
	submitted time.Time
	used      int64
	pending   []*corev1.Pod // in order
}

// pending tells whether any pod of the queue waits.
func (q *naiveQueue) pending() bool { return q.count() > 0 }

func (q *naiveQueue) count() int {
	n := 0
	for _, a := range q.apps {
		n += len(a.pending)
	}
	return n
}

func (q *naiveQueue) priority() int32 {
	var top int32
	first := true
	for _, a := range q.apps {
		if len(a.pending) > 0 && (first || a.priority() > top) {
			top, first = a.priority(), false
		}
	}
	return top
}

func (a *naiveApp) priority() int32 { return *a.pending[0].Spec.Priority }

// share is the larger of two ratios: cores to guaranteed cores (to all cores without a
// guarantee), and pods to all pods.
func (n *naive) share(used, guaranteed int64) *big.Rat {
	cores := guaranteed
	if cores == 0 {
		cores = n.capacity.cores
	}
	byCores, byPods := big.NewRat(used, cores), big.NewRat(used, n.capacity.pods)
	if byCores.Cmp(byPods) < 0 {
		return byPods
	}
	return byCores
}

// compareQueues orders by priority, share, number of waiting pods, name.
func (n *naive) compareQueues(a, b *naiveQueue) int {
	return cmp.Or(
		cmp.Compare(b.priority(), a.priority()),
		n.share(a.used, a.guaranteed).Cmp(n.share(b.used, b.guaranteed)),
		cmp.Compare(b.count(), a.count()),
		strings.Compare(a.name, b.name),
	)
}

// compareApps orders by priority, then age or share, then age, then name.
func (n *naive) compareApps(a, b *naiveApp) int {
	byPriority := cmp.Compare(b.priority(), a.priority())
	byAge := cmp.Or(a.submitted.Compare(b.submitted), strings.Compare(a.name, b.name))
	if a.queue.fair {
		return cmp.Or(byPriority,
			n.share(a.used, a.queue.guaranteed).Cmp(n.share(b.used, b.queue.guaranteed)), byAge)
	}
	return cmp.Or(byPriority, byAge)
}

// comparePods orders by priority, age, UID.
func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(
		cmp.Compare(*b.Spec.Priority, *a.Spec.Priority),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		strings.Compare(string(a.UID), string(b.UID)),
	)
}

// sorted returns the full sort of all pending pods.
func (n *naive) sorted() []*corev1.Pod {
	type place struct {
		pod *corev1.Pod
		app *naiveApp
	}
	var all []place
	for _, q := range n.queues {
		for _, a := range q.apps {
			for _, p := range a.pending {
				all = append(all, place{p, a})
			}
		}
	}
	slices.SortFunc(all, func(x, y place) int {
		switch {
		case x.app.queue != y.app.queue:
			return n.compareQueues(x.app.queue, y.app.queue)
		case x.app != y.app:
			return n.compareApps(x.app, y.app)
		}
		return comparePods(x.pod, y.pod)
	})
	out := make([]*corev1.Pod, len(all))
	for i, p := range all {
		out[i] = p.pod
	}
	return out
}

// first returns the first of sorted, found without sorting; nil if no pod waits.
func (n *naive) first() *naiveApp {
	var queue *naiveQueue
	for _, q := range n.queues {
		if q.pending() && (queue == nil || n.compareQueues(q, queue) < 0) {
			queue = q
		}
	}
	if queue == nil {
		return nil
	}
	var app *naiveApp
	for _, a := range queue.apps {
		if len(a.pending) > 0 && (app == nil || n.compareApps(a, app) < 0) {
			app = a
		}
	}
	return app
}

func (n *naive) queue(name string) *naiveQueue {
	for _, q := range n.queues {
		if q.name == name {
			return q
		}
	}
	return nil
}

func (n *naive) app(p *corev1.Pod) *naiveApp {
	q, name := n.queue(p.Labels["queue"]), p.Labels["applicationId"]
	for _, a := range q.apps {
		if a.name == name {
			return a
		}
	}
	a := &naiveApp{queue: q, name: name, submitted: p.CreationTimestamp.Time}
	q.apps = append(q.apps, a)
	return a
}

// arrive adds pending pods.
func (n *naive) arrive(pods ...*corev1.Pod) {
	for _, p := range pods {
		a := n.app(p)
		if p.CreationTimestamp.Time.Before(a.submitted) {
			a.submitted = p.CreationTimestamp.Time
		}
		a.pending = append(a.pending, p)
	}
	for _, q := range n.queues {
		for _, a := range q.apps {
			slices.SortFunc(a.pending, comparePods)
		}
	}
}

// take records that a pending pod got a node.
func (n *naive) take(p *corev1.Pod) bool {
	a := n.app(p)
	i := slices.IndexFunc(a.pending, func(q *corev1.Pod) bool { return q.UID == p.UID })
	if i < 0 {
		return false
	}
	a.pending = slices.Delete(slices.Clone(a.pending), i, i+1)
	a.charge(1)
	return true
}

func (a *naiveApp) charge(d int64) {
	a.used += d
	a.queue.used += d
}

// copy returns a copy on which the future can be played.
func (n *naive) copy() *naive {
	c := &naive{capacity: n.capacity}
	for _, q := range n.queues {
		d := *q
		d.apps = nil
		for _, a := range q.apps {
			b := *a
			b.queue = &d
			d.apps = append(d.apps, &b)
		}
		c.queues = append(c.queues, &d)
	}
	return c
}

// rank is how many other pods would get a node before the pod if from now on the first of
// the sort got the next node each time; at most limit.
func (n *naive) rank(uid types.UID, limit int) int {
	a := n.first()
	if a != nil && a.pending[0].UID == uid {
		return 0
	}
	c := n.copy()
	for rank := range limit {
		a := c.first()
		if a == nil || a.pending[0].UID == uid {
			return rank
		}
		a.pending = a.pending[1:]
		a.charge(1)
	}
	return limit
}

// The list of applications is a shortcut, so it is compared with the full sort.
func TestNaiveFirstIsFirstOfFullSort(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n := &naive{}
		n.capacity.cores, n.capacity.pods = 50, 100
		for _, name := range []string{"a", "b", "c"} {
			n.queues = append(n.queues, &naiveQueue{name: name, guaranteed: random.Int64N(4), fair: random.IntN(2) == 0})
		}
		for i := range random.IntN(60) {
			p := inQueue(pod(managed, "p"+string(rune('A'+i)), random.IntN(20)),
				[]string{"a", "b", "c"}[random.IntN(3)], []string{"x", "y"}[random.IntN(2)])
			*p.Spec.Priority = int32(random.IntN(3))
			n.arrive(p)
			n.app(p).charge(random.Int64N(3))
		}
		sorted := n.sorted()
		for i, a := 0, n.first(); a != nil; i, a = i+1, n.first() {
			if want := n.sorted()[0]; a.pending[0] != want {
				t.Fatalf("pick %d is %s, the full sort says %s", i, a.pending[0].Name, want.Name)
			}
			if rank := n.rank(sorted[len(sorted)-1].UID, 1000); i < len(sorted)-1 && rank > n.copy().count() {
				t.Fatalf("rank %d of %d pods", rank, n.count())
			}
			n.take(a.pending[0])
		}
	}
}

func (n *naive) count() int {
	all := 0
	for _, q := range n.queues {
		all += q.count()
	}
	return all
}
