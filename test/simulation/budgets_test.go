package simulation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

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
	c := informer.Condition(pod, corev1.PodReady)
	switch {
	case c == nil:
	case c.Status == corev1.ConditionTrue:
		c.Status = corev1.ConditionFalse
	default:
		c.Status = corev1.ConditionTrue
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
