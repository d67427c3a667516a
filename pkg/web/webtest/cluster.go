// Package webtest makes clusters for tests of what shows them, such as the pages: an empty
// one, a busy one in which most of what a page can say is said, and a large one.
package webtest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/eventlog"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Cluster is a store with what shows it.
type Cluster struct {
	tb        testing.TB
	Store     *store.Store
	Inventory *inventory.Inventory
	Record    *record.Record
	Events    *eventlog.Log
	Clock     *clocktesting.FakeClock
	Now       time.Time
}

// New is a cluster that has begun, with the document in force; empty is the built-in one.
func New(tb testing.TB, document string) *Cluster {
	tb.Helper()
	c := Unstarted(tb)
	c.Configure(document)
	c.Store.Start(c.Now)
	return c
}

// Unstarted is a cluster in which nothing was scheduled yet.
func Unstarted(tb testing.TB) *Cluster {
	now, s := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), store.New(config.Default(), store.Options{})
	return &Cluster{
		tb: tb, Store: s, Inventory: inventory.New(s), Clock: clocktesting.NewFakeClock(now), Now: now,
		Record: record.New(s.Follow(output.Decisions)),
		Events: eventlog.New(s.Follow(output.Facts), eventlog.Size),
	}
}

// Configure puts a document into force.
func (c *Cluster) Configure(document string) {
	c.tb.Helper()
	c.Store.Configure(expect.Get(config.Parse([]byte(document)))(c.tb), c.Now)
}

// Node adds a node.
func (c *Cluster) Node(name, allocatable string) {
	c.Store.UpsertNode(name, queuestest.Vector(allocatable), c.Now)
}

// Pod adds a pod of a queue; it runs if there is a node.
func (c *Cluster) Pod(name, queue, app, request, node string) {
	c.Add(objects.Pod{
		Identity: objects.Identity{
			Name:        name,
			Labels:      map[string]string{placement.KeyQueue: queue, placement.KeyApplicationID: app},
			Annotations: map[string]string{placement.KeyUserInfo: `{"user":"ann","groups":["research"]}`},
		},
		Status:  objects.Status{Node: node},
		Request: queuestest.Vector(request + " pods=1"),
	})
}

// Foreign adds a pod of another scheduler.
func (c *Cluster) Foreign(name, node, request string, static bool) {
	c.Add(objects.Pod{
		Identity: objects.Identity{Namespace: "kube-system", Name: name},
		Spec:     objects.Spec{Foreign: true, Static: static, Priority: 2000001000},
		Status:   objects.Status{Node: node},
		Request:  queuestest.Vector(request + " pods=1"),
	})
}

// Add adds a pod; what has no namespace, UID or time is given one.
func (c *Cluster) Add(p objects.Pod) {
	if p.UID == "" {
		p.UID = types.UID("uid-" + p.Name)
	}
	if p.Namespace == "" {
		p.Namespace = "team"
	}
	if p.Created.IsZero() {
		p.Created = c.Now
	}
	if p.Node != "" {
		p.Scheduled = c.Now
	}
	c.Store.Upsert(p, c.Now)
}

// Step lets time go on.
func (c *Cluster) Step(by time.Duration) {
	c.Now = c.Now.Add(by)
	c.Clock.SetTime(c.Now)
	c.Store.Tick(c.Now)
}

// Preempt makes a plan for a pod that no node took.
func (c *Cluster) Preempt(name string) {
	uid := types.UID("uid-" + name)
	why := reasons.New(reasons.NoNodeFits, "0/3 nodes are available: 3 Insufficient cpu.")
	c.Store.NoNode(uid, "", why, c.Now)
	c.Step(time.Minute)
	if why := c.Plan(uid); !why.None() && why.Code != reasons.PreemptionRefused {
		c.tb.Fatalf("no plan for %s: %v", name, why)
	}
	c.Record.Take()
}

// Plan decides whether room is made for a pod, and puts the decision into force. It returns
// why no room is made.
func (c *Cluster) Plan(uid types.UID) reasons.Reason {
	input, why := c.Store.BeginPlan(uid, "", nil, c.Now)
	if !why.None() {
		return why
	}
	plan := search.Plan(input.Snapshot, input.Ask, planner.Params{})
	if plan.Outcome == planner.Refuse {
		return c.Store.RejectPlan(uid, &plan, c.Now)
	}
	return c.Store.AcceptPlan(uid, &plan, c.Now)
}

const busyDocument = `partitions:
- name: default
  placementrules:
  - name: provided
    create: true
  queues:
  - name: root
    submitacl: '*'
    queues:
    - name: research
      parent: true
      resources:
        guaranteed: {vcore: 24, memory: 48Gi}
        max: {vcore: 40, memory: 160Gi}
      properties:
        preemption.policy: fence
      queues:
      - name: genomics
        resources:
          guaranteed: {vcore: 16, memory: 40Gi, nvidia.com/gpu: 2}
          max: {vcore: 32, nvidia.com/gpu: 4}
        limits:
        - limit: the group as a whole
          groups: [research]
          maxresources: {vcore: 30}
          maxapplications: 5
      - name: physics
        maxapplications: 2
        resources:
          guaranteed: {vcore: 8}
        properties:
          preemption.delay: 10s
          application.sort.policy: fair
    - name: production
      parent: true
      resources:
        guaranteed: {vcore: 16}
      properties:
        preemption.policy: disabled
        priority.policy: fence
        priority.offset: "1000"
      queues:
      - name: web
        resources:
          guaranteed: {vcore: 12, memory: 24Gi}
          max: {vcore: 12, memory: 32Gi}
      - name: batch
    - name: sandbox
      resources:
        max: {vcore: 6, memory: 12Gi, pods: 20}
`

// Busy is a small cluster in which much goes on: queues under and over their
// guarantee, at their max and behind fences, pods that wait for all kinds of
// reasons, a held node, pods of other schedulers.
func Busy(tb testing.TB) *Cluster {
	c := New(tb, busyDocument)
	for _, name := range []string{"rack-1-a", "rack-1-b", "rack-2-a"} {
		c.Node(name, "vcore=16 memory=64Gi pods=110 ephemeral-storage=200Gi nvidia.com/gpu=2")
		c.Foreign("agent-"+name, name, "vcore=250m memory=200Mi", false)
	}
	c.Foreign("proxy-rack-1-a", "rack-1-a", "vcore=100m", true)
	c.Step(time.Minute)
	for i := range 7 {
		c.Pod(fmt.Sprint("align-", i), "root.research.genomics", "alignment", "vcore=4 memory=8Gi", []string{"rack-1-a", "rack-1-b", "rack-2-a"}[i%3])
	}
	for i := range 6 {
		c.Pod(fmt.Sprint("front-", i), "root.production.web", "frontend", "vcore=2 memory=2Gi", []string{"rack-1-a", "rack-1-b", "rack-2-a"}[i%3])
	}
	c.Pod("try-0", "root.sandbox", "notebook", "vcore=1500m memory=3Gi", "rack-1-b")
	c.Step(10 * time.Minute)
	for i := range 3 {
		c.Pod(fmt.Sprint("lattice-", i), "root.research.physics", "lattice", "vcore=4 memory=8Gi", "")
	}
	for i := range 12 {
		c.Pod(fmt.Sprint("front-", 6+i), "root.production.web", "frontend", "vcore=2 memory=2Gi", "")
	}
	c.Pod("try-1", "root.sandbox", "large", "vcore=8 memory=1Gi", "")
	c.Pod("try-2", "root.sandbox", "small", "vcore=4 memory=40Gi", "")
	c.Pod("lost-0", "root.research", "lost", "vcore=1", "")
	c.Pod("nightly-0", "root.production.batch.nightly", "nightly", "vcore=1", "")
	c.Step(time.Minute)
	c.Preempt("lattice-0")
	c.Preempt("try-2")
	c.Node("rack-2-b", "vcore=16 memory=64Gi pods=110")
	c.Store.SetNodeSchedulable("rack-2-b", false, c.Now)
	c.Step(90 * time.Second)
	return c
}

// Size is how large a cluster is.
type Size struct {
	// Parents have so many Leaves each; with root that makes the queues.
	Parents, Leaves int
	// Nodes have a pod of another scheduler each.
	Nodes int
	// Pods are of so many Apps; every tenth waits.
	Apps, Pods int
}

// Large has 5,000 queues.
var Large = Size{Parents: 50, Leaves: 99, Nodes: 1000, Apps: 1000, Pods: 20000}

const (
	largeHead = "partitions:\n- name: default\n  placementrules: [{name: provided}]\n  queues:\n" +
		"  - name: root\n    submitacl: '*'\n" +
		"    limits: [{limit: all, users: ['*'], maxresources: {vcore: 100000}}]\n    queues:\n"
	largeParent = "    - name: p%d\n      parent: true\n" +
		"      resources: {max: {vcore: 1000, memory: 1Ti}}\n" +
		"      limits: [{limit: all, users: ['*'], maxresources: {vcore: 1000}}]\n      queues:\n"
	largeLeaf = "      - {name: q%d, resources: " +
		"{guaranteed: {vcore: 2, memory: 4Gi}, max: {vcore: 100, memory: 1Ti}}}\n"
)

// document is a configuration of that size.
func (s Size) document() string {
	var document strings.Builder
	document.WriteString(largeHead)
	for i := range s.Parents {
		fmt.Fprintf(&document, largeParent, i)
		for j := range s.Leaves {
			fmt.Fprintf(&document, largeLeaf, j)
		}
	}
	return document.String()
}

// Sized is a cluster of a size.
func Sized(tb testing.TB, s Size) *Cluster {
	c := New(tb, s.document())
	for i := range s.Nodes {
		name := fmt.Sprintf("node-%03d", i)
		c.Node(name, "vcore=32 memory=128Gi pods=110 ephemeral-storage=200Gi")
		c.Foreign("agent-"+name, name, "vcore=100m memory=64Mi", false)
	}
	for i := range s.Pods {
		c.Add(s.Pod(i))
	}
	return c
}

// Pod is one of the pods.
func (s Size) Pod(i int) objects.Pod {
	app := i % s.Apps
	p := objects.Pod{
		Identity: objects.Identity{Name: fmt.Sprint("pod-", i), Labels: map[string]string{
			placement.KeyQueue:         fmt.Sprintf("root.p%d.q%d", app%s.Parents, app%s.Leaves),
			placement.KeyApplicationID: fmt.Sprint("app-", app),
			placement.KeyUsername:      fmt.Sprint("user-", app),
		}},
		Request: queuestest.Vector("vcore=1 memory=2Gi pods=1"),
	}
	if i%10 != 0 {
		p.Node = fmt.Sprintf("node-%03d", i%s.Nodes)
	}
	return p
}
