package simulation_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// calm ends all faults.
func (s *simulation) calm() {
	s.trouble.Store(0)
	defer holding(&s.api.mu)()
	s.onTime()
	s.neighbour.keepQuiet(true)
	for _, in := range s.instances {
		in.isolated.Store(false)
		in.crashIn = 0
	}
	if s.document.spec == nil {
		s.configure(s.lastValid)
	}
}

const (
	// restAfter is the time without events that counts as rest: it is longer than all
	// waits of a process except the time-out of holds.
	restAfter = 25 * time.Second
	// restWithin bounds the time until rest. A PodGroup that had a clear node and did not
	// start gets no plan for up to ten minutes, and may start then.
	restWithin = time.Hour
	// sweepAfter is how long upstream's queue lets a pod wait without an event. A rest
	// after that says little of pods that an event should have brought back.
	sweepAfter = 5 * time.Minute
	// calmAfter is how long calls may take that began before all calls succeed.
	calmAfter = 15 * time.Second
	// leadAfter is how long it may take until a process leads, from when all processes get all events:
	// see connected. A standby begins to wait for the end of the lease when it first reads what the last
	// leader wrote. It looks at intervals of up to 2.2 retry periods.
	leadAfter = calmAfter + leaseDuration + 5*retryPeriod
)

// quiesce lets all processes work until a process leads, no more events happen and no pod is
// stranded. It returns false if the only events left are conditions of waiting pods and temporary
// holds of nodes. With PodGroups these may go on for ever: see onlyTold.
func (s *simulation) quiesce() (rested bool, err error) {
	began, last, seen := time.Now(), time.Now(), -1
	leaderless := began // since when the processes get all events and none leads
	for time.Since(last) < restAfter || s.held() && (s.settings.groups || time.Since(last) < 2*reservationTimeout*time.Second) || s.atPermit() {
		if time.Since(began) > restWithin {
			if s.settings.groups && time.Since(last) >= restAfter {
				return false, nil
			}
			return false, fmt.Errorf("things do not come to rest within %v", restWithin)
		}
		s.sayAgain()
		s.breathe(time.Second)
		if err := s.wrong(); err != nil {
			return false, err
		}
		led := false
		s.api.locked(func() {
			led = s.leader() != nil
			if led || !s.connected() {
				leaderless = time.Now()
			}
			if s.api.writes != seen || !led || !s.connected() || s.leaving() || s.stranded() {
				last, seen = time.Now(), s.api.writes
			}
			if time.Since(began) > calmAfter {
				s.lateDemand()
			}
		})
		if time.Since(leaderless) > leadAfter {
			return false, fmt.Errorf("no process leads within %v", leadAfter)
		}
	}
	return true, nil
}

// connected tells whether all watchers get all events: some try again only a minute after
// a failure. The caller holds the lock.
func (s *simulation) connected() bool {
	return !slices.ContainsFunc(s.instances, func(in *instance) bool {
		return slices.ContainsFunc(s.api.kinds, func(k *kind) bool { return s.api.knows(in, k) == 0 })
	})
}

// leaving tells whether a pod is about to leave its node. Some pods have a grace period
// longer than restAfter, and other pods wait for their room. Pods that stay for longer
// than all holds do not count. The caller holds the lock.
func (s *simulation) leaving() bool {
	return slices.ContainsFunc(s.api.allPods(), func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil && p.Spec.NodeName != "" && !ended(p) && time.Until(p.DeletionTimestamp.Time) < restWithin && !overdue(p)
	})
}

// held tells whether some pod holds a node for a limited time.
func (s *simulation) held() bool {
	timed := func(h reservations.Hold) bool { return !h.NodeBound || !h.Patient() }
	return slices.ContainsFunc(s.instances, func(in *instance) bool {
		return slices.ContainsFunc(in.store().Holds().All(), timed)
	})
}

// rest lets everything settle, and compares the state of every process with the cluster.
func (s *simulation) rest() error {
	s.calm()
	began := time.Now()
	rested, err := s.quiesce()
	if err != nil {
		return err
	}
	if time.Since(began) > sweepAfter {
		s.count(swept)
	}
	if err := s.check(); err != nil {
		return err
	}
	s.count(rests)
	found := s.complaints()
	if !rested { // pods that take turns may not have had one
		s.count(restless)
		found = slices.DeleteFunc(found, func(c complaint) bool { return strings.HasPrefix(c.what, "forgotten ") })
	}
	wrong, err := s.lasting(found)
	if err != nil {
		return err
	}
	var errs []error
	for _, c := range wrong {
		errs = append(errs, c.err)
	}
	return errors.Join(errs...)
}

// insist is how often, at intervals of a second, a history with PodGroups is checked again.
const insist = 60

// lasting drops the complaints that do not hold most of the time. With PodGroups a single check may fall
// between two moments in which a PodGroup takes room and releases it, or holds a node. So a lasting
// complaint is older than the longest back-off, and older than the time in which a process notices a
// nomination without a hold. A firm complaint is wrong at any moment.
func (s *simulation) lasting(wrong []complaint) ([]complaint, error) {
	if !s.settings.groups || !slices.ContainsFunc(wrong, func(c complaint) bool { return !c.firm }) {
		return wrong, nil
	}
	seen := map[string]int{}
	for range insist {
		s.breathe(time.Second)
		if err := s.wrong(); err != nil {
			return nil, err
		}
		for _, c := range s.complaints() {
			seen[c.what]++
		}
	}
	return stayed(wrong, seen), nil
}

// stayed returns the complaints that are firm, or were made in most of the checks.
func stayed(wrong []complaint, seen map[string]int) []complaint {
	return slices.DeleteFunc(wrong, func(c complaint) bool { return !c.firm && seen[c.what] < insist*3/4 })
}

func TestComplaintsThatStay(t *testing.T) {
	firm, often, seldom := complaint{what: "firm", firm: true}, complaint{what: "often"}, complaint{what: "seldom"}
	left := stayed([]complaint{firm, often, seldom}, map[string]int{"often": insist * 3 / 4, "seldom": insist*3/4 - 1})
	stay := len(left) == 2 && left[0].what == "firm" && left[1].what == "often"
	expect.That(t, stay, "there stay %v, want the firm one and that made often", left)
}

// complaint is a fault at rest; what is the same as long as the fault lasts.
type complaint struct {
	what string
	err  error
	firm bool // it is wrong at any moment
}

func (s *simulation) complaints() []complaint {
	defer holding(&s.api.mu)()
	var all []complaint
	for _, in := range s.instances {
		if err := in.recount(); err != nil {
			all = append(all, complaint{what: "books of " + in.name, err: fmt.Errorf("%s: %w", in.name, err), firm: true})
		}
	}
	leader := s.leader()
	if leader == nil {
		return append(all, complaint{what: "leader", err: errors.New("no process leads"), firm: true})
	}
	all = append(all, s.claims(leader)...)
	all = append(all, s.nominations(leader)...)
	all = append(all, s.demand(leader)...)
	all = append(all, s.taints(leader)...)
	for _, pod := range s.api.allPods() {
		if err := s.unasked(leader, pod); err != nil {
			err = fmt.Errorf("%s: no plan is made for pod %s (%v): %w", leader.name, pod.Name, leader.store().Explain(pod.UID), err)
			all = append(all, complaint{what: "unasked " + pod.Name, err: err})
		}
		if err := s.forgotten(leader, pod); err != nil {
			ago := "never"
			if last, tried := leader.tried[pod.UID]; tried {
				ago = fmt.Sprint(time.Since(last.began).Round(time.Second), " ago")
			}
			err = fmt.Errorf("%s: pod %s is forgotten (%v): %w; tried last: %s", leader.name, pod.Name, leader.store().Explain(pod.UID), err, ago)
			all = append(all, complaint{what: "forgotten " + pod.Name, err: err})
		}
	}
	return all
}

// leader returns the process that schedules; nil for none. The caller holds the lock.
func (s *simulation) leader() *instance {
	for _, in := range s.instances {
		if !s.elects || in.leads() {
			return in
		}
	}
	return nil
}

// clear deletes all pods, at rest: afterwards nothing of them may be left.
func (s *simulation) clear() error {
	s.api.locked(func() {
		for _, pod := range s.api.allPods() {
			s.api.drop(s.api.pods, pod)
		}
	})
	if _, err := s.quiesce(); err != nil {
		return err
	}
	for _, in := range s.instances {
		root := in.store().Snapshot().Root()
		if in.store().Holds().Held() || !root.Allocated.IsZero() || !root.Admitted.IsZero() || !root.Pending.IsZero() || !root.Arriving.IsZero() || !root.Leaving.IsZero() {
			return fmt.Errorf("%s: root has %+v, nodes are held: %v", in.name, root.Usage, in.store().Holds().Held())
		}
	}
	return s.check()
}

// unasked finds a waiting pod of a queue for which the laws allow a preemption: at rest the asker has
// been tried as often as needed, and no such plan exists any more. The snapshot is that of judge, made
// of the calls to the store. The plan need not be the best one. With PodGroups nothing is judged,
// because there are always some pods at Permit. The caller holds the lock.
func (s *simulation) unasked(in *instance, pod *corev1.Pod) error {
	never := pod.Spec.PreemptionPolicy != nil && *pod.Spec.PreemptionPolicy == corev1.PreemptNever
	if s.settings.groups || s.requestsInvented(pod) || s.pauses(in, pod) || pod.Spec.SchedulerName != managed || !pending(pod) || len(pod.Spec.SchedulingGates) > 0 || never {
		return nil
	}
	w := in.interceptor
	defer holding(&w.mu)()
	ask, known := w.pods[pod.UID]
	spec := w.Spec()
	if !known {
		return nil
	}
	gone := func(queue string) bool { return s.removed[queue] }
	if slices.ContainsFunc(ancestors(pod.Labels[placement.KeyQueue]), gone) {
		return nil
	}
	if ask.RequiredNode != "" {
		return s.unaskedThere(in, pod, &ask)
	}
	used := in.running(spec)
	exceptMax := func(q *quota) bool { return !q.isMax }
	if s.addRan(used); !spec.PreemptionEnabled || used.refuses(claimantOf(&ask), exceptMax) != "" {
		return nil // it makes room below max only
	}
	snapshot, d, err := w.snapshot(&ask, &reservations.Hold{}, nil, nil, spec)
	if errors.Is(err, errSkipped) {
		return nil
	}
	if err != nil {
		return err
	}
	s.count(asked)
	for i, n := range snapshot.Nodes {
		for _, p := range n.Pods {
			p.Protection = w.protects(p)
		}
		snapshot.Nodes[i] = planner.NewNode(n.Name, n.Allocatable, n.Free, n.Pods)
	}
	holds, only := w.Holds(), onlyNode(pod)
	d = search.Plan(snapshot, d.Ask, planner.Params{StrictGuarantee: w.Preemption().StrictGuarantee, Barred: func(name string) bool {
		n := s.api.node(name)
		return n == nil || only != "" && only != name || n.Spec.Unschedulable || refuses(n, pod) || !holds.MayJoin(name, pod.UID).OK || !holds.MayUse(name, reservations.Pod{UID: pod.UID, Namespace: pod.Namespace}).OK || !s.nominatedBefore(pod, name).IsZero() || s.hauntedByUpstream(in, name)
	}})
	if d.Outcome != planner.Preempt {
		return nil // a pod that may not preempt holds no node on which pods terminate
	}
	return fmt.Errorf("others could be preempted for it: %s; nominated there: %v", d, in.namesNominated(d.Node))
}

// protects is the protection of a pod that may have been refused to be deleted: for how
// long it is then no victim is not judged.
func (w *interceptor) protects(p *planner.Pod) planner.Protection {
	if w.tooLarge[types.UID(p.UID)].IsZero() {
		return p.Protection
	}
	return planner.Refused
}

// nominatedBefore is the room on a node that filters keep for pods that upstream's preemption has
// nominated there and that have precedence over this pod. The caller holds the lock.
func (s *simulation) nominatedBefore(pod *corev1.Pod, node string) resources.Vector {
	return s.api.used(func(p *corev1.Pod) bool {
		return p.UID != pod.UID && p.Spec.SchedulerName == plain && pending(p) && p.Status.NominatedNodeName == node && *p.Spec.Priority >= *pod.Spec.Priority
	})
}

// unaskedThere does the same for a pod of a DaemonSet. Its node may be held for it as
// long as no pod there can be preempted. The callers hold both locks.
func (s *simulation) unaskedThere(in *instance, pod *corev1.Pod, ask *objects.Pod) error {
	w, n := in.interceptor, s.api.node(ask.RequiredNode)
	if n == nil || n.Spec.Unschedulable || refuses(n, pod) || s.settings.leave && ask.Namespace == evil {
		return nil
	}
	for _, h := range w.Holds().All() {
		if h.Node == n.Name && h.NodeBound && h.Asker != ask.UID {
			return nil // the pods of one node may take turns
		}
	}
	used := in.running(s.lastValid.spec)
	if s.addRan(used); !s.mayRun(claimantOf(ask), used) {
		return nil
	}
	s.count(asked)
	p := portrait{interceptor: w}
	there := &daemonset.Node{Name: n.Name, Types: kinds, Allocatable: amounts(w.nodes[n.Name])}
	for _, m := range w.mirror() {
		if m.Node == n.Name {
			kind := p.protection(&m)
			if kind == planner.Foreign && m.Peer {
				kind = planner.Unprotected
			}
			there.Pods = append(there.Pods, &planner.Pod{
				UID: string(m.UID), Namespace: m.Namespace, Name: m.Name, Request: amounts(m.Request), Priority: m.Priority, Created: m.Created, Protection: kind,
			})
		}
	}
	tooSlow := strings.Contains(w.Explain(ask.UID).Text, string(planner.RuleTooSlow)) // judgeOwnTimes judges the other direction
	for _, p := range there.Pods {
		p.Protection = w.protects(p)
		if tooSlow && p.Namespace == ask.Namespace {
			p.Protection = planner.TooSlow
		}
	}
	d := daemonset.Plan(there, &daemonset.Ask{
		Ask:  &planner.Ask{UID: string(ask.UID), Namespace: ask.Namespace, Name: ask.Name, Request: amounts(ask.Request), Priority: ask.Priority},
		Held: time.Hour,
	}, w.Preemption().NodeBoundParams)
	if d.Outcome != planner.Preempt {
		return nil
	}
	return fmt.Errorf("others could be preempted for it: %s", d)
}

// check runs, after every step, the invariants that hold at all times.
func (s *simulation) check() error {
	errs := []error{s.wrong()}
	for _, in := range s.instances {
		if err := in.store().Check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", in.name, err))
		}
		errs = append(errs, in.checkTypes(), in.checkQueues())
	}
	return errors.Join(errs...)
}

// judgeBind finds a bind that overcommits the node, or takes a queue over its max. Facts that the
// process could not know when the cycle of the pod began do not count. It tells whether the process may
// take the pod for a smaller one until it sees the bind, because upstream's cache ignores changes of a
// pod that is about to be bound. The caller holds the lock of the API server.
func (s *simulation) judgeBind(in *instance, pod *corev1.Pod, node string) (smaller bool) {
	began, ask := in.tried[pod.UID].knew, request(pod)
	n := s.api.node(node)
	knew := min(began[s.api.pods], began[s.api.nodes])
	s.judgeMinMember(in, pod, began)
	judged := bound
	defer func() { s.count(judged) }()
	switch {
	case s.api.surprised(in, pod.Name, knew):
		judged = unbound
		return true
	case s.api.surprised(in, node, knew):
		judged = unbound
	case n == nil:
		s.fault("%s binds %s to node %s, which is not there", in.name, pod.Name, node)
	default:
		if free := informer.Allocatable(n).Sub(s.api.usedOn(node)); !free.Covers(ask) {
			s.fault("%s binds %s to node %s, which has no room: %v of %v are free", in.name, pod.Name, node, free, informer.Allocatable(n))
		}
	}
	if pod.Spec.SchedulerName != managed {
		return false
	}
	if in.missed || s.api.surprised(in, touchedConfig, began[s.api.configs]) {
		judged = unbound
		return false
	}
	used := in.running(s.lastValid.spec).used // an invalid configuration changes nothing
	for _, q := range in.claimant(pod).quotas(s.lastValid.spec) {
		switch {
		case s.removed[q.queue] || s.api.surprised(in, q.queue, knew):
			judged = unbound
		case !q.max.Allows(used[q.of], ask):
			s.fault("%s binds %s, which requests %v: %s uses %v of %v", in.name, pod.Name, ask, q.of, used[q.of], q.max)
		}
	}
	return false
}

// judgeClaim finds a pod that is about to hold a node without victims although it can run elsewhere.
func (s *simulation) judgeClaim(in *instance, pod *corev1.Pod, c *corev1.PodCondition) {
	if c.Type != reservations.HeldCondition || c.Status != corev1.ConditionTrue || s.onceRequired(pod.UID) != "" {
		return
	}
	if claim, err := reservations.ParseClaim(c.Message); err != nil || len(claim.Victims) == 0 {
		s.fault("%s holds node %s for %s, and no pod was chosen to go for it (%v)", in.name, claim.Node, pod.Name, err)
	}
}

// judgeDelete finds the deletion of a pod without a decision.
func (s *simulation) judgeDelete(in *instance, pod *corev1.Pod) {
	w := in.interceptor
	defer holding(&w.mu)()
	if _, decided := w.due[pod.UID]; !decided && pod.DeletionTimestamp == nil {
		s.fault("%s deletes %s, about which there is no decision", in.name, pod.Name)
	}
	w.judgeTaint(pod)
}

func (in *instance) store() *store.Store { return in.interceptor.Store }

// recount compares the usage of a process with the pods that exist.
func (in *instance) recount() error {
	var listed []objects.Pod
	for _, pod := range in.api.allPods() {
		if pod.Spec.SchedulerName == managed {
			listed = append(listed, informer.Translate(pod, requests))
		}
	}
	errs := []error{in.store().CompareWith(listed)}
	for queue := range in.store().Snapshot().All() {
		if in.sim.removed[queue.Path] {
			continue // pods that name it may be in another queue by now
		}
		if used := in.usedBelow(queue.Path).Add(in.givenBelow(queue.Path)); !queue.IsRoot() && !used.Equal(queue.Allocated) {
			errs = append(errs, fmt.Errorf("queue %s: the books say %v, its pods use %v", queue.Path, queue.Allocated, used))
		}
	}
	return errors.Join(errs...)
}

// givenBelow is the requests of a queue's pods that the process has given a node and that are not bound
// yet. With PodGroups there are always some at Permit. The caller holds the lock.
func (in *instance) givenBelow(queue string) resources.Vector {
	defer holding(&in.interceptor.mu)()
	var given resources.Vector
	for _, pod := range in.api.allPods() {
		p, placed := in.interceptor.placed[pod.UID]
		if placed && pending(pod) && slices.Contains(ancestors(p.Labels[placement.KeyQueue]), queue) {
			given = given.Add(p.Request)
		}
	}
	return given
}

// claims compares the holders of a node with the conditions on pods.
func (s *simulation) claims(in *instance) []complaint {
	var all []complaint
	holds := in.store().Holds()
	for _, h := range holds.All() {
		if s.settings.groups && time.Since(h.Since) < 2*reservationTimeout*time.Second {
			continue // a plan of a PodGroup that is about to be aborted
		}
		if !h.NodeBound || !h.Patient() {
			err := fmt.Errorf("%s: %s holds node %s still, since %v", in.name, h.Name, h.Node, h.Since)
			all = append(all, complaint{what: "hold of " + h.Name, err: err})
		}
	}
	for _, pod := range s.api.allPods() {
		_, held := holds.Of(pod.UID)
		written := isTrue(pod, reservations.HeldCondition)
		_, large := pod.Annotations[sizeKey] // the condition could not be written, which is final
		if written != held && !ended(pod) && pod.DeletionTimestamp == nil && !large {
			err := fmt.Errorf("pod %s: it says that it holds a node: %v; it does: %v", pod.Name, written, held)
			all = append(all, complaint{what: "claim of " + pod.Name, err: err})
		}
	}
	return all
}

// nominations finds room that the scheduler keeps on a node for a pod of a queue that
// does not hold the node. The caller holds the lock.
func (s *simulation) nominations(in *instance) []complaint {
	var all []complaint
	holds := in.store().Holds()
	for _, n := range s.api.allNodes() {
		for _, nominated := range in.nominated(n.Name) {
			pod := s.current(nominated.GetPod())
			if h, held := holds.Of(pod.UID); pod.Spec.SchedulerName == managed && (!held || h.Node != n.Name) {
				err := fmt.Errorf("%s: room is kept on node %s for %s, which does not hold it", in.name, n.Name, pod.Name)
				// The next cycle of the pod decides anew, so only a pod without a next
				// cycle keeps the nomination.
				all = append(all, complaint{what: fmt.Sprint("nomination of ", pod.Name, ", tried ", in.tried[pod.UID].began), err: err})
			}
		}
	}
	return all
}

// forgotten finds a pod that could run and does not. The caller holds the lock.
func (s *simulation) forgotten(in *instance, pod *corev1.Pod) error {
	if !pending(pod) || len(pod.Spec.SchedulingGates) > 0 || pod.Spec.SchedulerName == alien {
		return nil
	}
	if pod.Spec.SchedulerName == managed {
		if in.store().Explain(pod.UID).None() {
			return errors.New("it waits without a reason")
		}
		if name := groupOf(pod); s.apart(pod) {
			lately := func(p *corev1.Pod) bool { return pending(p) && in.lately(p) }
			if s.tried(in, name) && s.outOfStep(name) && slices.ContainsFunc(s.members(name), lately) {
				return nil
			}
			return s.couldStart(in, name)
		}
		used := in.running(s.document.spec)
		if s.addRan(used); !s.mayRun(claimantPod(pod), used) {
			return nil
		}
	}
	backsOff := pod.Spec.SchedulerName != managed || in.store().Explain(pod.UID).Code == reasons.BackingOff
	if backsOff && s.outOfStep(types.NamespacedName{}) && in.lately(pod) || s.awaitsVictim(pod) {
		return nil
	}
	required, only, holds := s.requiredNode(pod), onlyNode(pod), in.store().Holds()
	for _, n := range s.api.allNodes() {
		asks := reservations.Pod{UID: pod.UID, Namespace: pod.Namespace, Required: required == n.Name}
		free := informer.Allocatable(n).Sub(s.api.usedOn(n.Name)).Sub(s.nominatedBefore(pod, n.Name))
		for _, h := range holds.Keeping(n.Name, asks) { // these keep only what they request
			free = free.Sub(h.Request)
		}
		switch {
		case only != "" && n.Name != only, n.Spec.Unschedulable && only == "", refuses(n, pod):
		case !holds.MayUse(n.Name, asks).OK, !free.Covers(request(pod)):
		case s.hauntedByUpstream(in, n.Name):
		default:
			return fmt.Errorf("node %s could take it; nominated there: %v", n.Name, in.namesNominated(n.Name))
		}
	}
	return nil
}

// awaitsVictim tells whether upstream's preemption has made room for a pod that is not free yet. While
// it makes its calls, the scheduler's queue does not take the pod back: an event for another node at
// that time is lost, and the next one is the end of the last victim. The caller holds the lock.
func (s *simulation) awaitsVictim(pod *corev1.Pod) bool {
	return pod.Spec.SchedulerName == plain && slices.ContainsFunc(s.api.allPods(), func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && p.Spec.NodeName == pod.Status.NominatedNodeName && p.DeletionTimestamp != nil && !ended(p)
	})
}

// current is a nominated pod as it is now: the scheduler has only the names of pods that
// are deleted. The caller holds the lock.
func (s *simulation) current(nominated *corev1.Pod) *corev1.Pod {
	return cmp.Or(s.api.podOf(nominated.UID), nominated)
}

// hauntedByUpstream tells whether the scheduler keeps room on a node for a pod of the other
// profile for a long time, as plain kube-scheduler does: the pod is deleted and has a
// finalizer, or a deleted pod there takes long to stop. The caller holds the lock.
func (s *simulation) hauntedByUpstream(in *instance, node string) bool {
	lingers := slices.ContainsFunc(s.api.allPods(), func(p *corev1.Pod) bool { return p.Spec.NodeName == node && lingering(p) })
	return slices.ContainsFunc(in.nominated(node), func(nominated fwk.PodInfo) bool {
		pod := s.current(nominated.GetPod())
		return pod.Spec.SchedulerName == plain && (pod.DeletionTimestamp != nil || lingers)
	})
}

// namesNominated returns the pods for which the scheduler keeps room on a node, each with its scheduler.
func (in *instance) namesNominated(node string) []string {
	var names []string
	for _, nominated := range in.nominated(node) {
		pod := in.sim.current(nominated.GetPod())
		names = append(names, fmt.Sprintf("%s of %s", pod.Name, pod.Spec.SchedulerName))
	}
	return names
}
