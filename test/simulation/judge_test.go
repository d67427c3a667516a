package simulation_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/judge"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// types of resources, in the order of all amounts
var kinds = []string{"vcore", "memory", "pods"}

func amounts(v resources.Vector) planner.Amounts {
	out := make(planner.Amounts, len(kinds))
	for i, t := range kinds {
		out[i] = int64(v.Get(t))
	}
	return out
}

// errSkipped means that a case is not judged because a queue is being removed.
var errSkipped = errors.New("not judged")

// judge checks the victims of an asker against the laws, only by the calls to the store.
// The caller holds mu.
func (w *interceptor) judge(asker types.UID, hold *reservations.Hold, going []output.Victim, inPermit []types.UID, spec *config.Spec) error {
	ask, known := w.pods[asker]
	if !known || ask.Node != "" || ask.Deleting {
		return errors.New("the asker needs no room")
	}
	if hold.NodeBound {
		return w.judgeRequired(&ask, hold, going, inPermit)
	}
	snapshot, decision, err := w.snapshot(&ask, hold, going, inPermit, spec)
	if errors.Is(err, errSkipped) {
		w.in.sim.count(undecided)
		return nil
	}
	if err != nil {
		return err
	}
	w.in.sim.count(decided)
	for _, v := range going {
		if w.startsWith(&ask, v.UID) {
			return fmt.Errorf("victim %s waits at Permit for the asker itself", v.Name)
		}
	}
	params := planner.Params{StrictGuarantee: w.Preemption().StrictGuarantee}
	err = judge.Lawful(snapshot, decision, params)
	for _, only := range append([]types.UID{""}, w.waitedLately(hold)...) {
		if err == nil || judge.Lawful(w.placeWaiting(&ask, hold, snapshot, only), decision, params) == nil {
			return nil
		}
	}
	return err
}

// waitedLately returns the pods that waited for room of a held node when the hold began or later.
// Another plan or another answer may have ended the wait since a plan counted it.
func (w *interceptor) waitedLately(hold *reservations.Hold) (out []types.UID) {
	for uid, o := range w.waits {
		if o.node == hold.Node && (o.ended.IsZero() || !o.ended.Before(hold.Since)) {
			out = append(out, uid)
		}
	}
	slices.Sort(out)
	return out
}

// placeWaiting returns a snapshot in which pods of the asker's queue that wait for room of a held node
// have it, or one pod, if it is named: a plan counts these pods as placed (docs/laws.md, holds). It
// asks the store which pods wait, because the interceptor notes a plan only after the pod's cycle. What
// the store says is of the pod's last plan: a pod that was placed anew since then does not wait.
func (w *interceptor) placeWaiting(ask *objects.Pod, hold *reservations.Hold, snapshot *planner.Snapshot, only types.UID) *planner.Snapshot {
	i := slices.IndexFunc(snapshot.Nodes, func(n *planner.Node) bool { return n.Name == hold.Node })
	free := slices.Clone(snapshot.Nodes[i].Free)
	for uid, p := range w.pods {
		x, known := w.Explanation(uid, time.Now())
		waits := uid == only || only == "" && known && x.Room != nil && awaitedRoom(x.Room.Refused.String()) == hold.Node
		if waits && uid != ask.UID && p.Labels[placement.KeyQueue] == ask.Labels[placement.KeyQueue] && p.Priority >= ask.Priority {
			free.Add(amounts(p.Request), -1)
		}
	}
	for t, most := range snapshot.Nodes[i].Free {
		free[t] = max(free[t], min(most, 0))
	}
	beside, node := *snapshot, *snapshot.Nodes[i]
	node.Free, beside.Nodes = free, slices.Clone(snapshot.Nodes)
	beside.Nodes[i] = &node
	return &beside
}

// waiting is a pod of which the last plan waits for room of a node that becomes free without victims.
type waiting struct {
	node  string
	pod   objects.Pod
	tried time.Time
	ended time.Time // when another plan had another answer; zero for a pod that waits
	// unplanned: its last cycle had another answer and made no plan. It may wait still: only some
	// reasons why no plan is made end that.
	unplanned bool
}

var roomAnswer = regexp.MustCompile(`^WaitingForRoom: (?:pods on )?node (\S+) (?:has room for the pod once|ended while this pod was tried)`)

// awaitedRoom returns the node of which a pod waits for room, by the answer of its plan; empty for none.
func awaitedRoom(answer string) string {
	if found := roomAnswer.FindStringSubmatch(answer); found != nil {
		return found[1]
	}
	return ""
}

// noteWait notes whether the plan for a pod waits for room. It finds one that waits although pods of its
// queue that wait there already leave too little, if nothing changed since the plan began. The answer
// of a cycle without a plan is that of an earlier one. The caller holds mu.
func (w *interceptor) noteWait(pod *corev1.Pod, status *fwk.Status, began time.Time, unchanged bool) {
	ask, pending := w.pendingPod(pod.UID)
	x, known := w.Explanation(pod.UID, time.Now())
	planned := known && x.Room != nil && !x.Room.Tried.Before(began) && !x.Room.Tried.Equal(w.waits[pod.UID].tried)
	node := awaitedRoom(status.Message())
	if !planned && node != "" {
		return
	}
	if o, waits := w.waits[pod.UID]; waits && o.ended.IsZero() {
		if o.unplanned = !planned; planned {
			o.tried, o.ended = time.Time{}, time.Now()
		}
		w.waits[pod.UID] = o
	}
	if node == "" || !pending || ask.RequiredNode != "" {
		return
	}
	p := portrait{interceptor: w, draft: queues.NewDraftFrom(w.Spec()), leaving: map[types.UID]bool{}, own: map[types.UID]bool{}, holds: w.Holds().All()}
	if _, exists := w.nodes[node]; exists && unchanged && p.charge(ask.UID) {
		free, others := resources.Vector{}, w.waitBefore(&ask, node)
		for t, amount := range p.node(node, ask.UID).Free {
			free = free.Add(resources.VectorOf(resources.Entry{Name: kinds[t], Amount: resources.Amount(amount)}))
		}
		judged := !others.IsZero() && free.Covers(ask.Request) // else the store knows more of the room
		if judged {
			w.in.sim.count(crowded)
		}
		if judged && !free.Sub(others).Covers(ask.Request) {
			w.in.sim.fault("%s has %s wait for room of node %s, which pods of its queue have that wait there: free %v, they %v, it %v",
				w.in.name, pod.Name, node, free, others, ask.Request)
		}
	}
	w.waits[pod.UID] = waiting{node: node, pod: ask, tried: x.Room.Tried}
}

// waitBefore is what the pods of a queue request that wait for room of a node, and that a plan for
// another pod of the queue counts as placed. The caller holds mu.
func (w *interceptor) waitBefore(ask *objects.Pod, node string) (sum resources.Vector) {
	for uid, o := range w.waits {
		p, pending := w.pendingPod(uid)
		group := p.Labels[objects.PodGroupLabel]
		switch {
		case uid == ask.UID, o.node != node, !o.ended.IsZero(), o.unplanned, !pending, p.Deleting, p.Labels[placement.KeyQueue] != ask.Labels[placement.KeyQueue]:
		case !maps.Equal(p.Labels, o.pod.Labels), !maps.Equal(p.Annotations, o.pod.Annotations), !p.Request.Equal(o.pod.Request), p.Priority != o.pod.Priority:
			// The store places it anew, and it waits from its next plan on.
		case p.Priority < ask.Priority:
		case w.in.sim.settings.groups && group != "" && group == ask.Labels[objects.PodGroupLabel]:
		default:
			sum = sum.Add(p.Request)
		}
	}
	return sum
}

// waitWrongly has a pod wait for the same room as another one of its queue.
func (in *instance) waitWrongly(pod *corev1.Pod, status *fwk.Status) *fwk.Status {
	w := in.interceptor
	defer holding(&w.mu)()
	ask, pending := w.pendingPod(pod.UID)
	if in.sim.bug != bugCrowdWaits || !pending {
		return status
	}
	for _, o := range w.waits {
		if !w.waitBefore(&ask, o.node).IsZero() {
			return fwk.NewStatus(fwk.Unschedulable, "WaitingForRoom: node "+o.node+" has room for the pod once")
		}
	}
	return status
}

// startsWith tells whether a pod waits at Permit for members of its PodGroup, one of which is an asker.
func (w *interceptor) startsWith(asker *objects.Pod, uid types.UID) bool {
	pod, waits := w.placed[uid]
	name := asker.Labels[objects.PodGroupLabel]
	return waits && w.in.sim.settings.groups && name != "" && pod.Namespace == asker.Namespace && pod.Labels[objects.PodGroupLabel] == name
}

// snapshot makes the snapshot that a plan for an asker is judged on. In it no pod
// arrives or leaves for the asker itself.
func (w *interceptor) snapshot(ask *objects.Pod, hold *reservations.Hold, going []output.Victim, inPermit []types.UID, spec *config.Spec) (*planner.Snapshot, planner.Decision, error) {
	p := portrait{interceptor: w, draft: queues.NewDraftFrom(spec), inPermit: inPermit, leaving: map[types.UID]bool{}, own: map[types.UID]bool{}, holds: w.Holds().All()}
	d := planner.Decision{Outcome: planner.Preempt, Node: hold.Node}
	leaf, ok := p.leafOf(ask)
	if !ok {
		return nil, d, errSkipped
	}
	d.Ask = &planner.Ask{
		UID: string(ask.UID), Namespace: ask.Namespace, Name: ask.Name, Leaf: leaf, App: appOf(ask), Request: amounts(ask.Request),
		Priority: ask.Priority, Never: ask.NeverPreempts,
	}
	if !p.charge(ask.UID) {
		return nil, d, errSkipped
	}
	snapshot := &planner.Snapshot{Types: kinds, Queues: p.draft}
	for name := range w.nodes {
		snapshot.Nodes = append(snapshot.Nodes, p.node(name, ask.UID))
	}
	slices.SortFunc(snapshot.Nodes, func(a, b *planner.Node) int { return strings.Compare(a.Name, b.Name) })
	d.Ask.Group = p.group(ask, w.minMember, snapshot)
	for _, n := range snapshot.Nodes {
		for _, v := range n.Pods {
			if slices.ContainsFunc(going, func(g output.Victim) bool { return string(g.UID) == v.UID }) {
				d.Victims = append(d.Victims, planner.Victim{Pod: v, Node: n.Name})
			}
		}
	}
	if len(d.Victims) != len(going) {
		return nil, d, fmt.Errorf("%d are to go, and %d of them have a node", len(going), len(d.Victims))
	}
	return snapshot, d, nil
}

type portrait struct {
	*interceptor
	draft    *queues.Draft
	inPermit []types.UID
	leaving  map[types.UID]bool // victims for others
	own      map[types.UID]bool // those of them that an asker of their own chose
	holds    []reservations.Hold
}

// leafOf returns the queue of a pod; false if the configuration does not have it, or once
// did not have it: then the pod may be in another queue.
func (p *portrait) leafOf(pod *objects.Pod) (queues.ID, bool) {
	path := pod.Labels[placement.KeyQueue]
	q, ok := p.draft.Find(path)
	if !ok && p.in.sim.settings.dynamic && pod.Namespace == evil {
		p.draft.AddDynamic(path, evil)
		q, ok = p.draft.Find(path)
	}
	if !ok || !q.Leaf || p.in.sim.removed[path] {
		return queues.NoQueue, false
	}
	return q.ID, true
}

func appOf(p *objects.Pod) string { return p.Namespace + "/" + p.Labels[placement.KeyApplicationID] }

// charge fills in the usage of queues, and the leaving and arriving pods. It returns
// false if these cannot be known from outside.
func (p *portrait) charge(asker types.UID) bool {
	for i := range p.holds {
		h := &p.holds[i]
		if h.Asker == asker {
			continue
		}
		for _, uid := range h.Chosen { // a pod that was rejected at Permit may have returned since
			p.leaving[uid] = p.leaving[uid] || !p.since[uid].After(h.Since)
			p.own[uid] = p.isOwn(uid, h.Asker)
		}
		if pod, pending := p.pendingPod(h.Asker); pending && !pod.Foreign {
			leaf, ok := p.leafOf(&pod)
			if !ok {
				return false
			}
			p.draft.Update(leaf, func(u *queues.Usage) { u.Arriving = u.Arriving.Add(h.Request) })
		}
	}
	for _, m := range p.mirror() {
		if m.Foreign {
			continue
		}
		leaf, ok := p.leafOf(&m.Pod)
		if !ok {
			return false
		}
		p.draft.Update(leaf, func(u *queues.Usage) {
			u.Allocated = u.Allocated.Add(m.Request)
			if !p.leaves(&m) || p.keepsRoom(&m) {
				return
			}
			u.Leaving = u.Leaving.Add(m.Request)
			if !p.own[m.UID] && (p.leaving[m.UID] || m.Preempted) {
				u.Preempted = u.Preempted.Add(m.Request)
			}
		})
	}
	return true
}

// keepsRoom tells whether a deleted pod stays as long as the plan of the asker is not in force.
func (p *portrait) keepsRoom(m *mirrored) bool {
	return p.stays(m) || p.mayBeShortened(m) && !p.leaving[m.UID]
}

func (p *portrait) leaves(m *mirrored) bool { return m.Deleting || p.leaving[m.UID] }

// pendingPod is a pod that is known to have no node.
func (w *interceptor) pendingPod(uid types.UID) (objects.Pod, bool) {
	pod, known := w.pods[uid]
	_, placed := w.placed[uid]
	return pod, known && pod.Node == "" && !placed
}

// node returns a node as the asker finds it.
func (p *portrait) node(name string, asker types.UID) *planner.Node {
	free, pods := p.nodes[name], []*planner.Pod(nil)
	for _, m := range p.mirror() {
		if m.Node != name {
			continue
		}
		if !p.leaves(&m) || p.keepsRoom(&m) {
			free = free.Sub(m.Request)
		}
		pods = append(pods, p.pod(&m))
	}
	for _, h := range p.holds {
		if h.Node == name && h.Asker == asker {
			break // the holds after it get what it leaves
		}
		if _, pending := p.pendingPod(h.Asker); pending && h.Node == name {
			free = free.Sub(h.Request)
		}
	}
	return planner.NewNode(name, amounts(p.nodes[name]), amounts(free), pods)
}

func (p *portrait) pod(m *mirrored) *planner.Pod {
	v := &planner.Pod{
		UID: string(m.UID), Namespace: m.Namespace, Name: m.Name, Leaf: queues.NoQueue, Request: amounts(m.Request),
		Priority: m.Priority, Created: m.Created, Protection: p.protection(m),
	}
	if !m.Foreign {
		v.Leaf, _ = p.leafOf(&m.Pod)
		v.App = appOf(&m.Pod)
	}
	return v
}

func (p *portrait) protection(m *mirrored) planner.Protection {
	switch {
	case p.leaves(m) && !p.keepsRoom(m):
		return planner.Leaving
	case p.keepsRoom(m) && !p.mayBeShortened(m):
		return planner.Lingering
	case m.Static:
		return planner.Static
	case m.RequiredNode != "" && !m.Deleting:
		return planner.DaemonSet
	case m.Foreign:
		return planner.Foreign
	case m.binding && !slices.Contains(p.inPermit, m.UID):
		return planner.Binding
	}
	return planner.Unprotected
}

// judgeRequired judges the rules for pods that require a node as far as possible without
// knowing how the victims were chosen: the pod holds its node (D1), it may preempt (D2),
// the delay has passed (D3), and each victim may be preempted (D4).
func (w *interceptor) judgeRequired(ask *objects.Pod, hold *reservations.Hold, going []output.Victim, inPermit []types.UID) error {
	w.in.sim.count(decided)
	if hold.Node != ask.RequiredNode {
		return fmt.Errorf("D1: it requires node %s", ask.RequiredNode)
	}
	if ask.NeverPreempts {
		return errors.New("D2: its preemptionPolicy is Never")
	}
	// A hold begins a nanosecond after the end of the previous one, if that was just now.
	delay, held := time.Duration(w.in.sim.settings.startDelay)*time.Second, time.Since(hold.Since)
	if held < delay-time.Microsecond {
		return fmt.Errorf("D3: it holds the node for %v, and preemption starts after %v", held, delay)
	}
	if err := w.judgeLeave(ask, hold, going, inPermit); err != nil {
		return err
	}
	p := portrait{interceptor: w, inPermit: inPermit}
	settings := w.Preemption().NodeBoundParams
	for _, v := range going {
		at := slices.IndexFunc(w.mirror(), func(m mirrored) bool { return m.UID == v.UID })
		if at < 0 {
			return fmt.Errorf("victim %s has no node", v.Name)
		}
		m := w.mirror()[at]
		switch kind := p.protection(&m); {
		case m.Node != hold.Node:
			return fmt.Errorf("D4: victim %s is on node %s", v.Name, m.Node)
		case m.Priority > ask.Priority:
			return fmt.Errorf("D4: victim %s has priority %d, the asker %d", v.Name, m.Priority, ask.Priority)
		case kind != planner.Unprotected && kind != planner.Foreign, kind == planner.Foreign && !m.Peer && !settings.PreemptForeign:
			return fmt.Errorf("D4: victim %s may not go (%v)", v.Name, kind)
		}
	}
	return nil
}

// The laws are judged for all missing pods of a PodGroup where these pods are known from outside: the
// PodGroup always had the same minMember, and it has exactly as many other members as it lacks.

// minMembers are the minMembers that the PodGroup of a pod has had since its creation, and 0 for each
// time when it was deleted; none if it or the pod does not exist.
func (s *simulation) minMembers(uid types.UID) []int {
	if !s.settings.groups {
		return nil
	}
	defer holding(&s.api.mu)()
	if pod := s.api.podOf(uid); pod != nil {
		return s.minMembersSince(groupOf(pod), 0)
	}
	return nil
}

// minMembersSince are the same of a PodGroup from a version on. The caller holds the lock.
func (s *simulation) minMembersSince(name types.NamespacedName, since int64) (had []int) {
	for _, h := range s.api.groups.events {
		g, there := h.new.(*v1alpha1.PodGroup)
		switch of := cmp.Or[object](h.new, h.old); {
		case nameOf(of) != name:
			continue
		case h.rv <= since:
			had = nil
		}
		if !there {
			g = &v1alpha1.PodGroup{}
		}
		had = append(had, int(g.Spec.MinMember))
	}
	return had
}

// onlyMember is the minMember if there was no other; otherwise 0.
func onlyMember(had []int) int {
	if had = slices.Compact(had); len(had) == 1 {
		return had[0]
	}
	return 0
}

// leastMember is the smallest minMember: a process may not know a later one yet. It is 0 if the PodGroup
// never existed.
func leastMember(had []int) (least int) {
	for _, n := range had {
		if n > 0 {
			least = min(cmp.Or(least, n), n)
		}
	}
	return least
}

// group returns the pods that have to start together with an asker; nil if they are not
// known. The snapshot already has its nodes.
func (p *portrait) group(ask *objects.Pod, minMember int, snapshot *planner.Snapshot) *planner.Group {
	name := ask.Labels[objects.PodGroupLabel]
	if name == "" || minMember == 0 {
		return nil
	}
	g := &planner.Group{Name: ask.Namespace + "/" + name}
	lack := minMember - 1
	for uid, m := range p.pods {
		if uid == ask.UID || m.Foreign || m.Namespace != ask.Namespace || m.Labels[objects.PodGroupLabel] != name {
			continue
		}
		_, waits := p.pendingPod(uid)
		if holds := slices.ContainsFunc(p.holds, func(h reservations.Hold) bool { return h.Asker == uid }); !waits || holds {
			lack--
			continue
		}
		leaf, ok := p.leafOf(&m)
		if !ok || m.Gated || m.Deleting {
			return nil
		}
		request := amounts(m.Request)
		g.Members = append(g.Members, string(uid))
		g.Shares = append(g.Shares, planner.Share{Leaf: leaf, Request: request, Least: request})
	}
	if len(g.Members) == 0 || len(g.Members) != lack {
		return nil
	}
	var free resources.Vector
	for _, n := range snapshot.Nodes {
		if !p.cordoned[n.Name] {
			free = free.Add(p.freeFor(n.Name, ask.UID).Floor0())
		}
	}
	g.Free = amounts(free)
	return g
}

// freeFor returns the free room of a node for an asker beside the holds of all others.
func (p *portrait) freeFor(name string, asker types.UID) resources.Vector {
	free := p.nodes[name]
	for _, m := range p.mirror() {
		if m.Node == name && !p.leaves(&m) {
			free = free.Sub(m.Request)
		}
	}
	for _, h := range p.holds {
		if _, pending := p.pendingPod(h.Asker); pending && h.Node == name && h.Asker != asker {
			free = free.Sub(h.Request)
		}
	}
	return free
}

// Originators are preempted only where no other pods of equal harm would do. Of all plans
// without one, only those are tried that free as much of the same node by at most three
// pods that are not protected in any way.

// judgeChoice finds a new plan that takes originators although other pods would do. The caller holds mu.
func (w *interceptor) judgeChoice(h *reservations.Hold) {
	ask, waits := w.pendingPod(h.Asker)
	if h.NodeBound || len(h.Chosen) == 0 || !waits || w.apart(&ask) {
		return
	}
	for _, p := range w.pods {
		if p.RequiredNode == h.Node && p.Node == "" {
			return // another plan may make room that this pod has first (D0)
		}
	}
	var takes resources.Vector
	var others []types.UID
	led := ""
	for _, m := range w.mirror() {
		switch {
		case m.Node != h.Node:
		case slices.Contains(h.Chosen, m.UID):
			takes = takes.Add(m.Request)
			if !m.Deleting && w.mustLead(&m.Pod, true) && w.mustLead(&m.Pod, false) { // one that its owner deleted leads no more
				led = m.Name
			}
		case !m.binding && w.tooLarge[m.UID].IsZero() && w.isHarmless(&m.Pod): // no victim while a refusal of its delete is fresh
			others = append(others, m.UID)
		}
	}
	if led == "" {
		return
	}
	snapshot, d, err := w.snapshot(&ask, h, nil, nil, w.Spec())
	if err != nil {
		return
	}
	w.in.sim.count(originated)
	for _, set := range subsets(others, 3) {
		d.Victims = nil
		var frees resources.Vector
		for _, n := range snapshot.Nodes {
			for _, v := range n.Pods {
				if n.Name == h.Node && slices.Contains(set, types.UID(v.UID)) {
					d.Victims = append(d.Victims, planner.Victim{Pod: v, Node: n.Name})
					frees = frees.Add(w.pods[types.UID(v.UID)].Request)
				}
			}
		}
		if frees.Covers(takes) && judge.Lawful(snapshot, d, planner.Params{StrictGuarantee: w.Preemption().StrictGuarantee}) == nil {
			w.in.sim.fault("%s chooses originator %s for %s on %s, and without it there is a lawful plan: %v", w.in.name, led, ask.Name, h.Node, d)
			return
		}
	}
}

// subsets returns the sets of at most so many of the given pods, without the empty one.
func subsets(of []types.UID, most int) [][]types.UID {
	var out [][]types.UID
	if most == 0 {
		return nil
	}
	for i, uid := range of {
		out = append(out, []types.UID{uid})
		for _, rest := range subsets(of[i+1:], most-1) {
			out = append(out, append(rest, uid))
		}
	}
	return out
}

// mustLead tells whether a pod is an originator of its application. Some pods may be of no
// application, and count if doubtful is true. The caller holds mu.
func (w *interceptor) mustLead(p *objects.Pod, doubtful bool) bool {
	rank, living := w.rank(p), 0
	for _, other := range w.pods {
		none := other.Gated && other.Node == "" || w.Explain(other.UID).Code == reasons.TooManyResourceTypes // it may be of no application
		if other.Foreign || other.Deleting || appOf(&other) != appOf(p) || none && !doubtful {
			continue
		}
		living++
		if r := w.rank(&other); r < rank || r == rank && rank == byAge && other.Created.Unix() < p.Created.Unix() {
			return false
		}
	}
	return rank < byAge || rank == byAge && living > 1
}

// byAge is the rank of the pods of which the oldest are originators.
const byAge = 3

// rank is the rank of a pod among those of its application, by what it says, by its role,
// and by the pods that it owns.
func (w *interceptor) rank(p *objects.Pod) int {
	owns := func() bool {
		for _, o := range w.pods {
			if !o.Foreign && !o.Deleting && appOf(&o) == appOf(p) && slices.Contains(o.Owners, p.UID) {
				return true
			}
		}
		return false
	}
	switch {
	case p.Originator == objects.OriginatorYes:
		return 0
	case p.Originator == objects.OriginatorByRole:
		return 1
	case p.Originator == objects.OriginatorNo:
		return byAge + 1
	case owns():
		return 2
	}
	return byAge
}

// isHarmless tells whether a pod is no originator, has not opted out, and no budget covers
// it. The caller holds mu.
func (w *interceptor) isHarmless(p *objects.Pod) bool {
	if p.Foreign || p.Deleting || p.OptOut == objects.OptOutYes || p.OptOut == objects.OptOutUnsaid && p.Class != "" || w.mustLead(p, true) || w.mustLead(p, false) {
		return false
	}
	for _, b := range w.budgets {
		if b.Namespace == p.Namespace && (b.Matches == nil || b.Matches(p.Labels)) {
			return false
		}
	}
	return true
}
