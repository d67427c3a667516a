package planner_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
)

// TestPlanAgainstOracle compares Plan with brute force on random cases.
func TestPlanAgainstOracle(t *testing.T) {
	againstOracle(t, 20_000, 1, caseKind{"generate(%d, 8)", func(seed uint64) *model { return generate(seed, 8) }}, everyDay)
}

// caseKind draws random cases by their seed; name is the format of the call that draws a case again.
type caseKind struct {
	name string
	draw func(seed uint64) *model
}

// upToSixteen are cases with at most as many candidates as are considered exactly. In
// every other case most pods are candidates, on one node: at most all but one.
var upToSixteen = caseKind{"upToSixteen.draw(%d)", func(seed uint64) *model {
	if seed%2 == 0 {
		return generate(seed, 16)
	}
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 8)), m: &model{}, pods: 17, crowded: true}
	return g.generate()
}}

// sixteen are the minimal frequencies of kinds of cases, in thousandths, among upToSixteen.
var sixteen = map[string]uint64{
	"candidates 10": 15, "candidates 12": 10, "candidates 14": 5, "candidates 16": 5,
	"refused": 300, "held": 50, "victims 1": 80, "victims 2": 40, "victims 3": 5,
	"opted out": 10, "violations": 10, "victims elsewhere": 2,
	"stopped by law 2": 100, "stopped by law 3": 40, "stopped by law 4": 40, "stopped by law 5": 40, "stopped by law 6": 40,
	"stopped by law 7": 20, "stopped by P3": 40, "stopped by preemption.policy disabled": 20,
}

// TestPlanAgainstOracleAmongMany uses a few of the cases of the nightly test.
func TestPlanAgainstOracleAmongMany(t *testing.T) { againstOracle(t, 2_000, 1, upToSixteen, sixteen) }

// againstOracle plans in the cases of the seeds from first on, on all cores. Shares are
// the minimal frequencies of kinds of cases, in thousandths.
func againstOracle(t *testing.T, cases, first uint64, kind caseKind, shares map[string]uint64) {
	t.Helper()
	var work sync.WaitGroup
	var mu sync.Mutex
	all, cores := tally{}, uint64(runtime.GOMAXPROCS(0))
	for core := range cores {
		work.Go(func() {
			for seed := first + core; seed < first+cases && !t.Failed(); seed += cores {
				m := kind.draw(seed)
				o := newOracle(m)
				want, found := o.best()
				if err := o.check(want, found, real, seed); err != nil {
					t.Errorf(kind.name+": %v\n%s", seed, err, m)
				}
				mu.Lock()
				all.count(o, want, found)
				mu.Unlock()
			}
		})
	}
	work.Wait()
	all.require(t, cases, shares)
	t.Log(all)
}

// tally counts kinds of cases, to notice a generator that makes cases without variety.
type tally map[string]uint64

// note counts a case if it is of a kind.
func (c tally) note(what string, is bool) {
	if is {
		c[what]++
	}
}

func (c tally) count(o *oracle, best choice, found bool) {
	c.note("refused", !found)
	c.note("held", found && len(best.victims) == 0)
	c.note(fmt.Sprintf("victims %d", min(len(best.victims), 3)), len(best.victims) > 0)
	c.note(fmt.Sprintf("candidates %d", o.candidates), true)
	c.note("opted out", best.cost.optedOut > 0)
	c.note("violations", best.cost.violations > 0)
	c.note("victims elsewhere", slices.ContainsFunc(best.victims, func(i int) bool { return o.pods[i].node != best.node }))
	for law := range o.stoppedBy {
		c.note("stopped by "+string(law), true)
	}
}

// require fails unless there was at least the given share, in thousandths, of each kind of case.
func (c tally) require(t *testing.T, cases uint64, shares map[string]uint64) {
	t.Helper()
	for what, least := range shares {
		expect.That(t, c[what]*1000 >= least*cases,
			"%d of %d cases have %q, want %d in 1000", c[what], cases, what, least)
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

// TestBarredNodes: no asker is placed on a barred node. The pods of such a node may still be preempted
// for a max. Barred is not called for a node if the laws permit no plan there.
func TestBarredNodes(t *testing.T) {
	belowMax := func(m *model) {
		p := m.addQueue(0, "p")
		m.queues[1].parent, m.queues[1].path = p, "root.p.a"
		m.queues[2].parent, m.queues[2].path = p, "root.p.b"
		m.queues[p].max[0] = 6
	}
	for _, c := range []struct {
		name           string
		change         func(m *model)
		barred, node   string
		victims, asked []string
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
			expect.That(t, d.Node == c.node && slices.Equal(uids(d), c.victims) && slices.Equal(asked, c.asked),
				"%s; asked about %q", d, asked)
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
	m.pods, m.nodes = nil, nil
	add := func(name string, pods int, guaranteed int64, priority int32) {
		m.ask.queue = m.addQueue(p, name)
		m.queues[m.ask.queue].guaranteed[0] = guaranteed
		for k := range pods {
			m.nodes = append(m.nodes, &mnode{fmt.Sprintf("n%03d", len(m.nodes)), []int64{100}})
			m.pods = append(m.pods, &mpod{
				uid: fmt.Sprintf("%s-%03d", name, k), app: name, queue: m.ask.queue, node: len(m.nodes) - 1,
				request: []int64{1}, created: len(m.pods), priority: priority,
			})
		}
	}
	for i := range queues {
		add(fmt.Sprintf("b%02d", i), pods, int64(pods-1), 0)
	}
	add("c", few, 0, 1)
	add("a", 0, int64(few), 0)
	m.queues[p].max[0] = int64(queues*pods + few)
	m.ask.request, m.ask.priority = []int64{int64(few)}, 5
	return m
}

// TestPoolHasRoomForAll: queues that have many pods and may lose few do not displace a
// queue that may lose what is needed.
func TestPoolHasRoomForAll(t *testing.T) {
	for _, c := range []struct{ queues, pods, few int }{{1, 40, 3}, {1, 200, 3}, {3, 60, 6}, {12, 50, 10}, {40, 5, 41}} {
		m := misers(c.queues, c.pods, c.few)
		snapshot, ask, p := m.snapshot(nil)
		d := search.Plan(snapshot, ask, p)
		err := judge.Lawful(snapshot, d, p)
		expect.That(t, d.Outcome == planner.Preempt && len(d.Victims) == c.few && err == nil,
			"%+v: %d victims, %s: %v", c, len(d.Victims), d, err)
	}
}

// TestSentences: the texts for people name the law or rule that decided, its queue, and
// the numbers. Scripts of the store show those of the other laws and rules.
func TestSentences(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(*model)
		sentence string
		note     string // on the first victim, if there is one
	}{
		{"preempt", func(*model) {},
			"preempts default/v1 of queue root.b for room on node n: queue root.a uses 0 of 2 guaranteed gpu (law 4)",
			"preempted for default/asker of queue root.a, which is below its guarantee (gpu 0 of 2, law 4), on node n; queue root.b uses more than its guarantee (gpu 4 of 0, law 5)"},
		{"common parent", func(m *model) {
			m.queues[1].parent, m.queues[1].path = 3, "root.p.a"
			m.queues[1].guaranteed[0], m.queues[3].guaranteed[0] = unnamed, 3
			m.queues[2].guaranteed[0] = 1
			m.pods[1].optedOut, m.pods[0].optedOut = true, true
		},
			"preempts default/v1 of queue root.b for room on node n: queue root.p uses 0 of 3 guaranteed gpu (law 4); 1 opted out, but nothing else was possible (law 1)",
			"preempted for default/asker of queue root.p.a, in queue root.p that is below its guarantee (gpu 0 of 3, law 4), on node n; queue root.b uses more than its guarantee (gpu 4 of 1, law 5); it opted out, but nothing else was possible (law 1)"},
		{"wait", func(m *model) { m.pods[0].protection = planner.Leaving },
			"waits for node n without preemption: it fits there once pods that leave already are gone", ""},
		{"law 2", func(m *model) { m.queues[2].guaranteed[0] = 3 },
			"queue root.b uses 4 of 3 guaranteed gpu, and no set of victims that is enough leaves it that (law 2)", ""},
		{"law 3", func(m *model) { m.ask.app = "b" },
			"the pods that could make room belong to the asker's own queue or application (law 3)", ""},
		{"law 4", func(m *model) { m.waiting = []mwaiting{{1, -1, []int64{2}}} },
			"queue root.a uses 2 of 2 guaranteed gpu (law 4)", ""},
		{"law 4, strict", func(m *model) { m.queues[1].guaranteed[0], m.strict = 1, true },
			"queue root.a uses 0 of 1 guaranteed gpu, and the asker would carry it over that (law 4, strictGuarantee)", ""},
		{"preempt for a max", func(m *model) {
			m.queues[1].parent, m.queues[1].path = 3, "root.p.a"
			m.queues[2].parent, m.queues[2].path = 3, "root.p.b"
			m.queues[3].max[0] = 5
			m.nodes = append(m.nodes, &mnode{"empty", []int64{4}})
		},
			"preempts default/v1 of queue root.p.b on node n to run on node empty: queue root.p.a uses 0 of 2 guaranteed gpu (law 4); queue root.p uses 4 of max 5 gpu, and the asker requests 2, so that pods below it go (law 7)",
			"preempted for default/asker of queue root.p.a, which is below its guarantee (gpu 0 of 2, law 4), on node empty; queue root.p.b uses more than its guarantee (gpu 4 of 0, law 5); both are below queue root.p, which uses 4 of max 5 gpu (law 7)"},
		{"never", func(m *model) { m.ask.never = true },
			"the asker has preemptionPolicy Never", ""},
	} {
		m := pair()
		m.types[0] = "gpu"
		m.addQueue(0, "p")
		c.change(m)
		_, d, _ := real(m, nil)
		expect.Same(t, c.name, c.sentence, d.Sentence())
		note := ""
		if len(d.Victims) > 0 {
			note = d.VictimNote(0)
		}
		expect.Same(t, c.name, c.note, note)
	}
}

// TestSentencesAreOneLine: each text is one line of limited length without UIDs of pods.
func TestSentencesAreOneLine(t *testing.T) {
	for seed := uint64(1); seed <= 3000; seed++ {
		m := generate(seed, 8)
		snapshot, ask, p := m.snapshot(nil)
		for i := range snapshot.Nodes {
			for _, pod := range snapshot.Nodes[i].Pods {
				pod.UID, pod.Name = "uid-"+pod.UID, "pod"
			}
		}
		d := search.Plan(snapshot, ask, p)
		all := []string{d.Sentence()}
		for i := range d.Victims {
			all = append(all, d.VictimNote(i))
		}
		for _, s := range all {
			if s == "" || len(s) > 500 || strings.ContainsAny(s, "\n%") || strings.Contains(s, "uid-") {
				t.Fatalf("generate(%d, 8): %q", seed, s)
			}
		}
	}
}
