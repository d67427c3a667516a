package planner_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// TestLawfulAgreesWithTheLaws judges sets of victims, lawful and other ones, whether or not a
// planner would choose them. A set that is lawful except for one law must be rejected with an
// error that names this law.
func TestLawfulAgreesWithTheLaws(t *testing.T) {
	// An empty name accepts any error, because another check than the law's own may fail.
	laws := map[string]string{
		"law 2": "law 2", "law 2 common": "law 2", "law 2 shortage": "law 2", "law 3": "law 3", "law 4": "law 4", "law 5": "law 5", "law 6": "law 6",
		"law 7": "law 7", "max": "", "P3": "", "disabled": "disabled", "protection": "never a victim", "never": "Never",
		"arriving": "law 4",
	}
	seen := tally{}
	for seed := uint64(1); seed <= 5000; seed++ {
		m := generate(seed, 6)
		snapshot, ask, p := m.snapshot(nil)
		o, chance := newOracle(m), rand.New(rand.NewPCG(seed, 3))
		for range 6 {
			node := chance.IntN(len(m.nodes))
			var set []int
			for i, pod := range m.pods {
				if o.forbids(i, node, o.contested(node)) == "" && chance.IntN(3) > 0 || chance.IntN(12) == 0 && pod.queue >= 0 {
					set = append(set, i)
				}
			}
			err := judge.Lawful(snapshot, o.decision(ask, choice{node: node, victims: set}, true), p)
			want := o.lawful(node, set)
			if want != (err == nil) {
				t.Fatalf("victims %v on node %d are lawful: %v; Lawful says %v\n%s", set, node, want, err, m)
			}
			seen.note("lawful", want && len(set) > 0)
			for law, named := range laws {
				if want || !newOracle(m, law).lawful(node, set) {
					continue
				}
				if seen[law]++; !strings.Contains(err.Error(), named) {
					t.Fatalf("victims %v on node %d break %s alone; Lawful says %v\n%s", set, node, law, err, m)
				}
			}
		}
	}
	for law := range laws {
		expect.That(t, seen[law] >= 2, "%s is broken alone in %d sets only", law, seen[law])
	}
	seen.require(t, 5000, map[string]uint64{"lawful": 100})
}

func TestLawfulOnANewerSnapshot(t *testing.T) {
	m := pair()
	snapshot, ask, p := m.snapshot(nil)
	d := search.Plan(snapshot, ask, p)
	if err := judge.Lawful(snapshot, d, p); d.Outcome != planner.Preempt || err != nil {
		t.Fatalf("%v: %v", d, err)
	}
	for _, c := range []struct {
		name, want string
		change     func(*model, *planner.Snapshot)
	}{
		{"victim gone", "default/v1 is not there", func(m *model, _ *planner.Snapshot) { m.pods = m.pods[:1] }},
		{"victim leaving", "never a victim", func(m *model, _ *planner.Snapshot) { m.pods[1].protection = planner.Leaving }},
		{"node gone", "node n is not there", func(m *model, _ *planner.Snapshot) { m.nodes[0].name = "other" }},
		{"guarantee raised", "law 2: queue root.b would use 0.002 of 0.004 guaranteed vcore", func(m *model, _ *planner.Snapshot) { m.queues[2].guaranteed[0] = 4 }},
		{"guarantee reached", "law 4: queue root.a uses 0.002 of 0.002 guaranteed vcore", func(m *model, _ *planner.Snapshot) { m.waiting = []mwaiting{{1, -1, []int64{2}}} }},
		{"node smaller", "node n then has 0.001 vcore, and the asker requests 0.002", func(m *model, _ *planner.Snapshot) { m.nodes[0].allocatable[0] = 3 }},
		{"queue of the victim gone", "never a victim", func(m *model, snapshot *planner.Snapshot) { delete(snapshot.Queues.(view), queues.ID(2)) }},
		{"queue of the asker gone", "asker's queue", func(m *model, snapshot *planner.Snapshot) { delete(snapshot.Queues.(view), queues.ID(1)) }},
	} {
		changed := pair()
		c.change(changed, &planner.Snapshot{Queues: view{}})
		now, _, _ := changed.snapshot(nil)
		c.change(changed, now)
		expect.Fails(t, judge.Lawful(now, d, p), c.want)
	}
	twice := d
	twice.Victims = append(twice.Victims, twice.Victims...)
	expect.Fails(t, judge.Lawful(snapshot, twice, p), "twice")
}

// pair is a full node with two pods of root.b, and an asker of root.a, which has a
// guarantee of 2 and uses nothing.
func pair() *model {
	m := &model{types: []string{"vcore"}}
	m.addQueue(-1, "root")
	m.ask = mask{app: "asker", queue: m.addQueue(0, "a"), request: []int64{2}}
	b := m.addQueue(0, "b")
	m.queues[1].guaranteed[0] = 2
	m.nodes = []*mnode{{"n", []int64{4}}}
	m.pods = []*mpod{
		{uid: "v0", app: "b", queue: b, request: []int64{2}},
		{uid: "v1", app: "b", queue: b, request: []int64{2}, created: 1},
	}
	return m
}
