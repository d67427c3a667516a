package simulation_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Quotas of pods: max, limits of users and groups, and maxapplications. They are added up
// here from the configuration and from pods, without the code of the scheduler. In a
// quarter of the histories queues have limits and maxapplications.

// quota is one of the quotas of a pod.
type quota struct {
	queue, of string
	max       resources.Limit
	apps      uint64 // how many applications may run; 0 for no bound
	isMax     bool   // it is the max of a queue, in which preemption makes room
	missing   bool   // the queue is not configured
}

// claimant is a pod as quotas see it.
type claimant struct {
	queue, app string
	request    resources.Vector
}

func claimantOf(p *objects.Pod) claimant {
	return claimant{p.Labels[placement.KeyQueue], appOf(p), p.Request}
}

func claimantPod(p *corev1.Pod) claimant {
	return claimant{p.Labels[placement.KeyQueue], p.Namespace + "/" + p.Labels[placement.KeyApplicationID], request(p)}
}

// userOf is the user of an application and its group, by its name; empty for none.
func userOf(app string) (user, group string) {
	switch {
	case strings.HasPrefix(app, evil+"/"):
		return "", "" // it names other users as it likes, none of these
	case strings.HasSuffix(app, "0"):
		return "ann", "staff"
	case strings.HasSuffix(app, "1"):
		return "bob", "staff"
	}
	return "cat", ""
}

// quotas returns the quotas of a pod, from its queue up.
func (c claimant) quotas(spec *config.Spec) []quota {
	var out []quota
	user, group := userOf(c.app)
	for _, path := range ancestors(c.queue) {
		q := queueOf(spec, path)
		if q == nil {
			out = append(out, quota{queue: path, of: "queue " + path, missing: true})
			continue
		}
		out = append(out, quota{queue: path, of: "queue " + path, max: q.Max, isMax: true},
			quota{queue: path, of: "all of queue " + path, apps: q.MaxApplications})
		if l := limitOf(q.Limits, user, func(l *config.Limit) []string { return l.Users }); l != nil && user != "" {
			out = append(out, quota{queue: path, of: "user " + user + " of queue " + path, max: l.MaxResources, apps: l.MaxApplications})
		}
		if l := limitOf(q.Limits, group, func(l *config.Limit) []string { return l.Groups }); l != nil && group != "" {
			out = append(out, quota{queue: path, of: "group " + group + " of queue " + path, max: l.MaxResources, apps: l.MaxApplications})
		}
	}
	return out
}

// limitOf is the limit for a name, or else for each name; nil for none.
func limitOf(limits []config.Limit, name string, names func(*config.Limit) []string) *config.Limit {
	for _, wanted := range []string{name, "*"} {
		for i := range limits {
			if slices.Contains(names(&limits[i]), wanted) {
				return &limits[i]
			}
		}
	}
	return nil
}

// limited tells whether a pod has other quotas than max.
func (c claimant) limited(spec *config.Spec) bool {
	return slices.ContainsFunc(c.quotas(spec), func(q quota) bool { return !q.isMax && (q.apps > 0 || !q.max.IsUnlimited()) })
}

type tally struct {
	spec *config.Spec
	used map[string]resources.Vector
	apps map[string]map[string]int // pods of each application
	// ran is applications that may run by pods which are gone, and so are not refused. more
	// is such applications by quota, which count beside the others.
	ran  map[string]bool
	more map[string]map[string]bool
}

func newTally(spec *config.Spec) *tally {
	return &tally{spec: spec, used: map[string]resources.Vector{}, apps: map[string]map[string]int{}, more: map[string]map[string]bool{}}
}

// add adds a pod, or takes it out with sign -1.
func (t *tally) add(c claimant, sign int) {
	for _, q := range c.quotas(t.spec) {
		if sign < 0 {
			t.used[q.of] = t.used[q.of].Sub(c.request)
		} else {
			t.used[q.of] = t.used[q.of].Add(c.request)
		}
		if t.apps[q.of] == nil {
			t.apps[q.of] = map[string]int{}
		}
		if t.apps[q.of][c.app] += sign; t.apps[q.of][c.app] == 0 {
			delete(t.apps[q.of], c.app)
		}
	}
}

// addDoubtful adds a pod that may count.
func (t *tally) addDoubtful(c claimant) {
	for _, q := range c.quotas(t.spec) {
		if t.more[q.of] == nil {
			t.more[q.of] = map[string]bool{}
		}
		t.used[q.of], t.more[q.of][c.app] = t.used[q.of].Add(c.request), true
	}
}

// refuses returns the quota that has no room for one more pod; empty if all have room.
func (t *tally) refuses(c claimant, counts func(*quota) bool) string {
	for _, q := range c.quotas(t.spec) {
		apps := t.apps[q.of]
		n := uint64(len(apps))
		for app := range t.more[q.of] {
			if apps[app] == 0 && app != c.app {
				n++
			}
		}
		switch {
		case !counts(&q):
		case !q.max.Allows(t.used[q.of], c.request):
			return fmt.Sprintf("%s uses %v of %v", q.of, t.used[q.of], q.max)
		case q.apps > 0 && apps[c.app] == 0 && !t.ran[c.app] && n >= q.apps:
			return fmt.Sprintf("%s has %d applications of %d", q.of, n, q.apps)
		}
	}
	return ""
}

func (t *tally) of(c claimant) string {
	text := c.app
	for _, q := range c.quotas(t.spec) {
		if q.apps > 0 || !q.max.IsUnlimited() {
			text += fmt.Sprintf("; %s: %v of %v, applications %v of %d", q.of, t.used[q.of], q.max, t.apps[q.of], q.apps)
		}
	}
	return text
}

// running is what pods with a node use, as a process counts them. The caller holds the lock.
func (in *instance) running(spec *config.Spec) *tally {
	t := newTally(spec)
	for _, p := range in.api.allPods() {
		if p.Spec.SchedulerName == managed && p.Spec.NodeName != "" && !ended(p) {
			t.add(in.claimant(p), 1)
		}
	}
	return t
}

// addRan counts the applications that had a pod with a node, too, and still have pods. A
// process counts them if it has seen that pod. The caller holds the lock.
func (s *simulation) addRan(t *tally) {
	for _, p := range s.api.allPods() {
		if c := claimantPod(p); p.Spec.SchedulerName == managed && pending(p) && s.api.ran[c.app] {
			c.request = resources.Vector{}
			t.addDoubtful(c)
		}
	}
}

// mayRun tells whether all queues of a pod are known and all quotas have room for it. The
// caller holds the lock.
func (s *simulation) mayRun(c claimant, used *tally) bool {
	unknown := func(q quota) bool { return q.missing || s.removed[q.queue] }
	every := func(*quota) bool { return true }
	return !slices.ContainsFunc(c.quotas(used.spec), unknown) && used.refuses(c, every) == ""
}

var anyQueue = regexp.MustCompile(` *- name: [abcdxy]\n(?: *resources: .*\n)? *properties: .*\n`)

// limit adds limits and maxapplications to the queues of a configuration, where the history has some.
func (s *simulation) limit(d document) document {
	if s.settings.dynamic {
		d.text = strings.Replace(d.text, "create: false", "create: true", 1)
		d.spec, _ = config.Parse([]byte(d.text))
	}
	if !s.settings.limited {
		return d
	}
	r := newChance(s.seed + 4_000_000_007 + uint64(s.step.Load()))
	for range 20 {
		text := anyQueue.ReplaceAllStringFunc(d.text, func(queue string) string {
			if s.settings.turns && strings.Contains(queue, "name: c\n") {
				return queue // it becomes a parent of a queue without limits
			}
			return queue + r.limits(queue[:strings.IndexByte(queue, '-')]+"  ")
		})
		if spec, err := config.Parse([]byte(text)); err == nil { // queues below may get no more than those above
			return document{text, spec}
		}
	}
	return d
}

// limits returns the limits of a queue as the lines of a document.
func (r chance) limits(indent string) string {
	text := ""
	if r.of(3) {
		text += fmt.Sprintf("%smaxapplications: %d\n", indent, 1+r.IntN(3))
	}
	var list []string
	for _, of := range []string{"users: [ann]", "groups: [staff]", `users: ["*"]`} {
		if !r.of(4) {
			continue
		}
		l := fmt.Sprintf("{limit: some, %s, maxresources: {vcore: %d}", of, 2+r.IntN(5))
		if r.of(3) {
			l += fmt.Sprintf(", maxapplications: %d", 1+r.IntN(2))
		}
		list = append(list, l+"}")
	}
	if len(list) > 0 {
		text += indent + "limits: [" + strings.Join(list, ", ") + "]\n"
	}
	return text
}

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
