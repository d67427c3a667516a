package framework_test

import (
	"cmp"
	"math/big"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// naive is the order of queues from first principles, for queues that are children of
// root and have one application each, and pods of one core: take the oldest pod of the
// first queue by the current usage, start over. It shares no code with the plugins.
// Package order compares its index with all criteria, on all levels.
type naive struct {
	queues   []*naiveQueue // by name
	capacity struct{ cores, pods int64 }
}

type naiveQueue struct {
	name       string
	guaranteed int64         // cores
	used       int64         // pods, and cores
	pending    []*corev1.Pod // the oldest first
}

// share is the larger of two ratios: cores to guaranteed cores, and pods to all pods.
func (n *naive) share(q *naiveQueue) *big.Rat {
	byCores, byPods := big.NewRat(q.used, q.guaranteed), big.NewRat(q.used, n.capacity.pods)
	if byCores.Cmp(byPods) < 0 {
		return byPods
	}
	return byCores
}

// compareQueues orders by share, number of waiting pods, name.
func (n *naive) compareQueues(a, b *naiveQueue) int {
	return cmp.Or(n.share(a).Cmp(n.share(b)), cmp.Compare(len(b.pending), len(a.pending)), strings.Compare(a.name, b.name))
}

// comparePods orders by age, UID.
func comparePods(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(string(a.UID), string(b.UID)))
}

// first returns the queue that has the next pod; nil without a waiting pod.
func (n *naive) first() *naiveQueue {
	var first *naiveQueue
	for _, q := range n.queues {
		if len(q.pending) > 0 && (first == nil || n.compareQueues(q, first) < 0) {
			first = q
		}
	}
	return first
}

// queue returns the queue of a name, which exists.
func (n *naive) queue(name string) *naiveQueue {
	return n.queues[slices.IndexFunc(n.queues, func(q *naiveQueue) bool { return q.name == name })]
}

// arrive adds pending pods.
func (n *naive) arrive(pods ...*corev1.Pod) {
	for _, p := range pods {
		q := n.queue(p.Labels["queue"])
		q.pending = append(q.pending, p)
	}
	for _, q := range n.queues {
		slices.SortFunc(q.pending, comparePods)
	}
}

// take records that a pending pod got a node.
func (n *naive) take(p *corev1.Pod) bool {
	q := n.queue(p.Labels["queue"])
	i := slices.IndexFunc(q.pending, func(other *corev1.Pod) bool { return other.UID == p.UID })
	if i < 0 {
		return false
	}
	q.pending = slices.Delete(slices.Clone(q.pending), i, i+1)
	q.used++
	return true
}

// copy returns a copy on which the future can be played.
func (n *naive) copy() *naive {
	c := &naive{capacity: n.capacity}
	for _, q := range n.queues {
		d := *q
		c.queues = append(c.queues, &d)
	}
	return c
}

// rank is how many other pods would get a node before the pod if from now on the first of
// the order got the next node each time; at most limit.
func (n *naive) rank(uid types.UID, limit int) int {
	c := n.copy()
	for rank := range limit {
		q := c.first()
		if q == nil || q.pending[0].UID == uid {
			return rank
		}
		q.pending = q.pending[1:]
		q.used++
	}
	return limit
}
