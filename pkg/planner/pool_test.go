package planner_test

import (
	"fmt"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// misers is a cluster in which queue root.p is at its max. Most of its queues have many
// pods and may lose one each. root.p.c has a few pods of a higher priority and may lose
// them all. The asker, of root.p.a, requests as much as those few pods.
func misers(queues, pods, few int) *model {
	m := pair()
	m.types = []string{"gpu"}
	p := m.addQueue(0, "p")
	queue := func(name string, guaranteed int64) int {
		q := m.addQueue(p, name)
		m.queues[q].guaranteed[0] = guaranteed
		return q
	}
	m.pods, m.nodes = nil, nil
	place := func(q int, name string, priority int32) {
		m.nodes = append(m.nodes, &mnode{fmt.Sprintf("n%03d", len(m.nodes)), []int64{100}})
		m.pods = append(m.pods, &mpod{
			uid: name, app: fmt.Sprint("of", q), queue: q, node: len(m.nodes) - 1, request: []int64{1}, created: len(m.pods), priority: priority,
		})
	}
	for i := range queues {
		q := queue(fmt.Sprint("b", i), int64(pods-1))
		for k := range pods {
			place(q, fmt.Sprintf("b%02d-%03d", i, k), 0)
		}
	}
	c := queue("c", 0)
	for k := range few {
		place(c, fmt.Sprintf("c-%02d", k), 1)
	}
	a := queue("a", int64(few))
	m.queues[p].max[0] = int64(queues*pods + few)
	m.ask.queue, m.ask.request, m.ask.priority = a, []int64{int64(few)}, 5
	return m
}

// TestPoolHasRoomForAll: queues that have many pods and may lose few do not displace a
// queue that may lose what is needed.
func TestPoolHasRoomForAll(t *testing.T) {
	for _, c := range []struct{ queues, pods, few int }{{1, 40, 3}, {1, 200, 3}, {3, 60, 6}, {12, 50, 10}, {40, 5, 41}} {
		m := misers(c.queues, c.pods, c.few)
		w, ask, p := m.world(nil)
		d := search.Plan(w, ask, p)
		if err := judge.Lawful(w, d, p); d.Outcome != planner.Preempt || err != nil {
			t.Errorf("%+v: %s: %v", c, d, err)
			continue
		}
		if len(d.Victims) != c.few {
			t.Errorf("%+v: %d victims", c, len(d.Victims))
		}
	}
}
