package planner_test

import (
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/planner/search"
)

// TestBarredNodes: no asker is placed on a barred node. The pods of such a node may still
// be preempted for a max. Barred is not called for a node if the laws permit no plan
// there.
func TestBarredNodes(t *testing.T) {
	belowMax := func(m *model) {
		p := m.addQueue(0, "p")
		m.queues[1].parent, m.queues[1].path = p, "root.p.a"
		m.queues[2].parent, m.queues[2].path = p, "root.p.b"
		m.queues[p].max[0] = 6
	}
	for _, c := range []struct {
		name    string
		change  func(m *model)
		barred  string
		node    string
		victims []string
		asked   []string
	}{
		{"the fuller node is barred", func(*model) {}, "n", "other", []string{"v2"}, []string{"n", "other"}},
		{"none is", func(*model) {}, "", "n", []string{"v1"}, []string{"n"}}, // the other node has nothing better
		{"a max is in the way", belowMax, "n", "other", []string{"v2"}, []string{"n", "other"}},
		{"and only pods of the barred node may go", func(m *model) {
			belowMax(m)
			m.pods, m.queues[3].max[0] = m.pods[:2], 4
		}, "n", "other", []string{"v1"}, []string{"n", "other"}},
		{"law 4 stops the asker", func(m *model) { m.queues[1].guaranteed[0] = 0 }, "n", "", nil, nil},
		{"law 4 does, at a max", func(m *model) {
			belowMax(m)
			m.queues[1].guaranteed[0] = 0
		}, "n", "", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := pair()
			m.nodes = append(m.nodes, &mnode{"other", []int64{2}})
			m.pods = append(m.pods, &mpod{uid: "v2", app: "b", queue: 2, node: 1, request: []int64{2}})
			c.change(m)
			w, ask, p := m.world(nil)
			var asked []string
			p.Barred = func(node string) bool {
				asked = append(asked, node)
				return node == c.barred
			}
			d := search.Plan(w, ask, p)
			if d.Node != c.node || !slices.Equal(uids(d), c.victims) || !slices.Equal(asked, c.asked) {
				t.Errorf("%s; asked about %q", d, asked)
			}
		})
	}
}
