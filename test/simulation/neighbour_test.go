package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
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
	// given are the pods that it gave a node and that its cache does not show there yet.
	given   map[types.UID]binding
	latency time.Duration // of a bind
}

// binding is a bind, in flight or done.
type binding struct {
	node    string
	request resources.Vector
	at      time.Time
	sent    bool
}

const (
	// tick is the interval of its actions: 97 ms, so that it rarely acts at the moment of another timer.
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

// act does one tick. The caller holds the lock.
func (n *neighbour) act() {
	now := time.Now()
	n.pods.catchUp(now)
	n.nodes.catchUp(now)
	n.make()
	n.bind(now)
	for _, o := range sorted(n.pods.objects) {
		if pod := o.(*corev1.Pod); pod.Spec.SchedulerName == alien && pending(pod) {
			n.schedule(pod, now)
		}
	}
}

// keepQuiet stops it from making pods, or lets it make pods again. The caller holds the lock.
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
	if n.chance.of(4) {
		of := func(p *corev1.Pod) bool { return p.Spec.SchedulerName == alien && runs(p) }
		if pod := n.sim.some(n.chance.IntN(100), of); pod != nil {
			n.sim.api.editPod(pod, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		}
	}
	other := func(p *corev1.Pod) bool { return p.Spec.SchedulerName != alien || ended(p) }
	its := slices.DeleteFunc(n.sim.api.allPods(), other)
	all, waiting := len(its), len(slices.DeleteFunc(its, func(p *corev1.Pod) bool { return !pending(p) }))
	if all >= mostNeighbours || waiting >= mostWaiting || len(n.sim.api.pods.objects) >= mostPods {
		return
	}
	n.sim.create(n.sim.newPod(alien, move{kind: "neighbour", a: n.chance.IntN(100), b: n.chance.IntN(100), n: n.chance.IntN(4)}))
}

// bind sends the binds that are due.
func (n *neighbour) bind(now time.Time) {
	for _, uid := range slices.Sorted(maps.Keys(n.given)) {
		b := n.given[uid]
		pod := podOf(n.pods.objects, uid)
		if pod == nil || pod.Spec.NodeName != "" { // seen by its cache, or gone
			delete(n.given, uid)
			continue
		}
		if b.sent || b.at.After(now) {
			continue
		}
		current := n.sim.api.podOf(uid)
		if current == nil || !pending(current) {
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
	keptOff := func(t corev1.Taint) bool { return n.sim.bug != bugBlind || !keepsOff(t) }
	for _, o := range sorted(n.nodes.objects) {
		node := o.(*corev1.Node)
		free := informer.Allocatable(node).Sub(n.usedOn(node.Name))
		if !node.Spec.Unschedulable && !slices.ContainsFunc(node.Spec.Taints, keptOff) && free.Covers(request(pod)) {
			fit = append(fit, node.Name)
		}
	}
	if len(fit) == 0 {
		return
	}
	node := pick(n.chance, fit...)
	n.given[pod.UID] = binding{node: node, request: request(pod), at: now.Add(n.latency)}
	n.sim.judgeNeighbour(pod, node)
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

// Room that was made by deleting pods: how it is kept from the neighbour, and what
// follows when it is lost.

// kept is a hold for which pods have been deleted.
type kept struct {
	hold    reservations.Hold
	version int64 // since when
}

func (c *nodeClient) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, _ metav1.PatchOptions, subresources ...string) (patched *corev1.Node, err error) {
	var says corev1.Node
	if err := json.Unmarshal(data, &says); err != nil {
		return nil, err
	}
	if pt != types.MergePatchType || len(subresources) > 0 || says.Spec.Taints == nil {
		return nil, fmt.Errorf("this API server does not know the patch %s of type %s of nodes", data, pt)
	}
	c.in.mayWrite(true, "taint node", name)
	err = change(ctx, c.reader, "patch", name, func(n *corev1.Node) error {
		if says.UID != n.UID || says.ResourceVersion != n.ResourceVersion {
			return apierrors.NewConflict(c.kind.resource, name, errors.New("it was changed"))
		}
		patched = n.DeepCopy()
		patched.Spec.Taints = says.Spec.Taints
		if c.in.sim.taintWrongly(n, patched) {
			return nil
		}
		c.in.sim.logf("%s taints node %s: %v", c.in.name, name, patched.Spec.Taints)
		c.in.api.put(c.kind, patched)
		return nil
	})
	return patched, err
}

func keepsOff(t corev1.Taint) bool { return t.Key == reservations.HeldTaint }

// judgeTaint finds a pod that is about to be deleted for a hold although the node has no taint;
// otherwise it notes the hold. The callers hold the lock of the API server and of the interceptor.
func (w *interceptor) judgeTaint(victim *corev1.Pod) {
	asker, due := w.due[victim.UID]
	h, held := w.Holds().Of(asker)
	if !due || !held || victim.DeletionTimestamp != nil || !slices.Contains(h.Chosen, victim.UID) {
		return // the call has come late
	}
	s := w.in.sim
	n := s.api.node(h.Node)
	if n == nil || !n.CreationTimestamp.Time.Before(h.Since) {
		return
	}
	if s.settings.taints && !slices.ContainsFunc(n.Spec.Taints, keepsOff) {
		s.fault("%s deletes %s for %s, and node %s has no taint that keeps others off", w.in.name, victim.Name, h.Name, h.Node)
	}
	if before, known := s.kept[asker]; !known || !before.hold.Since.Equal(h.Since) {
		s.kept[asker] = kept{hold: h, version: s.api.rv}
	}
}

// judgeNeighbour finds a pod that the neighbour places on a node although pods had been
// deleted for a hold of the node by the version in the neighbour's cache: that version
// has the taint. The caller holds the lock of the API server.
func (s *simulation) judgeNeighbour(pod *corev1.Pod, node string) {
	leader := s.leader()
	if !s.settings.taints || leader == nil {
		return
	}
	for _, uid := range slices.Sorted(maps.Keys(s.kept)) {
		k := s.kept[uid]
		h, held := leader.store().Holds().Of(uid)
		if !held || !h.Since.Equal(k.hold.Since) || k.hold.Node != node || k.version > s.neighbour.nodes.told {
			continue
		}
		if n := s.neighbour.nodes.objects[types.NamespacedName{Name: node}]; !n.GetCreationTimestamp().Time.Before(h.Since) {
			continue // it is another node of this name
		}
		if asker := s.api.pod(types.NamespacedName{Namespace: h.Namespace, Name: h.Name}); asker == nil || asker.Spec.NodeName != "" {
			continue // it was bound by an earlier process, which took the taint off, and the leader has not seen that
		}
		s.fault("the neighbour gives %s node %s, where pods were deleted for %s: it sees no taint", pod.Name, node, h.Name)
	}
}

// taints finds, at rest, a taint that no hold wants. The caller holds the lock.
func (s *simulation) taints(in *instance) []complaint {
	var all []complaint
	for _, n := range s.api.allNodes() {
		wants := func(h reservations.Hold) bool { return h.Node == n.Name && len(h.Chosen) > 0 }
		wanted := s.settings.taints && slices.ContainsFunc(in.store().Holds().All(), wants)
		if slices.ContainsFunc(n.Spec.Taints, keepsOff) && !wanted {
			err := fmt.Errorf("%s: node %s has a taint that keeps others off, and no hold wants it", in.name, n.Name)
			all = append(all, complaint{what: "taint of " + n.Name, err: err})
		}
	}
	return all
}

// noteLoss notes that a hold for which pods were deleted has ended while its asker still
// waits. If the process was without the lease meanwhile, the time is not known.
func (w *interceptor) noteLoss(item *output.Work) {
	s := w.in.sim
	defer w.lockAll()()
	if item.Ended == reservations.Bound || item.Ended == reservations.Deleted {
		return
	}
	k, known := s.kept[item.UID]
	if known = known && k.hold.Since.Equal(item.Hold.Since); known {
		delete(s.kept, item.UID) // the node has no taint any more, even if a later process takes the hold over
	}
	if _, pending := w.pendingPod(item.UID); !pending || !known || s.elects || s.settings.groups {
		return
	}
	s.count(lost)
	s.logf("%s has lost the room of %s on %s: %s", w.in.name, item.Name, item.Hold.Node, item.Reason)
	w.lost[item.UID] = time.Now()
}

// judgeRetry finds pods that are preempted for an asker soon after it lost its room. The
// caller holds mu.
func (w *interceptor) judgeRetry(asker types.UID, h *reservations.Hold) {
	if at, once := w.lost[asker]; once && h.Since.Before(at.Add(retryInterval*time.Second-time.Microsecond)) && h.Since.After(at) {
		w.in.sim.fault("%s makes pods go for %s on %s %v after it lost its room, which is less than the retry interval",
			w.in.name, h.Name, h.Node, h.Since.Sub(at))
	}
}
