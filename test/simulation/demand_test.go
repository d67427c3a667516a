package simulation_test

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// Demand: autoscalers add nodes for the pods that a node would let run, and for no others.
// In which order pods are counted is not judged. In every order, each pod that is told
// Unschedulable fits the quotas beside all others that are, and no other pod does.

// toldWithin is how long a pod may say the wrong thing while nothing else changes.
const toldWithin = 5 * time.Second

// demand finds pods for which an autoscaler would add a node on which they may not run, and pods that
// were told that it adds none and which may run there. The caller holds the lock.
func (s *simulation) demand(in *instance) []complaint {
	var all []complaint
	var wanted, untold, rest []*corev1.Pod
	used := in.running(s.lastValid.spec)
	for _, pod := range s.api.allPods() {
		switch said := saidOfDemand(pod); {
		case pod.Spec.SchedulerName != managed || !pending(pod):
		case isTrue(pod, reservations.HeldCondition):
			used.add(claimantPod(pod), 1)
		case s.requiredNode(pod) != "":
		case pod.Status.NominatedNodeName != "": // it is counted if it found no node before
			untold = append(untold, pod)
		case said == corev1.PodReasonUnschedulable:
			used.add(claimantPod(pod), 1)
			wanted = append(wanted, pod)
		case said == "":
			untold = append(untold, pod)
		case len(pod.Spec.SchedulingGates) == 0 && groupOf(pod).Name == "" && !s.requestsInvented(pod):
			rest = append(rest, pod)
		}
	}
	known := func(q *quota) bool { return !q.missing && !s.removed[q.queue] }
	used.ran = s.api.ran
	for _, pod := range wanted {
		c := claimantPod(pod)
		used.add(c, -1)
		if why := used.refuses(c, known); why != "" {
			all = append(all, complaint{what: "demand of " + pod.Name, err: fmt.Errorf(
				"a node is wanted for pod %s, which requests %v: beside it %s", pod.Name, c.request, why)})
		}
		used.add(c, 1)
	}
	// The scheduler says once that a pod found no node. If that write is lost, the pod is
	// counted and says nothing.
	for _, pod := range untold {
		used.addDoubtful(claimantPod(pod))
	}
	all = append(all, s.demandOfGroups(in)...)
	used.ran = nil
	s.addRan(used)
	for _, pod := range rest {
		if c := claimantPod(pod); s.mayRun(c, used) {
			all = append(all, complaint{what: "demand of " + pod.Name, err: fmt.Errorf(
				"no node is wanted for pod %s, which requests %v and may run: it says %q (%v); %s", pod.Name, c.request, saidOfDemand(pod), in.store().BeyondQuota(pod.UID), used.of(c))})
		}
	}
	return all
}

// demandOfGroups finds pods for which an autoscaler would add a node although their
// PodGroup cannot start: with the members that have or hold a node, are wanted, or say
// nothing, it has too few. The caller holds the lock.
func (s *simulation) demandOfGroups(in *instance) []complaint {
	if !s.settings.groups {
		return nil
	}
	placed, could, wanted := in.atPermit(), map[types.NamespacedName]int{}, []*corev1.Pod{}
	for _, pod := range s.api.allPods() {
		switch name, said := groupOf(pod), saidOfDemand(pod); {
		case name.Name == "" || !inGroup(pod, name):
		case pod.Spec.NodeName != "", placed[pod.UID], isTrue(pod, reservations.HeldCondition):
			could[name]++
		case !pending(pod) || len(pod.Spec.SchedulingGates) > 0 || said == corev1.PodReasonSchedulingGated:
		default:
			could[name]++
			if said == corev1.PodReasonUnschedulable && s.requiredNode(pod) == "" && pod.Status.NominatedNodeName == "" {
				wanted = append(wanted, pod)
			}
		}
	}
	var all []complaint
	for _, pod := range wanted {
		name := groupOf(pod)
		if g := s.group(name); g == nil || could[name] < int(g.Spec.MinMember) {
			all = append(all, complaint{what: "group of " + pod.Name, err: fmt.Errorf(
				"a node is wanted for pod %s, and of its PodGroup %s only %d could start (%v)", pod.Name, name, could[name], in.store().BeyondQuota(pod.UID))})
		}
	}
	return all
}

// saidOfDemand is what a pod without a node tells autoscalers; empty for nothing.
func saidOfDemand(pod *corev1.Pod) string {
	if c := informer.Condition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return c.Reason
	}
	return ""
}

// isTrue tells whether a condition of a pod is true.
func isTrue(pod *corev1.Pod, of corev1.PodConditionType) bool {
	c := informer.Condition(pod, of)
	return c != nil && c.Status == corev1.ConditionTrue
}

// saysOnly tells whether all conditions of a patch only say something of a waiting pod, or are
// of some more types.
func saysOnly(conditions []corev1.PodCondition, more ...corev1.PodConditionType) bool {
	return !slices.ContainsFunc(conditions, func(c corev1.PodCondition) bool {
		return c.Type != corev1.PodScheduled && c.Type != reasons.AdmittedCondition && !slices.Contains(more, c.Type)
	})
}

// misled is since when pods say the wrong thing of demand, while nothing else changes.
type misled struct {
	since   map[string]time.Time
	changes int
	leader  *instance
}

// lateDemand finds pods that say the wrong thing of demand for too long. Calls have
// succeeded for a while. With PodGroups only these are judged, because members at Permit
// take quotas for moments. The caller holds the lock.
func (s *simulation) lateDemand() {
	now, leader, changes := time.Now(), s.leader(), s.api.writes-s.api.said
	before := s.misled
	s.misled = misled{map[string]time.Time{}, changes, leader}
	if leader == nil || leader != before.leader || changes != before.changes || !s.connected() {
		return
	}
	judge := s.demand
	if s.settings.groups {
		judge = s.demandOfGroups
	}
	for _, c := range judge(leader) {
		since, known := before.since[c.what]
		if !known {
			since = now
		}
		s.misled.since[c.what] = since
		if now.Sub(since) > toldWithin {
			s.fault("for %v %v", now.Sub(since), c.err)
		}
	}
}

// overlooked are the quotas that a planted bug leaves out of what is said of demand.
var overlooked = map[string]*regexp.Regexp{
	bugBuys:      regexp.MustCompile(""),
	bugUserLimit: regexp.MustCompile(`OverUserLimit|user .* requested`),
	bugMaxApps:   regexp.MustCompile(`MaxApplications|maxapplications`),
	bugMembers:   regexp.MustCompile(`PodGroup`),
}

// beyondQuota is the quota that keeps a pod from running on a new node.
func (in *instance) beyondQuota(pod types.UID) reasons.Reason {
	why := in.store().BeyondQuota(pod)
	if o := overlooked[in.sim.bug]; o != nil && o.MatchString(string(why.Code)+": "+why.Text) {
		return reasons.Reason{}
	}
	return why
}

// countDemand counts pods that are told that no node is wanted for them, and those for which
// this is taken back.
func (s *simulation) countDemand(before *corev1.Pod, says *corev1.PodCondition) {
	gated := saidOfDemand(before) == corev1.PodReasonSchedulingGated
	switch {
	case says.Type != corev1.PodScheduled:
	case says.Reason == corev1.PodReasonSchedulingGated && !gated:
		s.count(unwanted)
	case says.Reason == corev1.PodReasonUnschedulable && gated:
		s.count(wantedAgain)
	}
}

// demandWrongly tells whether a patch of a pod is lost by a planted bug.
func (s *simulation) demandWrongly(pod *corev1.Pod, says []corev1.PodCondition) bool {
	return slices.ContainsFunc(says, func(c corev1.PodCondition) bool {
		switch gated := c.Reason == corev1.PodReasonSchedulingGated; {
		case c.Type != corev1.PodScheduled:
			return false
		case gated:
			o := overlooked[s.bug]
			return o != nil && o.MatchString(c.Message)
		}
		return s.bug == bugNeverBack && c.Reason == corev1.PodReasonUnschedulable && saidOfDemand(pod) == corev1.PodReasonSchedulingGated
	})
}
