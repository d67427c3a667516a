package simulation_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/podgroups"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// PodGroups: a quarter of the histories have some, and members of them.

// moveGroup makes, changes or deletes a PodGroup, or makes one with all its pods.
func (s *simulation) moveGroup(m move) bool {
	if m.kind != "group" && m.kind != "gang" {
		return false
	}
	if !s.settings.groups {
		return true
	}
	name := types.NamespacedName{Namespace: namespaces[m.b%2], Name: groupName(m)}
	old := s.group(name)
	switch {
	case m.kind == "group" && old != nil && m.n < 2:
		s.logf("PodGroup %s is gone", name)
		s.api.drop(s.api.groups, old)
	case m.kind == "group" || old == nil:
		s.putGroup(name, int32(2+m.n%3))
	}
	if m.kind == "group" {
		return true
	}
	for i := range 2 + m.n%2 {
		if len(s.api.pods.objects) < mostPods {
			pod := s.newPod(managed, move{kind: "create", a: m.a, b: m.b, n: m.n + i})
			pod.Labels[objects.PodGroupLabel] = name.Name
			s.create(pod)
		}
	}
	return true
}

func groupName(m move) string { return []string{"crew", "team"}[m.a/8%2] }

// putGroup makes a PodGroup, or changes its minMember. The caller holds the lock.
func (s *simulation) putGroup(name types.NamespacedName, minMember int32) {
	s.logf("PodGroup %s starts with %d", name, minMember)
	s.api.put(s.api.groups, &v1alpha1.PodGroup{
		TypeMeta: metav1.TypeMeta{Kind: "PodGroup", APIVersion: v1alpha1.SchemeGroupVersion.String()},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name, UID: types.UID(fmt.Sprint(name, "-", s.api.rv)), CreationTimestamp: metav1.Now(),
		},
		Spec: v1alpha1.PodGroupSpec{MinMember: minMember},
	})
}

// group returns a PodGroup; nil if it does not exist. The caller holds the lock.
func (s *simulation) group(name types.NamespacedName) *v1alpha1.PodGroup {
	g, _ := s.api.groups.objects[name].(*v1alpha1.PodGroup)
	return g
}

// groupOf returns the PodGroup that a pod names; without a name if it names none.
func groupOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Labels[objects.PodGroupLabel]}
}

// inGroup tells whether a pod is a member of a PodGroup that uses or could use a node.
func inGroup(pod *corev1.Pod, name types.NamespacedName) bool {
	return pod.Spec.SchedulerName == managed && groupOf(pod) == name && !ended(pod)
}

// members returns the members of a PodGroup. The caller holds the lock.
func (s *simulation) members(name types.NamespacedName) []*corev1.Pod {
	return slices.DeleteFunc(s.api.allPods(), func(p *corev1.Pod) bool { return !inGroup(p, name) })
}

// countPlacedMembers notes, with each pod that is about to be bound, how many members of its
// PodGroup have a place; the caller holds mu.
func (w *interceptor) countPlacedMembers(p *objects.Pod) {
	name := p.Labels[objects.PodGroupLabel]
	if name == "" || p.Foreign || !w.in.sim.settings.groups {
		return
	}
	members := slices.DeleteFunc(w.mirror(), func(m mirrored) bool {
		return m.Foreign || m.Namespace != p.Namespace || m.Labels[objects.PodGroupLabel] != name
	})
	for _, m := range members {
		if m.binding {
			w.placedMembers[m.UID] = max(w.placedMembers[m.UID], len(members))
		}
	}
}

// admittedMembers returns the other members of a pod's PodGroup that may be tried now. The
// caller holds mu.
func (w *interceptor) admittedMembers(pod *corev1.Pod) (members []types.UID) {
	name := groupOf(pod)
	if !w.in.sim.settings.groups || name.Name == "" || pod.Spec.SchedulerName != managed {
		return nil
	}
	for uid, m := range w.pods {
		_, admitted := w.Key(uid)
		if admitted && uid != pod.UID && !m.Foreign && m.Node == "" && m.Namespace == name.Namespace && m.Labels[objects.PodGroupLabel] == name.Name {
			members = append(members, uid)
		}
	}
	return members
}

// judgeMembers finds members of a PodGroup that may not be tried any more because another member holds a
// node now. Members are planned for one right after another. The caller holds mu.
func (w *interceptor) judgeMembers(h *reservations.Hold, members []types.UID) {
	for _, uid := range members {
		_, admitted := w.Key(uid)
		if _, placed := w.placed[uid]; !admitted && !placed {
			w.in.sim.fault("%s calls %s back when it plans for %s of the same PodGroup", w.in.name, w.pods[uid].Name, h.Name)
		}
	}
}

// callBackWrongly calls the other members of a PodGroup back when one holds a node.
func (w *interceptor) callBackWrongly(pod *corev1.Pod, members []types.UID) {
	if _, holds := w.Holds().Of(pod.UID); holds && w.in.sim.bug == bugOneByOne {
		for _, uid := range members {
			w.Defer(uid, reasons.New(reasons.PodGroupIncomplete, "one after another"), time.Now())
		}
	}
}

// judgeMinMember finds a member of a PodGroup that is about to be bound although there never were
// minMember members with a place at a time. The process need not know of members that leave while the
// pod waits at Permit, or later. The caller holds the lock of the API server.
func (s *simulation) judgeMinMember(in *instance, pod *corev1.Pod, began map[*kind]int64) {
	name := groupOf(pod)
	if !s.settings.groups || name.Name == "" || pod.Spec.SchedulerName != managed {
		return
	}
	least := leastMember(s.minMembersSince(name, began[s.api.groups]))
	if least == 0 {
		s.fault("%s binds %s, and there was no PodGroup %s", in.name, pod.Name, name)
		return
	}
	placed := s.membersPlaced(in, pod.UID, name)
	if placed >= least || s.lostMember(name, began[s.api.pods]) {
		return
	}
	s.fault("%s binds %s, and of its PodGroup %s %d have a place, which starts with %d", in.name, pod.Name, name, placed, least)
}

// membersPlaced returns how many members of a PodGroup a process knows to have had a
// place since one of them was given one. The caller holds the lock.
func (s *simulation) membersPlaced(in *instance, uid types.UID, name types.NamespacedName) int {
	w := in.interceptor
	defer holding(&w.mu)()
	placed := map[types.UID]bool{}
	for _, p := range s.members(name) {
		if p.Spec.NodeName != "" {
			placed[p.UID] = true
		}
	}
	for _, m := range w.mirror() {
		if m.binding && m.Namespace == name.Namespace && m.Labels[objects.PodGroupLabel] == name.Name {
			placed[m.UID] = true
		}
	}
	return max(len(placed), w.placedMembers[uid])
}

// lostMember tells whether a member of a PodGroup left its node since a version. The
// caller holds the lock.
func (s *simulation) lostMember(name types.NamespacedName, since int64) bool {
	for i := len(s.api.pods.events) - 1; i >= 0 && s.api.pods.events[i].rv > since; i-- {
		h := s.api.pods.events[i]
		before, _ := h.old.(*corev1.Pod)
		after, _ := h.new.(*corev1.Pod)
		if before != nil && inGroup(before, name) && before.Spec.NodeName != "" && (after == nil || ended(after)) {
			return true
		}
	}
	return false
}

// onlyTold tells whether a write only reports the state of a waiting pod, which does not count as an
// event in histories with PodGroups. When some members of a PodGroup find no room and others release
// theirs, the scheduler's queue wakes the first for that room: all are tried again whenever their
// back-off is over, and for a moment they take quota and nodes. So the conditions of them and of others
// keep changing as long as they exist, and plans are made for them again and again. A write without a
// condition removes a nomination.
func (s *simulation) onlyTold(conditions []corev1.PodCondition) bool {
	return s.settings.groups && saysOnly(conditions, reservations.HeldCondition)
}

// apart tells whether a pod does not run before other members of its PodGroup. The caller
// holds the lock.
func (s *simulation) apart(pod *corev1.Pod) bool {
	name := groupOf(pod)
	if !s.settings.groups || name.Name == "" {
		return false
	}
	g := s.group(name)
	placed := slices.DeleteFunc(s.members(name), func(p *corev1.Pod) bool { return p.Spec.NodeName == "" })
	return g == nil || len(placed) < int(g.Spec.MinMember)
}

// atPermit tells whether some members of a PodGroup have places and wait for the others.
func (s *simulation) atPermit() bool {
	return slices.ContainsFunc(s.instances, func(in *instance) bool { return len(in.atPermit()) > 0 })
}

// atPermit returns the members of PodGroups that have places and are not bound.
func (in *instance) atPermit() map[types.UID]bool {
	defer holding(&in.interceptor.mu)()
	out := map[types.UID]bool{}
	for _, m := range in.interceptor.mirror() {
		if m.binding && m.Labels[objects.PodGroupLabel] != "" {
			out[m.UID] = true
		}
	}
	return out
}

// outOfStep tells whether some members of a PodGroup other than the named one may be
// tried although there is no room for all. Pods that are tried again by themselves,
// whenever their back-offs end together with those of such members, may find the node
// taken for the moment. The caller holds the lock.
func (s *simulation) outOfStep(but types.NamespacedName) bool {
	return s.settings.groups && slices.ContainsFunc(s.api.allPods(), func(p *corev1.Pod) bool {
		return p.Spec.SchedulerName == managed && pending(p) && s.apart(p) && !inGroup(p, but) && s.able(groupOf(p))
	})
}

// able tells whether a PodGroup has at least minMember members, and none with a
// scheduling gate: otherwise none of its members is tried. The caller holds the lock.
func (s *simulation) able(name types.NamespacedName) bool {
	g, members := s.group(name), s.members(name)
	gated := func(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }
	return g != nil && len(members) >= int(g.Spec.MinMember) && !slices.ContainsFunc(members, gated)
}

// inStep is the time within which a pod that is tried in step with others is tried again:
// a few times the longest back-off.
const inStep = 30 * time.Second

// lately tells whether a pod was tried a short time ago. The caller holds the lock.
func (in *instance) lately(pod *corev1.Pod) bool { return time.Since(in.tried[pod.UID].began) < inStep }

// tried tells whether some members of a PodGroup will be tried again by themselves. The
// caller holds the lock.
func (s *simulation) tried(in *instance, name types.NamespacedName) bool {
	return slices.ContainsFunc(s.members(name), func(p *corev1.Pod) bool {
		return pending(p) && in.store().Explain(p.UID).Code == reasons.BackingOff
	})
}

// couldStart finds a node with room for all waiting members of a PodGroup: then all could
// run in whatever order they are tried, because a member that goes to another node leaves
// more of this one to the rest. The caller holds the lock.
func (s *simulation) couldStart(in *instance, name types.NamespacedName) error {
	if !s.able(name) { // then upstream lets no member go on
		return nil
	}
	var ask resources.Vector
	waiting := slices.DeleteFunc(s.members(name), func(p *corev1.Pod) bool { return !pending(p) })
	used := in.running(s.document.spec)
	s.addRan(used)
	for _, p := range waiting {
		if !s.mayRun(claimantPod(p), used) {
			return nil
		}
		used.add(claimantPod(p), 1)
		ask = ask.Add(request(p))
	}
	for _, n := range s.api.allNodes() {
		if n.Spec.Unschedulable || len(n.Spec.Taints) > 0 || s.hauntedByUpstream(in, n.Name) {
			continue
		}
		may, free := true, informer.Allocatable(n).Sub(s.api.usedOn(n.Name))
		for _, p := range waiting {
			may = may && selects(p, n) && free.Sub(s.nominatedBefore(p, n.Name)).Covers(ask) && in.interceptor.mayUse(in.store().Holds(), p, n.Name).OK && len(in.store().Holds().Keeping(n.Name, reservations.Pod{Namespace: p.Namespace})) == 0
		}
		if may {
			return fmt.Errorf("node %s could take all %d of PodGroup %s that wait", n.Name, len(waiting), name)
		}
	}
	return nil
}

// watchPodGroups makes the plugin read PodGroups from the beginning: upstream's plugin starts reading
// when it first looks one up.
func (in *instance) watchPodGroups(p *podgroups.Plugin) fwk.Plugin {
	in.janitors = janitors(p)
	go func() {
		defer close(in.reads)
		p.PreFilter(context.Background(), nil, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "nowhere", Labels: map[string]string{objects.PodGroupLabel: "none"}}}, nil)
	}()
	return &watchedPodGroups{p, in}
}

// watchedPodGroups is the plugin, with a bug if one is planted.
type watchedPodGroups struct {
	*podgroups.Plugin
	in *instance
}

func (w *watchedPodGroups) Permit(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (*fwk.Status, time.Duration) {
	if w.in.sim.bug == bugHalves {
		return nil, 0
	}
	status, wait := w.Plugin.Permit(ctx, state, pod, node)
	if groupOf(pod).Name != "" {
		w.in.sim.logf("%s at Permit: %s of PodGroup %s for %s: %s, %v", w.in.name, pod.Name, groupOf(pod), node, status.Code(), wait)
	}
	return status, wait
}

// groupWrongly makes a PodGroup look larger to its readers.
func (s *simulation) groupWrongly(o runtime.Object) runtime.Object {
	if s.bug != bugGroupDeaf {
		return o
	}
	switch o := o.DeepCopyObject().(type) {
	case *v1alpha1.PodGroup:
		o.Spec.MinMember += 100
		return o
	case *v1alpha1.PodGroupList:
		for i := range o.Items {
			o.Items[i].Spec.MinMember += 100
		}
		return o
	}
	return o
}
