package framework_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The measure: a referee observes the scheduler's Reserve step, in the scheduling goroutine, and keeps
// its own record of running pods. For every pod that gets a node it asks the naive order, with the usage
// of that moment, how many pods would have gone first: this is the rank; 0 is exact. It also runs, side
// by side, an ideal scheduler that always takes the naive first: the lead of a queue is how many pods
// more (or fewer) it has than in the ideal cluster.
//
// The claim is: rank and lead stay below the window, which has at least one place for each queue. A
// disturbance from outside (a queue with late first pods, or many new pods at once) moves the naive
// order at once by any amount, so that pods admitted before have a large rank. Each disturbance allows
// one window of such pods, and the lead must still stay below the window.
//
// A pod that is in a cycle when room becomes free is not available at that moment, and a later one goes
// first. How many do so depends on the machine. So the test runs in a bubble, and room becomes free only
// when no pod is in a cycle.
type referee struct {
	window  int
	waiting int // pods at the start

	mu        sync.Mutex
	real      *naive
	ideal     *naive
	binds     int
	max       int // the largest rank
	outOfTurn int // ranks of at least window
	maxLead   int64
	running   map[string][]*corev1.Pod // by queue, oldest first
	unknown   []string
	progress  chan struct{}
}

// arrive adds pending pods to both clusters.
func (r *referee) arrive(pods ...*corev1.Pod) {
	defer holding(&r.mu)()
	r.real.arrive(pods...)
	r.ideal.arrive(pods...)
}

// reserved judges a decision of the scheduler.
func (r *referee) reserved(p *corev1.Pod) {
	defer holding(&r.mu)()
	rank := r.real.rank(p.UID, 4*r.window+64)
	if !r.real.take(p) {
		r.unknown = append(r.unknown, p.Name)
		return
	}
	r.binds++
	r.max = max(r.max, rank)
	if rank >= r.window {
		r.outOfTurn++
	}
	if q := r.ideal.first(); q != nil {
		r.ideal.take(q.pending[0])
	}
	for i, q := range r.real.queues {
		d := q.used - r.ideal.queues[i].used
		r.maxLead = max(r.maxLead, d, -d)
	}
	q := p.Labels["queue"]
	r.running[q] = append(r.running[q], p)
	select {
	case r.progress <- struct{}{}:
	default:
	}
}

// finish removes the oldest running pod of a queue from the records of both clusters; nil for none.
func (r *referee) finish(queue string) *corev1.Pod {
	defer holding(&r.mu)()
	list := r.running[queue]
	if len(list) == 0 {
		return nil
	}
	p := list[0]
	r.running[queue] = list[1:]
	r.real.queue(queue).used--
	if q := r.ideal.queue(queue); q.used > 0 {
		q.used--
	}
	return p
}

func (r *referee) count() int {
	defer holding(&r.mu)()
	return r.binds
}

// await waits until so many pods got a node.
func (r *referee) await(c *cluster, binds int) {
	c.t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for r.count() < binds {
		select {
		case <-r.progress:
		case <-timeout.C:
			c.t.Fatalf("waited %v in vain for bind %d, there were %d; %v", patience, binds, r.count(), c.store.Check())
		}
	}
}

func (r *referee) String() string {
	return fmt.Sprintf("%d binds: rank up to %d, %d of %d or more; lead up to %d",
		r.binds, r.max, r.outOfTurn, r.window, r.maxLead)
}

const threeQueues = `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: a, resources: {guaranteed: {vcore: "%d"}}}
    - {name: b, resources: {guaranteed: {vcore: "%d"}}}
    - {name: c, resources: {guaranteed: {vcore: "%d"}}}
`

// restless is the pace at which room becomes free while pods are in their cycles.
const restless = -1

// scenario is a full cluster with pending pods, in which the running pods end one by one.
type scenario struct {
	pending int // pods of all queues together at the start
	steps   int // pods that end, one after the other
	window  int
	largest int // the size to which the window may grow
	backoff int
	ahead   int                   // rooms that are free at a time; 0 is 1
	calm    bool                  // the scheduler comes to rest after every step
	rush    bool                  // room is made free while the pods are tried for the first time
	late    string                // the queue with pods that come only after a third of the steps
	finish  func(step int) string // the queue of the pod that ends instead of a filler; "" is a filler
	pace    time.Duration         // between two rooms, in the time of the bubble; 0 is 1 ms, restless none
	options options
	most    float64 // cycles for each pod that ends; 0 is any
	// disturbances is how often something outside upsets the order; each allows a window of large ranks.
	disturbances int
	equal        bool // the scheduler has wrong guarantees, a planted bug
}

// judge runs a scenario in a bubble, and returns the violations of the claim.
func (s scenario) judge(t *testing.T) (err error) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		r, c := s.run(t)
		defer c.end()
		t.Log(r, "cycles", c.probe.allCycles())
		err = errors.Join(r.check(s.disturbances), c.store.Check())
		// Each pod is tried once and does not fit. After that, for each pod that ends, a pod of one of
		// the three kinds is placed, one more of its kind is tried, and one of the others.
		if perBind := float64(c.probe.allCycles()-r.waiting) / float64(r.count()); s.most > 0 && perBind > s.most {
			err = errors.Join(err, fmt.Errorf("%.1f cycles for each pod that ended, want at most %.0f", perBind, s.most))
		}
	})
	return err
}

// run runs a scenario and returns the referee.
func (s scenario) run(t *testing.T) (*referee, *cluster) {
	t.Helper()
	if s.pace == 0 {
		s.pace = time.Millisecond
	}
	if raceDetector {
		s.pending, s.steps = s.pending/3, s.steps/3
	}
	const nodes = 20
	fillers := max(s.steps, nodes)
	cores := int64((fillers + nodes - 1) / nodes)
	fillers = nodes * int(cores)
	n := &naive{}
	n.capacity.cores, n.capacity.pods = nodes*cores, 2*nodes*cores
	for i, name := range []string{"a", "b", "c"} {
		g := []int64{8, 4, 2}[i] * n.capacity.cores / 14
		n.queues = append(n.queues, &naiveQueue{name: name, guaranteed: g})
	}
	r := &referee{real: n, ideal: n.copy(), running: map[string][]*corev1.Pod{}, progress: make(chan struct{}, 1)}
	r.window = max(s.window, s.largest, len(n.queues)) // a queue with pods has at least one place
	o := s.options
	o.window, o.largest, o.backoff = s.window, s.largest, s.backoff
	told := [3]int64{n.queues[0].guaranteed, n.queues[1].guaranteed, n.queues[2].guaranteed}
	if s.equal {
		told = [3]int64{1, 1, 1}
	}
	o.queues = fmt.Sprintf(threeQueues, told[0], told[1], told[2])
	c := start(t, o)
	c.probe.reserved = r.reserved
	c.addNodes(nodes, cores)
	running := make([]*corev1.Pod, fillers)
	for i := range running {
		running[i] = onNode(pod(other, fmt.Sprintf("filler-%05d", i), 0), fmt.Sprintf("node-%03d", i%nodes))
	}
	c.api.create(t, running...)
	c.eventually("the scheduler has seen the cluster", func() bool {
		n, err := c.scheduler.Cache.PodCount()
		known := err == nil && n == fillers && c.scheduler.Cache.NodeCount() == nodes
		return known && !c.store.Snapshot().Capacity().IsZero()
	})
	now, later := s.pods()
	r.waiting = s.pending
	r.arrive(now...)
	c.api.create(t, now...)
	if s.rush {
		c.eventually("all pods are known", func() bool { return c.pending() == len(now) })
	} else {
		c.awaitPending(len(now))
	}
	s.empty(c, r, running, later)
	return r, c
}

// pods are the pending pods, and those that come late. Their ages alternate between queues.
func (s scenario) pods() (now, later []*corev1.Pod) {
	for i := range s.pending {
		queue := []string{"a", "b", "c"}[i%3]
		p := inQueue(pod(managed, fmt.Sprintf("%s-%05d", queue, i), i), queue, queue)
		if queue == s.late {
			later = append(later, p)
		} else {
			now = append(now, p)
		}
	}
	return now, later
}

// empty ends the pods of the full cluster one by one.
func (s scenario) empty(c *cluster, r *referee, fillers, later []*corev1.Pod) {
	for step := range s.steps {
		if len(later) > 0 && step == s.steps/3 {
			r.arrive(later...)
			c.api.create(c.t, later...)
			c.eventually("the late pods are known", func() bool { return c.pending() == s.pending-r.count() })
		}
		gone := fillers[step%len(fillers)]
		if s.finish != nil {
			if queue := s.finish(step); queue != "" {
				gone = cmp.Or(r.finish(queue), gone)
			}
		}
		if s.pace > 0 && step%max(s.ahead, 1) == 0 {
			time.Sleep(s.pace)
		}
		c.api.delete(c.t, gone)
		r.await(c, step+1-max(s.ahead-1, 0))
		if s.calm {
			c.awaitPending(s.pending - r.count())
		}
	}
	r.await(c, s.steps)
}

// pending is how many managed pods wait for a node.
func (c *cluster) pending() int { return int(c.store.Snapshot().Root().Pending.Get(resources.Pods)) }

// awaitPending waits until so many managed pods wait, and none of them for a cycle.
func (c *cluster) awaitPending(pending int) {
	c.t.Helper()
	c.eventually("all pods wait and none is tried", func() bool {
		return c.pending() == pending && c.store.Snapshot().Root().Admitted.IsZero()
	})
}

// check returns the violations of the claim. Each disturbance allows a window of large ranks.
func (r *referee) check(disturbances int) error {
	defer holding(&r.mu)()
	var errs []error
	if len(r.unknown) > 0 {
		errs = append(errs, fmt.Errorf("pods that got a node and did not wait: %v", r.unknown))
	}
	if allowed := disturbances * r.window; r.outOfTurn > allowed {
		errs = append(errs, fmt.Errorf("%d pods got a node when %d or more others were before them, up to %d, and %d are allowed", r.outOfTurn, r.window, r.max, allowed))
	}
	if r.maxLead > int64(r.window) {
		errs = append(errs, fmt.Errorf("a queue was %d pods away from the ideal, %d are allowed", r.maxLead, r.window))
	}
	return errors.Join(errs...)
}

// TestOrder: pods get nodes in the order of the queues. With back-off, as two of the cases have it, pods
// that failed a moment ago wait in a separate queue, and the scheduler takes them only when it is idle.
// So the order is that of the other cases as long as the scheduler keeps up with the rooms; that is the
// claim here. While it does not keep up, the queues of pods that did not fail a moment ago have more
// than their share, for as long as the back-off lasts. No window bounds that excess, and its size
// depends on the machine. So these cases run in a bubble, in which a scheduler keeps up with any pace.
func TestOrder(t *testing.T) {
	for name, s := range map[string]scenario{
		"window 64":                 {pending: 600, steps: 200, window: 64, most: 5},
		"window that grows":         {pending: 600, steps: 200, window: 64, largest: 1024},
		"at rest before every step": {pending: 900, steps: 200, window: 1, calm: true},
		"many rooms at a time":      {pending: 600, steps: 200, window: 64, ahead: 20},
		"pods are new":              {pending: 600, steps: 200, window: 64, rush: true, pace: restless, disturbances: 1},
		"a queue comes late":        {pending: 900, steps: 300, window: 8, late: "b", disturbances: 1},
		"back-off and a fast pace":  {pending: 900, steps: 300, window: 64, backoff: 1},
		"back-off, a room a second": {pending: 900, steps: 300, window: 64, backoff: 1, pace: time.Second},
		"pods of one queue end": {pending: 900, steps: 500, window: 8, finish: func(step int) string {
			if step > 60 && step%3 > 0 {
				return "a"
			}
			return ""
		}},
	} {
		t.Run(name, func(t *testing.T) { expect.Holds(t, s.judge(t)) })
	}
}

// early admits one pod before its turn, and makes it be tried first.
type early struct {
	*queuesort.Plugin
	pod string
}

func (e early) PreEnqueue(ctx context.Context, pod *corev1.Pod) *fwk.Status {
	if pod.Name == e.pod {
		return nil
	}
	return e.Plugin.PreEnqueue(ctx, pod)
}

func (e early) Less(a, b fwk.QueuedPodInfo) bool {
	if first := a.GetPodInfo().GetPod().Name == e.pod; first || b.GetPodInfo().GetPod().Name == e.pod {
		return first
	}
	return e.Plugin.Less(a, b)
}

// byAge is an order without queues: all pods enter, the oldest is next.
type byAge struct{ fwk.Plugin }

func (byAge) PreEnqueue(context.Context, *corev1.Pod) *fwk.Status { return nil }

func (byAge) Less(a, b fwk.QueuedPodInfo) bool {
	return comparePods(a.GetPodInfo().GetPod(), b.GetPodInfo().GetPod()) < 0
}

func TestOrderFindsPlantedBugs(t *testing.T) {
	// sorted is a scenario in which another plugin sorts.
	sorted := func(s scenario, of func(*queuesort.Plugin) fwk.Plugin) scenario {
		s.options.registry = frameworkruntime.Registry{
			queuesort.Name: func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
				plugin, err := queuesort.New(ctx, args, h)
				if err != nil {
					return nil, err
				}
				return of(plugin.(*queuesort.Plugin)), nil
			},
		}
		return s
	}
	for name, planted := range map[string]scenario{
		"usage is ignored": sorted(scenario{pending: 900, steps: 300, window: 8, pace: restless},
			func(p *queuesort.Plugin) fwk.Plugin { return byAge{p} }),
		// By nine to fifteen places, like one pod of 300.
		"one pod is early": sorted(scenario{pending: 900, steps: 300, window: 8},
			func(p *queuesort.Plugin) fwk.Plugin { return early{p, "a-00024"} }),
		"guarantees are ignored": {pending: 900, steps: 300, window: 8, equal: true},
	} {
		t.Run(name, func(t *testing.T) {
			err := planted.judge(t)
			expect.That(t, err != nil, "it is not noticed")
			t.Log(err)
		})
	}
}

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
