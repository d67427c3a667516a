package planner_test

import (
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// TestSentences: the texts for people name the law or rule that decided, its queue, and
// the numbers.
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
		{"law 4, no guarantee", func(m *model) { m.queues[1].guaranteed[0] = unnamed },
			"no queue of the asker guarantees gpu (law 4)", ""},
		{"law 4, strict", func(m *model) { m.queues[1].guaranteed[0], m.strict = 1, true },
			"queue root.a uses 0 of 1 guaranteed gpu, and the asker would carry it over that (law 4, strictGuarantee)", ""},
		{"law 5", func(m *model) { m.queues[2].guaranteed[0] = 4 },
			"queue root.b uses only 4 of 4 guaranteed gpu (law 5)", ""},
		{"law 6", func(m *model) { m.pods[0].priority, m.pods[1].priority = 7, 5; m.ask.priority = 3 },
			"pods that could make room have a higher priority, of queue root.b at least 5, the asker 3 (law 6)", ""},
		{"law 7", func(m *model) { m.queues[1].policies.Preemption = config.PreemptionFence },
			"pods that could make room are outside the fence of queue root.a (law 7)", ""},
		{"over max", func(m *model) { m.queues[1].max[0] = 1 },
			"all pods that may go are not enough: queue root.a uses 0 of max 1 gpu, and the asker requests 2", ""},
		{"preempt for a max", func(m *model) {
			m.queues[1].parent, m.queues[1].path = 3, "root.p.a"
			m.queues[2].parent, m.queues[2].path = 3, "root.p.b"
			m.queues[3].max[0] = 5
			m.nodes = append(m.nodes, &mnode{"empty", []int64{4}})
		},
			"preempts default/v1 of queue root.p.b on node n to run on node empty: queue root.p.a uses 0 of 2 guaranteed gpu (law 4); queue root.p uses 4 of max 5 gpu, and the asker requests 2, so that pods below it go (law 7)",
			"preempted for default/asker of queue root.p.a, which is below its guarantee (gpu 0 of 2, law 4), on node empty; queue root.p.b uses more than its guarantee (gpu 4 of 0, law 5); both are below queue root.p, which uses 4 of max 5 gpu (law 7)"},
		{"too little", func(m *model) { m.ask.request[0] = 9 },
			"all pods that may go are not enough for gpu on any node", ""},
		{"disabled", func(m *model) { m.queues[2].policies.Preemption = config.PreemptionDisabled },
			"pods that could make room are in queues with preemption.policy disabled", ""},
		{"never", func(m *model) { m.ask.never = true },
			"the asker has preemptionPolicy Never", ""},
		{"static", func(m *model) { m.pods[0].protection, m.pods[1].protection = planner.Static, planner.Static },
			"no pod that could make room may go: static pod", ""},
		{"lingering", func(m *model) { m.pods[0].protection, m.pods[1].protection = planner.Lingering, planner.Lingering },
			"the pods that could make room are being deleted already; pods that may take longer than reservationTimeout to stop, or did, do not count as leaving: " +
				"default/v0 on node n (grace period 0s), default/v1 on node n (grace period 0s); wait until they are gone, delete them again with a shorter grace period, or remove what keeps them: a finalizer, or a node that does not answer", ""},
		{"refused", func(m *model) { m.pods[0].protection, m.pods[1].protection = planner.Refused, planner.Static },
			"the pods that could make room cannot be deleted; the API server refused to delete pods, which are not chosen for a while: default/v0 on node n ()", ""},
		{"no pod", func(m *model) { m.pods = nil; m.nodes[0].allocatable[0] = 1 },
			"no node has pods that could make room", ""},
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
