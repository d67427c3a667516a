package main

import (
	"cmp"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/store/output"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/rest"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

const preemptingQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: fair
      resources: {guaranteed: {vcore: 4}}
      properties: {preemption.delay: 1s}
    - name: greedy
      resources: {guaranteed: {vcore: 1}}
`

// preempting is a scheduler's store in which room is made.
type preempting struct {
	*store.Store
	now time.Time
}

// preempts is the REST interface of a scheduler in which room was made for pod ns/a as
// far as a stage says. A DaemonSet pod holds another node, where a pod is leaving anyway.
func preempts(t *testing.T, stage string) http.Handler {
	spec := expect.Get(config.Parse([]byte(preemptingQueues)))(t)
	p := &preempting{store.New(spec, store.Options{}), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	p.Start(p.now)
	decided := record.New(p.Follow(output.Decisions))
	p.UpsertNode("n1", queuestest.Vector("vcore=4 pods=20"), p.now)
	p.UpsertNode("n2", queuestest.Vector("vcore=2 pods=20"), p.now)
	p.pod(objects.Pod{Identity: objects.Identity{Name: "own"}, Spec: objects.Spec{Priority: 9}, Status: objects.Status{Node: "n2"}}, "root.fair", "vcore=1")
	p.pod(objects.Pod{Identity: objects.Identity{Name: "ds"}, Spec: objects.Spec{RequiredNode: "n2"}}, "root.fair", "vcore=1")
	p.pod(objects.Pod{Identity: objects.Identity{Namespace: "other", Name: "left"}, Status: objects.Status{Node: "n2", Deleting: true}}, "root.greedy", "vcore=1")
	for _, name := range []string{"g1", "g2", "g3", "g4"} {
		p.pod(objects.Pod{Identity: objects.Identity{Name: name}, Status: objects.Status{Node: "n1"}}, "root.greedy", "vcore=1")
	}
	p.pod(objects.Pod{Identity: objects.Identity{Name: "big"}}, "root.fair", "vcore=9")
	p.pod(objects.Pod{Identity: objects.Identity{Name: "a"}}, "root.fair", "vcore=2")
	p.pass(2 * time.Second)
	p.plan("big")
	p.pass(20 * time.Second)
	p.plan("big")
	p.require("ds")
	p.makeRoom(stage)
	decided.Take()
	tainted := func(node string) string {
		if node == "n1" {
			return "held=of-n1"
		}
		return ""
	}
	return handler(rest.Options{Inventory: inventory.New(p.Store), Record: decided, Taint: tainted})
}

// makeRoom makes room for ns/a as far as a stage says.
func (p *preempting) makeRoom(stage string) {
	todo := slices.Index([]string{"refused", "planned", "leaving", "clear", "bound"}, stage)
	p.pass(time.Second)
	if todo >= 1 {
		p.plan("a")
	}
	if todo < 2 {
		return
	}
	p.pass(time.Second)
	going, _ := p.Commit("uid-a", nil, p.now)
	p.VictimsDeleted("uid-a", p.now)
	for _, v := range going {
		p.pass(time.Second)
		if todo >= 3 {
			p.Delete(v.UID, p.now)
		}
	}
	if todo >= 4 {
		p.pass(time.Second)
		p.pod(objects.Pod{Identity: objects.Identity{Name: "a"}, Status: objects.Status{Node: "n1"}}, "root.fair", "vcore=2")
	}
}

func (p *preempting) pass(d time.Duration) {
	p.now = p.now.Add(d)
	p.Tick(p.now)
}

func (p *preempting) pod(pod objects.Pod, queue, request string) {
	pod.UID, pod.Namespace, pod.Created = types.UID("uid-"+pod.Name), cmp.Or(pod.Namespace, "ns"), p.now
	pod.Labels = map[string]string{placement.KeyQueue: queue, placement.KeyApplicationID: queue}
	pod.Request = queuestest.Vector(request + " pods=1")
	p.Upsert(pod, p.now)
}

// plan makes a plan for a pod and puts it into force.
func (p *preempting) plan(name string) {
	uid := types.UID("uid-" + name)
	input, _ := p.BeginPlan(uid, "", nil, p.now)
	if input == nil {
		return
	}
	d := search.Plan(input.Snapshot, input.Ask, planner.Params{})
	if d.Outcome == planner.Refuse {
		p.RejectPlan(uid, &d, p.now)
		return
	}
	p.AcceptPlan(uid, &d, p.now)
}

// require decides about the only node that a pod can run on.
func (p *preempting) require(name string) {
	uid := types.UID("uid-" + name)
	input, _ := p.BeginNodeBoundPlan(uid, nil, p.now)
	d := daemonset.Plan(input.Node, input.Ask, input.Params)
	p.ApplyPlan(uid, &d, p.now)
}
