package planner_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
)

// TestPlanAgainstOracle compares Plan with brute force on random cases.
func TestPlanAgainstOracle(t *testing.T) {
	againstOracle(t, 20_000, 1, caseKind{"generate(%d, 8)", func(seed uint64) *model { return generate(seed, 8) }}, everyDay)
}

// caseKind draws random cases by their seed; name is the format of the call that
// draws a case again.
type caseKind struct {
	name string
	draw func(seed uint64) *model
}

// upToSixteen are cases with at most as many candidates as are considered exactly. In
// every other case most pods are candidates, on one node.
var upToSixteen = caseKind{"upToSixteen.draw(%d)", func(seed uint64) *model {
	if seed%2 == 0 {
		return generate(seed, 16)
	}
	return generateCrowd(seed, 17)
}}

// sixteen are the minimal frequencies of kinds of cases, in thousandths, among
// upToSixteen.
var sixteen = map[string]uint64{
	"candidates 10": 15, "candidates 12": 10, "candidates 14": 5, "candidates 16": 5,
	"refused": 300, "held": 50, "victims 1": 80, "victims 2": 40, "victims 3": 5,
	"opted out": 10, "violations": 10, "victims elsewhere": 2,
	"stopped by law 2": 100, "stopped by law 3": 40, "stopped by law 4": 40, "stopped by law 5": 40, "stopped by law 6": 40,
	"stopped by law 7": 20, "stopped by P3": 40, "stopped by preemption.policy disabled": 20,
}

// TestPlanAgainstOracleAmongMany uses a few of the cases of the nightly test.
func TestPlanAgainstOracleAmongMany(t *testing.T) {
	againstOracle(t, 2_000, 1, upToSixteen, sixteen)
}

// againstOracle plans in the cases of the seeds from first on, on all cores. Shares are
// the minimal frequencies of kinds of cases, in thousandths.
func againstOracle(t *testing.T, cases, first uint64, kind caseKind, shares map[string]uint64) {
	t.Helper()
	var next atomic.Uint64
	var wrong atomic.Bool
	var work sync.WaitGroup
	var mu sync.Mutex
	all := waitCounts{}
	for range runtime.GOMAXPROCS(0) {
		work.Go(func() {
			mine := waitCounts{}
			for !wrong.Load() {
				seed := first + next.Add(1) - 1
				if seed >= first+cases {
					break
				}
				m := kind.draw(seed)
				o := newOracle(m)
				want, found := o.best()
				if err := o.check(want, found, real, seed); err != nil {
					wrong.Store(true)
					t.Errorf(kind.name+": %v\n%s", seed, err, m)
				}
				mine.count(o, want, found)
			}
			mu.Lock()
			defer mu.Unlock()
			all.add(mine)
		})
	}
	work.Wait()
	all.require(t, cases, shares)
	t.Log(all)
}

// waitCounts counts kinds of cases, to notice a generator that makes cases without variety.
type waitCounts map[string]uint64

func (c waitCounts) count(o *oracle, best choice, found bool) {
	switch {
	case !found:
		c["refused"]++
	case len(best.victims) == 0:
		c["held"]++
	default:
		c[fmt.Sprintf("victims %d", min(len(best.victims), 3))]++
	}
	c[fmt.Sprintf("candidates %d", o.candidates)]++
	if best.cost.optedOut > 0 {
		c["opted out"]++
	}
	if best.cost.violations > 0 {
		c["violations"]++
	}
	if slices.ContainsFunc(best.victims, func(i int) bool { return o.pods[i].node != best.node }) {
		c["victims elsewhere"]++
	}
	for law := range o.stoppedBy {
		c["stopped by "+string(law)]++
	}
}

func (c waitCounts) add(d waitCounts) {
	for what, n := range d {
		c[what] += n
	}
}

// everyDay is the minimal frequency of kinds of cases, in thousandths, among small ones.
var everyDay = map[string]uint64{
	"refused": 300, "held": 50, "victims 1": 80, "victims 2": 20, "victims 3": 2, "candidates 5": 10, "candidates 7": 2, "candidates 8": 2,
	"opted out": 10, "violations": 10, "victims elsewhere": 5,
	"stopped by law 2": 40, "stopped by law 3": 40, "stopped by law 4": 40, "stopped by law 5": 40, "stopped by law 6": 40,
	"stopped by law 7": 20, "stopped by P3": 40, "stopped by preemption.policy disabled": 20, "stopped by foreign pod": 40,
	"stopped by pod of a DaemonSet": 20, "stopped by static pod": 20, "stopped by leaving already": 20, "stopped by being bound": 20,
}

// require fails unless there was at least the given share, in thousandths, of each kind
// of case.
func (c waitCounts) require(t *testing.T, cases uint64, shares map[string]uint64) {
	t.Helper()
	for what, least := range shares {
		if c[what]*1000 < least*cases {
			t.Errorf("%d of %d cases have %q, want %d in 1000", c[what], cases, what, least)
		}
	}
}

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
			snapshot, ask, p := m.snapshot(nil)
			var asked []string
			p.Barred = func(node string) bool {
				asked = append(asked, node)
				return node == c.barred
			}
			d := search.Plan(snapshot, ask, p)
			if d.Node != c.node || !slices.Equal(uids(d), c.victims) || !slices.Equal(asked, c.asked) {
				t.Errorf("%s; asked about %q", d, asked)
			}
		})
	}
}

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
		snapshot, ask, p := m.snapshot(nil)
		d := search.Plan(snapshot, ask, p)
		if err := judge.Lawful(snapshot, d, p); d.Outcome != planner.Preempt || err != nil {
			t.Errorf("%+v: %s: %v", c, d, err)
			continue
		}
		if len(d.Victims) != c.few {
			t.Errorf("%+v: %d victims", c, len(d.Victims))
		}
	}
}
