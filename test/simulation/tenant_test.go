package simulation_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// The hostile tenant: in a quarter of the histories a user may do everything in one namespace that
// ClusterRole edit permits, and nothing elsewhere. There the schedulers look the owners of pods up.

const evil = "evil"

func isEvil(kind string) bool { return strings.HasPrefix(kind, evil+" ") }

func namespaceOf(m move) string {
	if isEvil(m.kind) {
		return evil
	}
	return namespaces[m.b%2]
}

// letIn makes a quarter of the histories have a tenant.
func (s *simulation) letIn() {
	needed := []string{bugPatient, bugGroupPatient, bugForged, bugLingers, bugGrace, bugDisowned, bugInvented, bugLeave, bugMoves, bugEndless, bugUndead, bugTooLarge, bugOwnTime, bugClosed, bugCrowded}
	if s.seed%4 != 3 && !slices.Contains(needed, s.bug) {
		return
	}
	r := newChance(s.seed + 3_000_000_019)
	s.settings.hostile, s.settings.maxGrace, s.settings.leave = true, pick(r, 0, 0, 5, 20), r.of(2)
	s.settings.dynamic = r.of(2) || s.bug == bugEndless
}

const (
	year = 365 * 24 * 60 * 60 // seconds
	// mostEvil bounds the tenant's pods, mostLingering those that were deleted and stay.
	mostEvil, mostLingering = 14, 3
)

// lingering tells whether a deleted pod stays for longer than a hold, or has.
func lingering(p *corev1.Pod) bool {
	return p.DeletionTimestamp != nil && !ended(p) && (*p.DeletionGracePeriodSeconds > reservationTimeout || overdue(p))
}

// overdue tells whether a deleted pod is there still, although it should have ended, when a
// hold that began with its deletion is over.
func overdue(p *corev1.Pod) bool {
	if p.DeletionTimestamp == nil {
		return false
	}
	late := max(0, reservationTimeout-*p.DeletionGracePeriodSeconds)
	return time.Since(p.DeletionTimestamp.Time) >= time.Duration(late)*time.Second
}

// evilPod makes a pod of the tenant: some take up to a year to stop, some have owners that
// do not exist, some request types that do not exist.
func (s *simulation) evilPod(m move) *corev1.Pod {
	profile := managed
	if m.a%9 == 0 {
		profile = plain
	}
	pod := s.newPod(profile, m)
	grace := []int64{0, 20, reservationTimeout + 5, year}[m.b/3%4]
	pod.Spec.TerminationGracePeriodSeconds = &grace
	switch m.kind {
	case "evil owner":
		s.forge(pod, m)
	case "evil queue":
		if s.settings.dynamic && profile == managed {
			queue := fmt.Sprintf("root.e%d%s", m.a%6, []string{".x", "", ""}[m.n%3]) // it is not configured
			pod.Labels[placement.KeyQueue], pod.Labels[placement.KeyApplicationID] = queue, "in-"+queue
		}
	case "evil types":
		// With those of every pod, 62 are as many as a pod may request.
		for i := range []int{1, 62, 63, 300}[m.n%4] {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceName(inventedType(m.a+i))] = *resource.NewQuantity(1, resource.DecimalSI)
		}
	}
	return pod
}

func inventedType(i int) string { return fmt.Sprintf("invented.example/%d", i) }

// requestsInvented tells whether a pod requests a type that no node offers.
func (s *simulation) requestsInvented(pod *corev1.Pod) bool {
	for kind := range request(pod).All() {
		if !slices.Contains(kinds, kind) {
			return true
		}
	}
	return false
}

// forge gives a pod an affinity to one node, and an owner.
func (s *simulation) forge(pod *corev1.Pod, m move) {
	node := nodeName(m.b)
	daemonize(pod, node, m)
	o := &pod.OwnerReferences[0]
	switch m.n {
	case 0:
		o.UID = "invented"
	case 1: // that of another namespace
	case 2:
		o.APIVersion = "fake.example/v1"
	case 3, 4, 5: // the tenant's own, which may come and go
		if o.UID = types.UID("evil-" + fmt.Sprint(s.evilSets-m.n/5)); m.n == 4 {
			o.Controller = nil
		}
	case 6:
		o.APIVersion, o.Kind, o.Name, o.Controller = "v1", "Node", node, nil
		if n := s.api.node(node); n != nil {
			o.UID = n.UID
		}
	case 7, 8: // with the UID of another's controller
		o.APIVersion, o.Kind, o.Name = "batch/v1", "Job", "j"
	case 9:
		o.APIVersion, o.Kind, o.Controller = "v1", "Pod", nil
		if other := s.some(m.a, func(*corev1.Pod) bool { return true }); other != nil {
			o.Name, o.UID = other.Name, other.UID
		}
	}
}

func (s *simulation) putSet(namespace string, uid types.UID) {
	s.sets.Store(setKey(namespace, "d", uid), true)
	s.api.put(s.api.sets, &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "d", UID: uid}})
}

func setKey(namespace, name string, uid types.UID) string {
	return namespace + "/" + name + "/" + string(uid)
}

// turnSet makes the tenant's DaemonSet, or deletes it and leaves its pods. A finalizer may
// keep it for a time.
func (s *simulation) turnSet(m move) {
	if set := s.api.sets.objects[types.NamespacedName{Namespace: evil, Name: "d"}]; set != nil {
		if m.n > 2 {
			return
		}
		if m.n > 0 && set.GetDeletionTimestamp() == nil {
			s.logf("DaemonSet %s is being deleted", set.GetUID())
			leaving := set.DeepCopyObject().(object)
			leaving.SetDeletionTimestamp(&metav1.Time{Time: time.Now().Truncate(time.Second)})
			s.api.put(s.api.sets, leaving)
			return
		}
		s.logf("DaemonSet %s is gone", set.GetUID())
		s.api.drop(s.api.sets, set)
		return
	}
	s.evilSets++
	s.logf("there is DaemonSet evil-%d", s.evilSets)
	s.putSet(evil, types.UID(fmt.Sprint("evil-", s.evilSets)))
}

// deleteOwn deletes one of the tenant's pods. Where many linger, one of these ends.
func (s *simulation) deleteOwn(m move, enough bool) {
	can := func(p *corev1.Pod) bool { return p.Namespace == evil && p.DeletionTimestamp == nil }
	if enough {
		can = func(p *corev1.Pod) bool { return p.Namespace == evil && lingering(p) }
	}
	pod := s.some(m.a, can)
	if slow := s.some(m.a, func(p *corev1.Pod) bool { return can(p) && runs(p) && graceOf(p) > reservationTimeout }); slow != nil && m.b%4 > 0 {
		pod = slow
	}
	switch {
	case pod == nil:
	case enough:
		s.end1(pod)
	default:
		grace := graceOf(pod)
		if m.n%2 == 0 {
			grace = year
		}
		s.logf("the tenant deletes %s, which has %d s to stop, with %d s", pod.Name, graceOf(pod), grace)
		s.api.deleteWithin(pod, grace)
		if p := s.api.pod(nameOf(pod)); p != nil && lingering(p) {
			s.count(lingered)
		}
	}
}

// disguise changes what one of the tenant's pods says of itself.
func (s *simulation) disguise(m move) {
	pod := s.some(m.a, func(p *corev1.Pod) bool {
		_, large := p.Annotations[sizeKey] // it stays as it is
		return p.Namespace == evil && !ended(p) && !large
	})
	if pod == nil {
		return
	}
	s.logf("the tenant disguises %s", pod.Name)
	s.api.editPod(pod, func(p *corev1.Pod) {
		p.Annotations = map[string]string{
			informer.AllowPreemption: pick(s.chance, "true", "false", "?"), informer.OriginatorAnnotation: pick(s.chance, "true", "false"),
			placement.KeyUserInfo: pick(s.chance, `{"user":"eve"}`, `{"user":"mallory","groups":["system:masters"]}`),
		}
		p.Labels["spark-role"] = pick(s.chance, "driver", "executor")
		p.Labels["tier"] = pick(s.chance, "front", "back")
	})
}

// tied is a pod that can run on one node only, and the DaemonSet that it names as its controller.
type tied struct{ node, set string }

// tie notes a new pod that can run on one node only.
func (s *simulation) tie(pod *corev1.Pod) {
	if pod.Spec.Affinity == nil {
		return
	}
	t := tied{node: onlyNode(pod)}
	for _, o := range pod.OwnerReferences {
		if controls(o) {
			t.set = setKey(pod.Namespace, o.Name, o.UID)
		}
	}
	s.ties.Store(pod.UID, t)
}

// controls tells whether an owner is a DaemonSet that controls its pod.
func controls(o metav1.OwnerReference) bool {
	return o.APIVersion == "apps/v1" && o.Kind == "DaemonSet" && o.Controller != nil && *o.Controller
}

// onlyNode is the one node that the affinity of a pod names; empty for none.
func onlyNode(pod *corev1.Pod) string {
	if pod.Spec.Affinity == nil {
		return ""
	}
	return pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
}

// requiredNode is the node of a pod of a DaemonSet; empty for every other pod. The caller
// holds the lock.
func (s *simulation) requiredNode(pod *corev1.Pod) string {
	if !s.settings.hostile {
		node, _ := owners.RequiredNode(pod)
		return node
	}
	for _, o := range pod.OwnerReferences {
		set := s.api.sets.objects[types.NamespacedName{Namespace: pod.Namespace, Name: o.Name}]
		if set != nil && set.GetUID() == o.UID && set.GetDeletionTimestamp() == nil && controls(o) {
			return onlyNode(pod)
		}
	}
	return ""
}

// onceRequired is requiredNode with all DaemonSets that ever were.
func (s *simulation) onceRequired(pod types.UID) string {
	t, _ := s.ties.Load(pod)
	once, _ := t.(tied)
	if _, was := s.sets.Load(once.set); s.settings.hostile && !was {
		return ""
	}
	return once.node
}

// tiedElsewhere tells whether a pod can run on another node only.
func (w *interceptor) tiedElsewhere(pod types.UID, node string) bool {
	t, tiedTo := w.in.sim.ties.Load(pod)
	return tiedTo && t.(tied).node != node
}

// ownTime is how long holds of a namespace that wait for pods of their own closed a node, in a
// period of six time-outs that begins with the first of them.
type ownTime struct {
	began, last time.Time
	closed      bool // when looked at last
	used        time.Duration
}

type begin struct {
	asker types.UID
	since time.Time
}

// judgeOwner finds a pod that is taken for one of a DaemonSet and names none that ever
// was. It counts the invented types of new pods. The caller holds mu.
func (w *interceptor) judgeOwner(p *objects.Pod) {
	s := w.in.sim
	if _, known := w.pods[p.UID]; !known {
		for kind := range p.Request.All() {
			if strings.HasPrefix(kind, "invented.") {
				s.count(invented)
			}
		}
	}
	if p.RequiredNode != "" && s.onceRequired(p.UID) == "" {
		s.fault("%s: %s is taken for a pod of a DaemonSet that does not exist", w.in.name, p.Name)
	}
	if _, names := s.ties.Load(p.UID); names && p.RequiredNode == "" {
		s.count(forgeries)
	}
}

func (w *interceptor) isLodged(pod types.UID) bool { _, is := w.lodged[pod]; return is }

// watchedPreemption is the plugin that makes plans; it also calls the interceptor.
type watchedPreemption struct {
	*preemption.Plugin
	in *instance
}

func (p *watchedPreemption) PostFilter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	w := p.in.interceptor
	w.mu.Lock()
	delete(w.gaveWay, pod.UID)
	before, told, spec, members := w.Holds(), w.told, w.Spec(), w.admittedMembers(pod)
	w.mu.Unlock()
	if h, holds := before.Of(pod.UID); holds && (p.in.sim.bug == bugMislabelled && !h.NodeBound || p.in.sim.bug == bugClingsThere && h.NodeBound) {
		return nil, fwk.NewStatus(fwk.Unschedulable, "no")
	}
	began := time.Now()
	result, status := p.Plugin.PostFilter(ctx, state, pod, nodes)
	status = p.in.waitWrongly(pod, status)
	defer w.lockAll()()
	removed := p.in.sim.removed[pod.Labels[placement.KeyQueue]] // pods that name it may be in another queue
	w.holdWrongly(pod, status)
	w.callBackWrongly(pod, members)
	earlier, held := before.Of(pod.UID)
	h, holds := w.Holds().Of(pod.UID)
	w.noteWait(pod, status, began, told == w.told && spec == w.Spec() && !removed)
	// The pod of a cycle may be older than its resize, which the store knows.
	same := told == w.told && spec == w.Spec() && w.isAsTold(h.Node) && request(pod).Equal(w.pods[pod.UID].Request)
	if holds && same && !(held && earlier.Since.Equal(h.Since)) {
		if !removed {
			w.judgeHoldBegins(&h, before)
		}
		w.judgeChoice(&h)
		w.judgeMembers(&h, members)
	}
	return result, status
}

// isAsTold tells whether a node offers what the store was told, and has the pods that it was told. While
// a process is told, upstream's part of it may know another node than ours. The caller holds both locks.
func (w *interceptor) isAsTold(name string) bool {
	var size resources.Vector
	if n := w.in.api.node(name); n != nil {
		size = informer.Allocatable(n)
	}
	there, told := map[types.UID]bool{}, map[types.UID]bool{}
	for _, p := range w.in.api.allPods() {
		if p.Spec.NodeName == name && !ended(p) {
			there[p.UID] = true
		}
	}
	for uid, p := range w.pods {
		if p.Node == name {
			told[uid] = true
		}
	}
	return w.nodes[name].Equal(size) && maps.Equal(there, told)
}

// judgeHoldBegins finds a hold for a pod of a DaemonSet that would not fit its node if all
// pods went that may go, or that waits for pods of its own. Victims of the
// holds before leave, too, even if such a hold ends by this one. The caller holds mu.
func (w *interceptor) judgeHoldBegins(h *reservations.Hold, before *reservations.View) {
	ask, pending := w.pendingPod(h.Asker)
	if !h.NodeBound || len(h.Chosen) > 0 || !pending {
		return
	}
	p := portrait{interceptor: w}
	free, own := w.nodes[h.Node], 0
	rest := free // once leaving pods are gone
	for _, m := range w.mirror() {
		if m.Node != h.Node {
			continue
		}
		chosen := chosenIn(before, m.UID)
		leaves := chosen || m.Deleting && !p.keepsRoom(&m)
		switch {
		case leaves && !chosen && ofItsOwn(&m, &ask):
			own++
		case leaves:
		case p.mustStay(&m, &ask):
			free = free.Sub(m.Request)
		}
		if !leaves {
			rest = rest.Sub(m.Request)
		}
	}
	// Pods of the other profile that were given the node take room before they are bound.
	for uid, l := range w.lodged {
		if _, placed := w.placed[uid]; !placed && l.node == h.Node {
			rest = rest.Sub(l.request)
		}
	}
	switch alone := len(w.Holds().On(h.Node)) == 1; {
	case !free.Covers(ask.Request):
		w.in.sim.fault("%s holds node %s for %s, which has no room there whichever pods go", w.in.name, h.Node, ask.Name)
	case rest.Covers(ask.Request) && own > 0 && alone:
		w.in.sim.fault("%s holds node %s for %s, which waits for pods of its own", w.in.name, h.Node, ask.Name)
	}
}

// mustStay tells whether a pod may not go for a pod of a DaemonSet.
func (p *portrait) mustStay(m *mirrored, ask *objects.Pod) bool {
	foreign := m.Foreign && !m.Peer && !p.Preemption().NodeBoundParams.PreemptForeign
	return p.keepsRoom(m) && !p.mayBeShortened(m) || m.Static || m.RequiredNode != "" && !m.Deleting || foreign || m.Priority > ask.Priority
}

// ofItsOwn tells whether a pod leaves by the doing of the asker's user.
func ofItsOwn(m *mirrored, ask *objects.Pod) bool {
	inQueues := !m.Foreign && !ask.Foreign
	return m.Namespace == ask.Namespace || inQueues && m.Labels[placement.KeyQueue] == ask.Labels[placement.KeyQueue]
}

// isOwn tells whether a victim goes for a pod of a DaemonSet, of its own.
func (w *interceptor) isOwn(victim, asker types.UID) bool {
	v, ask := mirrored{Pod: w.pods[victim]}, w.pods[asker]
	return ask.RequiredNode != "" && ofItsOwn(&v, &ask)
}

// judgeMark finds a victim with a mark that does not say, or says wrongly, that it goes for an
// asker of its own. The caller holds mu.
func (w *interceptor) judgeMark(v *output.Victim, asker types.UID) {
	ask := w.pods[asker]
	removed := w.in.sim.removed[w.pods[v.UID].Labels[placement.KeyQueue]] || w.in.sim.removed[ask.Labels[placement.KeyQueue]]
	if own := w.isOwn(v.UID, asker); !removed && own != strings.HasSuffix(v.Note, reservations.OwnVictim) {
		w.in.sim.fault("%s lets %s go for %s, of its own: %v, and marks it as %q", w.in.name, v.Name, ask.Name, own, v.Note)
	}
}

// stays tells whether a deleted pod may be there for longer than a hold or a victim, or has been for
// longer than a hold, so that no plan may count on its room: no plan in force has chosen it.
func (w *interceptor) stays(m *mirrored) bool {
	late := time.Since(m.GoneBy) >= time.Duration(w.in.sim.settings.timeout)*time.Second-m.DeletionGrace
	return m.Deleting && (m.DeletionGrace > w.in.sim.longestLeaving() || late) && !chosenIn(w.Holds(), m.UID)
}

// longestLeaving is the longest grace period with which a deleted pod counts as leaving.
func (s *simulation) longestLeaving() time.Duration {
	if most := s.settings.maxGrace; most > 0 && most < s.settings.timeout {
		return time.Duration(most) * time.Second
	}
	return time.Duration(s.settings.timeout) * time.Second
}

// mayBeShortened tells whether a pod that stays was deleted with a longer grace period than
// it has as a victim, so that a delete shortens it.
func (w *interceptor) mayBeShortened(m *mirrored) bool {
	own := m.Grace
	if most := w.in.sim.settings.maxGrace; most > 0 {
		own = min(own, time.Duration(most)*time.Second)
	}
	return m.DeletionGrace > own && m.DeletionGrace > w.in.sim.longestLeaving()
}

func chosenIn(holds *reservations.View, pod types.UID) bool {
	return slices.ContainsFunc(holds.All(), func(h reservations.Hold) bool { return slices.Contains(h.Chosen, pod) })
}

// judgeGrace finds a victim that gets more time to stop than victims may have.
func (s *simulation) judgeGrace(in *instance, pod *corev1.Pod, grace int64) {
	if most := s.settings.maxGrace; most > 0 && grace > int64(most) || grace > graceOf(pod) {
		s.fault("%s gives %s %d seconds to stop, and victims may have %d; the pod itself says %d", in.name, pod.Name, grace, most, graceOf(pod))
	}
}

// judgeLeave finds a DaemonSet pod of a namespace without leave that takes guaranteed
// room of other queues (D2). The caller holds mu.
func (w *interceptor) judgeLeave(ask *objects.Pod, hold *reservations.Hold, going []output.Victim, inPermit []types.UID) error {
	if !w.in.sim.settings.leave || ask.Namespace != evil || ask.Foreign {
		return nil
	}
	snapshot, d, err := w.snapshot(ask, hold, going, inPermit, w.Spec())
	if err != nil {
		return nil // a removed queue, or a pod that D4 is about
	}
	its := snapshot.Queues.(*queues.Draft)
	takes := map[string]resources.Vector{}
	for _, v := range d.Victims {
		for q := range its.Ancestors(v.Leaf) {
			takes[q.Path] = takes[q.Path].Add(w.pods[types.UID(v.UID)].Request)
		}
	}
	for q := range its.Ancestors(d.Ask.Leaf) {
		delete(takes, q.Path)
	}
	for path, taken := range takes {
		q, _ := its.Find(path)
		for kind, least := range q.Guaranteed.All() {
			if left := q.Allocated.Sub(q.Leaving).Sub(taken).Get(kind); taken.Get(kind) > 0 && left < least {
				return fmt.Errorf("D2: queue %s is guaranteed %d of %s and would be left with %d", path, least, kind, left)
			}
		}
	}
	return nil
}

// checkTypes finds a type in the books that no node offers and no queue names.
func (in *instance) checkTypes() error {
	for q := range in.store().Snapshot().All() {
		for _, v := range []resources.Vector{q.Pending, q.Admitted, q.Allocated, q.Arriving, q.Leaving} {
			for kind := range v.All() {
				if strings.HasPrefix(kind, "invented.") {
					return fmt.Errorf("%s: the books have %s of queue %s, which no node offers", in.name, kind, q.Path)
				}
			}
		}
	}
	return nil
}

// pauses tells whether no plan is made for a pod for some time because it lost the room of
// an earlier one: its victims stayed for longer than the hold, or the neighbour took it.
func (s *simulation) pauses(in *instance, pod *corev1.Pod) bool {
	x, known := in.store().Explanation(pod.UID, time.Now())
	if !known {
		return false
	}
	why := x.Why.Text
	if x.Room != nil {
		why += x.Room.Why.Text
	}
	return strings.Contains(why, "no plan is made for ")
}
