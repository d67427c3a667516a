package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
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

// guard is the cluster's disruption controller: it writes into the status of each
// PodDisruptionBudget how many disruptions it allows. It sees changes of pods late. Its
// fields are guarded by the lock of the API server.
type guard struct {
	sim           *simulation
	pods, budgets feed
	// healthy are the pods that the status of a budget counts, by the version of the
	// budget with that status.
	healthy map[string]map[types.UID]bool
}

func newGuard(s *simulation) *guard {
	r := newChance(s.seed + 2_000_000_011)
	late := time.Duration(pick(r, 100, 2000, 8000)) * time.Millisecond
	return &guard{sim: s, pods: feed{kind: s.api.pods, late: late}, budgets: feed{kind: s.api.budgets}, healthy: map[string]map[types.UID]bool{}}
}

// act updates the status of all budgets by the pods that the guard has seen. The caller holds the lock.
func (g *guard) act() {
	now := time.Now()
	told := g.pods.catchUp(now)
	if !g.budgets.catchUp(now) && !told {
		return
	}
	for _, budget := range g.sim.api.allBudgets() {
		g.update(budget, now)
	}
}

// update writes the status of a budget if it has changed.
func (g *guard) update(budget *policyv1.PodDisruptionBudget, now time.Time) {
	counted, disrupted, expected := map[types.UID]bool{}, map[string]metav1.Time{}, int32(0)
	for _, o := range g.pods.objects {
		pod := o.(*corev1.Pod)
		if !covers(budget, pod.Namespace, pod.Labels) || ended(pod) {
			continue
		}
		expected++
		at, evicted := budget.Status.DisruptedPods[pod.Name]
		switch evicted = evicted && now.Sub(at.Time) < 2*time.Minute; {
		case pod.DeletionTimestamp != nil:
		case evicted:
			disrupted[pod.Name] = at
		case pod.Status.Phase == corev1.PodRunning && isTrue(pod, corev1.PodReady):
			counted[pod.UID] = true
		}
	}
	status := policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: budget.Generation, DisruptedPods: disrupted, ExpectedPods: expected,
		CurrentHealthy: int32(len(counted)), DesiredHealthy: budget.Spec.MinAvailable.IntVal,
	}
	status.DisruptionsAllowed = max(0, status.CurrentHealthy-status.DesiredHealthy)
	old := &budget.Status
	same := old.ObservedGeneration == status.ObservedGeneration && old.CurrentHealthy == status.CurrentHealthy && old.DisruptionsAllowed == status.DisruptionsAllowed &&
		old.ExpectedPods == status.ExpectedPods && maps.EqualFunc(old.DisruptedPods, disrupted, func(a, b metav1.Time) bool { return a.Equal(&b) })
	if before := g.healthy[budget.ResourceVersion]; same && maps.Equal(before, counted) {
		return
	}
	if !same {
		budget = budget.DeepCopy()
		budget.Status = status
		g.sim.api.put(g.sim.api.budgets, budget)
		g.sim.logf("%s/%s allows %d of %d, %d evicted", budget.Namespace, budget.Name, status.DisruptionsAllowed, status.CurrentHealthy, len(disrupted))
	}
	g.healthy[budget.ResourceVersion] = counted
}

// covers tells whether a budget selects a pod with a namespace and labels.
func covers(budget *policyv1.PodDisruptionBudget, namespace string, labels map[string]string) bool {
	return budget.Namespace == namespace && budget.Spec.Selector.MatchLabels["tier"] == labels["tier"]
}

// turnReady makes a pod that runs ready or not ready.
func turnReady(pod *corev1.Pod) {
	was := isTrue(pod, corev1.PodReady)
	if c := informer.Condition(pod, corev1.PodReady); c != nil {
		c.Status = map[bool]corev1.ConditionStatus{true: corev1.ConditionFalse, false: corev1.ConditionTrue}[was]
	}
}

// putBudget makes or changes a PodDisruptionBudget. The caller holds the lock.
func (s *simulation) putBudget(m move) {
	namespace, name := namespaces[m.b%2], []string{"budget", "other"}[m.a/50]
	least := intstr.FromInt32(0)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name + "-" + namespace)},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": []string{"front", "back"}[m.a%2]}},
		},
	}
	if old, ok := s.api.budgets.objects[nameOf(budget)].(*policyv1.PodDisruptionBudget); ok {
		if m.a%5 == 0 {
			s.logf("budget %s/%s is gone", namespace, name)
			s.api.drop(s.api.budgets, old)
			return
		}
		budget.Status = *old.Status.DeepCopy()
	}
	for _, pod := range s.api.allPods() {
		if covers(budget, pod.Namespace, pod.Labels) && runs(pod) {
			least.IntVal++
		}
	}
	least.IntVal = max(0, least.IntVal-int32(m.n%3))
	if always := policyv1.AlwaysAllow; s.settings.sickly && m.n%2 == 0 {
		budget.Spec.UnhealthyPodEvictionPolicy = &always
	}
	budget.Generation = s.step.Load()
	s.logf("budget %s/%s: %d of %v are to stay", namespace, name, least.IntVal, budget.Spec.Selector.MatchLabels)
	s.api.put(s.api.budgets, budget)
}

// evict is the eviction by which administrators clear a node: the budgets of the pod
// count it, and then the pod is deleted; or it fails.
func (s *simulation) evict(pod *corev1.Pod, m move) {
	covering := slices.DeleteFunc(s.api.allBudgets(), func(b *policyv1.PodDisruptionBudget) bool {
		return !covers(b, pod.Namespace, pod.Labels)
	})
	exhausted := func(b *policyv1.PodDisruptionBudget) bool {
		return b.Status.DisruptionsAllowed <= 0 || b.Status.ObservedGeneration < b.Generation
	}
	if len(covering) > 1 || slices.ContainsFunc(covering, exhausted) {
		return // as the API server answers
	}
	for _, budget := range covering {
		budget = budget.DeepCopy()
		budget.Status.DisruptionsAllowed--
		if budget.Status.DisruptedPods == nil {
			budget.Status.DisruptedPods = map[string]metav1.Time{}
		}
		budget.Status.DisruptedPods[pod.Name] = metav1.NewTime(time.Now().Truncate(time.Second))
		s.api.put(s.api.budgets, budget)
	}
	if m.n < 7 {
		s.api.deleteWithin(pod, graceOf(pod))
	}
}

// claimed is a plan as it was accepted.
type claimed struct {
	asker   types.UID
	since   time.Time
	victims []types.UID
}

// share is what plans take of a budget, in pods that its status counts as healthy.
type share struct {
	allowed int      // by the status
	taken   int      // by the plan that is judged
	chosen  int      // by earlier plans in force, and not deleted yet
	gone    int      // deleted by earlier plans
	since   int      // healthy pods that the budget covers and the status does not count
	counted []string // the pods that the status counts, for people
}

// beyond is how many pods the plan takes beyond what the budget allows. A pod that the
// budget covers since its status stands in for one that is gone: both change what is
// healthy, and what is healthy beyond the desired number may be disrupted.
func (s share) beyond() int {
	return min(s.taken, max(0, s.taken+s.chosen+max(0, s.gone-s.since)-s.allowed))
}

// changedSince tells whether a pod has changed since a version of the API server, or is gone.
func (a *apiServer) changedSince(p *objects.Pod, version int64) bool {
	pod := a.podOf(p.UID)
	return pod == nil || versionOf(pod) > version
}

// judgeBudgets finds a plan that takes more pods of a budget than the budget allows beside the earlier
// plans in force, and does not report it. It judges by the status that the process knew when the cycle
// of the asker began, if the budget still has that status; a pod counts if that status counts it as
// healthy. A disruption of an earlier plan counts if the plan is in force or has deleted the pod. It
// does not count if the hold of that plan has ended, and the process may have planned before the event
// of the delete: until then the pod is one that stays (decision 137).
func (w *interceptor) judgeBudgets(item *output.Work) {
	d := item.Decision
	if d == nil || d.Outcome != planner.Preempt || len(d.Victims) == 0 {
		return
	}
	s := w.in.sim
	defer w.lockAll()()
	plan := claimed{asker: item.UID, since: item.Hold.Since}
	for _, v := range d.Victims {
		plan.victims = append(plan.victims, types.UID(v.UID))
	}
	w.judgeUnhealthy(item)
	w.claimed = append(w.claimed, plan)
	knows := w.in.tried[item.UID].knew
	earlier := w.onTheirWay(&plan, knows[s.api.pods])
	for _, budget := range s.api.allBudgets() {
		counted := s.guard.healthy[budget.ResourceVersion]
		of := share{allowed: int(budget.Status.DisruptionsAllowed), since: w.coveredSince(budget, counted)}
		for uid := range counted {
			gone, ours := earlier[uid]
			p, known := w.pods[uid]
			of.counted = append(of.counted, fmt.Sprintf("%s (on %q, known %v, deleted %v, chosen before %v, deleted for that %v)", uid, p.Node, known, p.Deleting, ours, gone))
			switch {
			case known && (!covers(budget, p.Namespace, p.Labels) || p.Health != objects.Ready):
				// The status counts it; the process knows other labels, or that it is not ready.
			case slices.Contains(plan.victims, uid):
				if !known || !s.api.changedSince(&p, knows[s.api.pods]) { // else it may have known that when it planned
					of.taken++
				}
			case gone:
				of.gone++
			case ours:
				of.chosen++
			}
		}
		if of.taken == 0 {
			continue
		}
		if versionOf(budget) > knows[s.api.budgets] || budget.Status.ObservedGeneration != budget.Generation {
			s.count(unguarded)
			continue
		}
		s.count(guarded)
		if int64(of.beyond()) > d.Violations {
			s.fault("%s takes %d pods for %s of budget %s/%s, which allows %d; earlier plans take %d of it, %d more have come, and the plan says that it violates %d; its status counts %s",
				w.in.name, of.taken, item.Name, budget.Namespace, budget.Name, of.allowed, of.chosen+of.gone, of.since, d.Violations, strings.Join(of.counted, ", "))
		}
	}
}

// judgeUnhealthy finds a plan that says that it violates more budgets than it takes pods that a budget
// may guard: a pod that is not ready is not guarded by a budget with policy AlwaysAllow. Nothing is
// judged if pods or budgets changed since the plan was made. The caller holds mu.
func (w *interceptor) judgeUnhealthy(item *output.Work) {
	if !w.guardedAt.Before(item.Hold.Since) {
		return
	}
	guarded, free := int64(0), false
	for _, v := range item.Decision.Victims {
		p, known := w.pods[types.UID(v.UID)]
		guards, always := !known, false
		for _, b := range w.budgets {
			if b.Namespace == p.Namespace && b.Matches != nil && b.Matches(p.Labels) {
				allowed := b.AlwaysAllow && p.Health == objects.Unready && !b.DisruptedPods[p.Name]
				guards, always = guards || !allowed, always || allowed
			}
		}
		if free = free || always; guards {
			guarded++
		}
	}
	if free {
		w.in.sim.count(unhealthy)
	}
	if item.Decision.Violations > guarded {
		w.in.sim.fault("%s says that a plan for %s violates budgets by %d pods, and takes %d of which budgets guard any", w.in.name, item.Name, item.Decision.Violations, guarded)
	}
}

// coveredSince counts the healthy pods, as the process knows them, that a budget covers
// and that its status does not count. Pods that are being deleted are included, because
// the plan may be older than the deletion. The caller holds mu.
func (w *interceptor) coveredSince(budget *policyv1.PodDisruptionBudget, counted map[types.UID]bool) int {
	n := 0
	for uid, p := range w.pods {
		_, disrupted := budget.Status.DisruptedPods[p.Name]
		if covers(budget, p.Namespace, p.Labels) && p.Health == objects.Ready && !counted[uid] && !disrupted {
			n++
		}
	}
	return n
}

// onTheirWay are the victims of earlier plans that are in force, or that have deleted them and
// of which the process knew that at a version of the pods; each with whether it is deleted. The
// callers hold both locks.
func (w *interceptor) onTheirWay(plan *claimed, knew int64) map[types.UID]bool {
	out := map[types.UID]bool{}
	holds := w.Holds()
	for _, c := range w.claimed {
		if c.asker == plan.asker && c.since.Equal(plan.since) {
			continue
		}
		h, held := holds.Of(c.asker)
		inForce := held && h.Since.Equal(c.since)
		for _, uid := range c.victims {
			pod := w.in.api.podOf(uid)
			_, due := w.due[uid]
			gone := pod == nil || pod.DeletionTimestamp != nil
			p, known := w.pods[uid]
			switch {
			case inForce && slices.Contains(h.Chosen, uid):
				out[uid] = gone
			case due && gone && known && !p.Deleting && w.in.api.changedSince(&p, knew):
				w.in.sim.count(unguarded)
			case due && gone:
				out[uid] = true
			}
		}
	}
	return out
}

// TestShareOfBudget shows what a plan may take of a budget.
func TestShareOfBudget(t *testing.T) {
	for _, c := range []struct {
		what string
		share
		beyond int
	}{
		{"within", share{allowed: 2, taken: 2}, 0},
		{"beyond", share{allowed: 1, taken: 3}, 2},
		{"an earlier plan takes it", share{allowed: 1, taken: 1, chosen: 1}, 1},
		{"an earlier plan took it", share{allowed: 1, taken: 1, gone: 1}, 1},
		{"a pod has come for the one that is gone", share{allowed: 1, taken: 1, gone: 1, since: 1}, 0},
		{"a pod has come, and the status allows no more", share{allowed: 1, taken: 2, since: 3}, 1},
		{"a pod has come, and the chosen one is still counted", share{allowed: 1, taken: 1, chosen: 1, since: 1}, 1},
		{"no more than the plan takes", share{allowed: 0, taken: 1, chosen: 4}, 1},
	} {
		expect.Same(t, c.what+" beyond the budget", c.beyond, c.share.beyond())
	}
}
