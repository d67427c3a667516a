package simulation_test

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// neighbour is a scheduler of another process, with pods of its own. It sees nodes and
// pods through a cache that lags, and sees taints but no holds. It sees a placement by
// another scheduler only after the bind.
//
//	every tick: make a pod ─► the watches, late ─► filter, choose ─► bind, some time later
//
// Its fields are guarded by the lock of the API server.
type neighbour struct {
	sim    *simulation
	chance chance
	quiet  bool // makes no pods
	pods   feed
	nodes  feed
	// latency is the duration of a bind.
	latency time.Duration
	// given are the pods that it gave a node and that its cache does not show there yet.
	given map[types.UID]binding
}

// binding is a bind, in flight or done.
type binding struct {
	node    string
	request resources.Vector
	at      time.Time
	sent    bool
}

const (
	// tick is the interval of its actions: 97 ms, so that it rarely acts at the moment of
	// another timer.
	tick = 97 * time.Millisecond
	// mostNeighbours bounds its pods, mostWaiting those of them that wait.
	mostNeighbours, mostWaiting = 9, 4
)

// feed is the state of one watch: the objects of a kind as of some time ago.
type feed struct {
	kind    *kind
	late    time.Duration
	next    int   // index of the next event
	told    int64 // version of the last event
	objects map[types.NamespacedName]object
}

// catchUp applies the events up to some time ago, and tells whether there were any. The
// caller holds the lock of the API server.
func (f *feed) catchUp(now time.Time) (any bool) {
	if f.objects == nil {
		f.objects = map[types.NamespacedName]object{}
	}
	for ; f.next < len(f.kind.events); f.next++ {
		h := f.kind.events[f.next]
		if h.at.Add(f.late).After(now) {
			break
		}
		any, f.told = true, h.rv
		if h.new != nil {
			f.objects[nameOf(h.new)] = h.new
		} else {
			delete(f.objects, nameOf(h.old))
		}
	}
	return any
}

// moveIn starts the neighbour, in histories that have one.
func (s *simulation) moveIn() {
	if !s.settings.beside {
		return
	}
	r := newChance(s.seed + 1_000_000_007)
	lag := func() time.Duration { return time.Duration(pick(r, 0, 50, 300, 1000, 3000)) * time.Millisecond }
	s.neighbour = &neighbour{
		sim: s, chance: r, quiet: true, latency: time.Duration(pick(r, 0, 100, 500)) * time.Millisecond, given: map[types.UID]binding{},
		pods: feed{kind: s.api.pods, late: lag()}, nodes: feed{kind: s.api.nodes, late: lag()},
	}
}

// act does one tick of the neighbour. The caller holds the lock.
func (n *neighbour) act() {
	now := time.Now()
	n.pods.catchUp(now)
	n.nodes.catchUp(now)
	n.make()
	n.bind(now)
	for _, o := range sortedObjects(n.pods.objects) {
		if pod := o.(*corev1.Pod); pod.Spec.SchedulerName == alien && pending(pod) {
			n.schedule(pod, now)
		}
	}
}

// keepQuiet stops it from making pods, or lets it make pods again. The caller holds the
// lock.
func (n *neighbour) keepQuiet(quiet bool) {
	if n != nil {
		n.quiet = quiet
	}
}

// make ends one of its pods and makes another one, so that some wait all the time.
func (n *neighbour) make() {
	if n.quiet || !n.chance.of(5) {
		return
	}
	all, waiting := 0, 0
	if n.chance.of(4) {
		of := func(p *corev1.Pod) bool { return p.Spec.SchedulerName == alien && runs(p) }
		if pod := n.sim.some(n.chance.IntN(100), of); pod != nil {
			n.sim.api.editPod(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		}
	}
	for _, pod := range n.sim.api.allPods() {
		if pod.Spec.SchedulerName != alien || ended(pod) {
			continue
		}
		if all++; pending(pod) {
			waiting++
		}
	}
	if all >= mostNeighbours || waiting >= mostWaiting || len(n.sim.api.pods.objects) >= mostPods {
		return
	}
	n.sim.create(n.sim.newPod(alien, move{kind: "neighbour", a: n.chance.IntN(100), b: n.chance.IntN(100), n: n.chance.IntN(4)}))
}

// bind sends the binds that are due.
func (n *neighbour) bind(now time.Time) {
	for _, uid := range slices.Sorted(maps.Keys(n.given)) {
		b := n.given[uid]
		var pod *corev1.Pod
		for _, o := range n.pods.objects {
			if o.GetUID() == uid {
				pod = o.(*corev1.Pod)
			}
		}
		if pod == nil || pod.Spec.NodeName != "" { // seen by its cache, or gone
			delete(n.given, uid)
			continue
		}
		if b.sent || b.at.After(now) {
			continue
		}
		current := n.sim.api.pod(nameOf(pod))
		if current == nil || current.UID != uid || !pending(current) {
			delete(n.given, uid)
			continue
		}
		b.sent = true
		n.given[uid] = b
		n.sim.api.editPod(current, func(p *corev1.Pod) { p.Spec.NodeName = b.node })
		n.sim.api.touch(nil, b.node)
		n.sim.logf("the neighbour binds %s to %s", pod.Name, b.node)
		n.sim.count(besideBound)
	}
}

// schedule gives a pod a node with room and without taint, by its cache.
func (n *neighbour) schedule(pod *corev1.Pod, now time.Time) {
	if _, given := n.given[pod.UID]; given || len(pod.Spec.SchedulingGates) > 0 {
		return
	}
	var fit []string
	for _, o := range sortedObjects(n.nodes.objects) {
		node := o.(*corev1.Node)
		if node.Spec.Unschedulable || n.keptOff(node) || !informer.Allocatable(node).Sub(n.usedOn(node.Name)).Covers(request(pod)) {
			continue
		}
		fit = append(fit, node.Name)
	}
	if len(fit) == 0 {
		return
	}
	node := pick(n.chance, fit...)
	n.given[pod.UID] = binding{node: node, request: request(pod), at: now.Add(n.latency)}
	n.sim.judgeNeighbour(pod, node)
}

// keptOff tells whether a taint keeps pods off a node.
func (n *neighbour) keptOff(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return n.sim.bug != bugBlind || !keepsOff(t) })
}

// usedOn returns what pods use of a node, by its cache.
func (n *neighbour) usedOn(node string) resources.Vector {
	var used resources.Vector
	for _, o := range n.pods.objects {
		pod := o.(*corev1.Pod)
		if _, given := n.given[pod.UID]; !given && pod.Spec.NodeName == node && !ended(pod) {
			used = used.Add(request(pod))
		}
	}
	for _, b := range n.given {
		if b.node == node {
			used = used.Add(b.request)
		}
	}
	return used
}

// beside runs all actors beside the schedulers every tick, until it is stopped.
func (s *simulation) beside(stop <-chan struct{}) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		s.api.locked(func() {
			if s.neighbour != nil {
				s.neighbour.act()
			}
			s.guard.act()
		})
	}
}

func sortedObjects(objects map[types.NamespacedName]object) []object {
	return (&kind{objects: objects}).sorted()
}
