package simulation_test

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/informer"
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

// checkRoom finds a pod that was just given free room on a node while another pod waited that fits the
// node and that the laws let preempt the pod there, because the node or a max has no room for both: the
// other pod should have had the room. A pod waits if its turn can come without a further event: it is in
// the order, or admitted, backs off, or found no node before this one got more room. A pod that went
// back to the order 20 times in a row is not judged: it waits no more. Nor is one that another client
// has bound during its cycle. The argument waited is the pods that waited at the time of the decision,
// because the informer and the pump may bring back others meanwhile. The caller holds mu.
func (w *interceptor) checkRoom(uid types.UID, node string, spec *config.Spec, waited map[types.UID]bool) {
	got, known := w.pods[uid]
	_, held := w.Holds().Of(uid)
	if !known || held || w.gaveWay[uid] >= 20 || got.Node != "" || got.Foreign || got.RequiredNode != "" || w.apart(&got) || spec != w.Spec() || !spec.PreemptionEnabled {
		return
	}
	free := w.nodes[node]
	for _, m := range w.mirror() {
		if m.Node == node && m.UID != uid {
			free = free.Sub(m.Request)
		}
	}
	free = free.Max(got.Request) // the filters accepted it: the process may not know yet which pods have gone
	rest := free.Sub(got.Request)
	for _, ask := range w.pods {
		_, choosy := w.in.sim.choosy.Load(ask.UID)
		if !waited[ask.UID] || !free.Covers(ask.Request) || w.tiedElsewhere(ask.UID, node) || choosy || !w.waitsForRoom(&ask, &got, node) {
			continue
		}
		hold := reservations.Hold{Node: node}
		snapshot, d, err := w.snapshot(&ask, &hold, []output.Victim{{Ref: got.Ref()}}, []types.UID{uid}, spec)
		if err != nil {
			continue
		}
		if draft := snapshot.Queues.(*queues.Draft); w.isOwed(draft, &got, &ask, false) || !w.isOwed(draft, &ask, &got, true) {
			continue
		}
		if rest.Covers(ask.Request) {
			v := queues.Admit(snapshot.Queues, d.Ask.Leaf, ask.Request, queues.OnArriving)
			if v.OK() || !slices.Contains(ancestors(got.Labels[placement.KeyQueue]), snapshot.Queues.Queue(v.At).Path) {
				continue // what leaves a queue that the other pod does not count against is not gone
			}
			w.in.sim.count(underMax)
		}
		w.in.sim.count(rooms)
		if err := judge.Lawful(snapshot, d, planner.Params{StrictGuarantee: w.Preemption().StrictGuarantee}); err != nil {
			continue
		}
		w.in.sim.fault("%s gives the room on node %s to %s of %s, priority %d; %s of %s, priority %d (%v) waits, fits it, and may preempt it there",
			w.in.name, node, got.Name, got.Labels[placement.KeyQueue], got.Priority, ask.Name, ask.Labels[placement.KeyQueue], ask.Priority, w.Explain(ask.UID))
	}
}

// waitForRoom returns the pods of which the turn on a node can come while the given pod is in its
// cycle. Left out is a pod with a slot that has passed the gate and comes before the given pod: if
// the scheduler's queue had it, it would have been tried first. The caller holds mu.
func (w *interceptor) waitForRoom(tried types.UID, node string) map[types.UID]bool {
	w.noteEnds()
	waiting := map[types.UID]bool{}
	own, _ := w.Key(tried)
	got := w.pods[tried]
	for uid, p := range w.pods {
		if k, slot := w.Key(uid); slot && own.Compare(k) >= 0 {
			if x, known := w.Explanation(uid, time.Now()); !known || x.State != "Admitted" {
				continue // it passed the gate: the scheduler's queue has it
			}
		}
		waiting[uid] = w.waitsForRoom(&p, &got, node)
	}
	return waiting
}

func (w *interceptor) apart(p *objects.Pod) bool {
	return w.in.sim.settings.groups && p.Labels[objects.PodGroupLabel] != ""
}

// tries notes the begin of a cycle; the scheduler sees the nodes at least as they were told.
func (w *interceptor) tries(uid types.UID) {
	defer holding(&w.mu)()
	w.noteEnds()
	delete(w.lostHold, uid)
	if p, known := w.pods[uid]; known {
		w.sought[seeks(&p)] = w.told
	}
}

// noteEnds notes the nodes that got more room because a hold ended. The caller holds mu.
func (w *interceptor) noteEnds() {
	held := map[begin]string{}
	for _, h := range w.Holds().All() {
		held[begin{h.Asker, h.Since}] = h.Node
	}
	for key, node := range w.held {
		if held[key] == "" {
			w.told++
			w.roomier[node], w.lostHold[key.asker] = w.told, true
		}
	}
	w.held = held
}

// seeks is what pods of one equivalence class have in common.
func seeks(p *objects.Pod) string {
	return p.Namespace + "/" + p.Labels[placement.KeyQueue] + " " + p.Request.Key()
}

// waitsForRoom tells whether the turn of a pod on a node can come without a further event,
// if another pod that is in its cycle leaves the node to it.
func (w *interceptor) waitsForRoom(p, got *objects.Pod, node string) bool {
	_, placed := w.placed[p.UID]
	_, held := w.Holds().Of(p.UID)
	if p.Node != "" || placed || held || p.Foreign || p.Gated || p.Deleting || p.NeverPreempts || p.RequiredNode != "" || w.apart(p) {
		return false
	}
	why := w.Explain(p.UID)
	if why.None() {
		return true
	}
	tried, once := w.sought[seeks(p)]
	roomier := w.roomier[node] > tried
	x, known := w.Explanation(p.UID, time.Now())
	erred := known && x.OnlyTimeHelps
	switch why.Code {
	case reasons.InOrder: // quotas are asked when its turn comes
	case reasons.OverMax: // in the order, or by demand, after it found no node
		if once && !roomier || erred {
			return false
		}
	case reasons.NoNodeFits:
		if !roomier {
			return false
		}
	case reasons.BackingOff: // because no node fitted; after other failures the pod waits for the end of its back-off
		if !strings.Contains(why.Text, "nodes could take the pod") && (erred || !w.lostHold[p.UID]) {
			return false
		}
	default:
		return false
	}
	return w.maxAllows(p, got) && !claimantOf(p).limited(w.Spec())
}

// maxAllows tells whether every max has room for a pod beside all that have a slot or more,
// except for another pod that has one.
func (w *interceptor) maxAllows(p, got *objects.Pod) bool {
	tree, theirs := w.Snapshot(), ancestors(got.Labels[placement.KeyQueue])
	for _, path := range ancestors(p.Labels[placement.KeyQueue]) {
		q, known := tree.Find(path)
		if !known {
			return false
		}
		used := q.Committed()
		if slices.Contains(theirs, path) {
			used = used.Sub(got.Request)
		}
		if !q.IsRoot() && !q.Max.Allows(used, p.Request) {
			return false
		}
	}
	return true
}

// isOwed tells whether a queue of a pod, below the first queue in common with another pod, is under its
// guarantee in some type: criterion 2 of the order. For a waiting pod the admitted pods of its queues
// count as usage, because they are served first. Those that come after it do not.
func (w *interceptor) isOwed(tree *queues.Draft, p, other *objects.Pod, waits bool) bool {
	theirs := ancestors(other.Labels[placement.KeyQueue])
	admitted, own := w.Snapshot(), map[string]resources.Vector{}
	if waits && w.hasSlot(p) {
		for _, o := range w.pods {
			if w.hasSlot(&o) && inOrder(&o, p) >= 0 { // its own, too
				for _, path := range ancestors(o.Labels[placement.KeyQueue]) {
					own[path] = own[path].Add(o.Request)
				}
			}
		}
	}
	below, reached := map[string]bool{}, map[string]bool{} // by type
	for _, path := range ancestors(p.Labels[placement.KeyQueue]) {
		q, ok := tree.Find(path)
		if !ok || slices.Contains(theirs, path) {
			continue
		}
		used := q.Has()
		if waits {
			if live, ok := admitted.Find(path); ok {
				used = used.Add(live.Admitted)
			}
			used = used.Sub(own[path])
		} else {
			used = used.Sub(p.Request)
		}
		for kind := range p.Request.All() {
			if g, named := q.Guaranteed.Get(kind); named {
				has := used.Get(kind)
				if w.Preemption().StrictGuarantee {
					has += p.Request.Get(kind) - 1
				}
				below[kind], reached[kind] = below[kind] || has < g, reached[kind] || has >= g
			}
		}
	}
	for kind := range below {
		if below[kind] && !reached[kind] {
			return true
		}
	}
	return false
}

// hasSlot tells whether a pod was let through and has no place. A pod that the process does not
// know has none: it is being deleted, and has no node.
func (w *interceptor) hasSlot(p *objects.Pod) bool {
	x, known := w.Explanation(p.UID, time.Now())
	return known && (x.State == "Admitted" || x.State == "Scheduling")
}

// inOrder compares pods of one queue by their order.
func inOrder(a, b *objects.Pod) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID))
}

// A pod that upstream's preemption has nominated to a node has precedence there over pods
// of no higher priority. Pods that make room beside it must leave enough for both.

// reserved returns, for each node, the nominated pods of the other profile that precede a
// pod of some priority. The caller does not hold the lock of the API server, because
// reserved calls the scheduler's queue.
func (in *instance) reserved(nodes []string, priority int32) map[string][]*corev1.Pod {
	out := map[string][]*corev1.Pod{}
	for _, node := range nodes {
		for _, n := range in.nominated(node) {
			if pod := n.GetPod(); pod.Spec.SchedulerName == plain && *pod.Spec.Priority >= priority {
				out[node] = append(out[node], pod)
			}
		}
	}
	return out
}

// judgeNominated finds a plan that makes too little room for the asker beside the pods
// that were nominated to the node when the cycle of the asker began, and still are. Only
// pods count that the process knew then. Victims of a hold that ended since the plan was made
// count as leaving: the filters, which know nominated pods, are not asked again.
func (w *interceptor) judgeNominated(item *output.Work) {
	d := item.Decision
	if d == nil || d.Outcome != planner.Preempt {
		return
	}
	s, in := w.in.sim, w.in
	now := in.reserved([]string{item.Hold.Node}, item.Hold.Priority)[item.Hold.Node]
	defer holding(&s.api.mu)()
	then, asker := in.tried[item.UID], s.api.podOf(item.UID)
	node := s.api.node(item.Hold.Node)
	knew := min(then.knew[s.api.pods], then.knew[s.api.nodes])
	if node == nil || asker == nil || s.api.surprised(in, item.Hold.Node, knew) || s.api.surprised(in, asker.Name, knew) {
		return
	}
	free := informer.Allocatable(node).Sub(request(asker))
	names := ""
	for _, before := range then.reserved[item.Hold.Node] {
		pod := s.api.podOf(before.UID)
		still := slices.ContainsFunc(now, func(p *corev1.Pod) bool { return p.UID == before.UID })
		if still && pod != nil && pending(pod) && !s.api.surprised(in, pod.Name, knew) {
			free, names = free.Sub(request(pod)), names+" "+pod.Name
		}
	}
	if names == "" {
		return
	}
	s.count(besideNominated)
	leaving := w.chosenFor(item)
	for _, pod := range s.api.allPods() {
		going := slices.ContainsFunc(d.Victims, func(v planner.Victim) bool { return v.UID == string(pod.UID) })
		if pod.Spec.NodeName != node.Name || ended(pod) || pod.DeletionTimestamp != nil || going || leaving[pod.UID] || s.api.boundAt[pod.UID] > knew {
			continue
		}
		if !s.api.surprised(in, pod.Name, knew) {
			free = free.Sub(request(pod))
		}
	}
	for kind, amount := range free.All() {
		if amount < 0 {
			s.fault("%s makes room on %s for %s, and it has none beside what is nominated there:%s; %s lacks %v", in.name, node.Name, item.Name, names, kind, -amount)
			return
		}
	}
}

// chosenFor are the victims of holds in force, and those of any earlier plan that this plan waits for.
func (w *interceptor) chosenFor(item *output.Work) map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, h := range w.Holds().All() {
		for _, uid := range h.Chosen {
			out[uid] = true
		}
	}
	defer holding(&w.mu)()
	for _, c := range w.claimed {
		for _, uid := range c.victims {
			out[uid] = out[uid] || slices.Contains(item.Hold.Awaited, uid)
		}
	}
	return out
}

// blindHandle runs the filters without nominated pods.
type blindHandle struct{ fwk.Handle }

func (b blindHandle) RunFilterPluginsWithNominatedPods(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, info fwk.NodeInfo) *fwk.Status {
	return b.RunFilterPlugins(ctx, state, pod, info)
}

// A pod for which upstream's preemption makes room is stranded when its last victim is found to be gone
// already, to have ended, or to have lost its place because its bind failed: while the calls go on, that
// event brings the pod back in vain, and no other one follows (kubernetes/kubernetes#141694). The pod
// stays nominated to the node until the queue is flushed, and filters keep the room for it.
//
//	         a call for a victim is answered "not found", deletes one without room,
//	         or is answered when another pod has the victim's name
//	nominated ─────────────────────────────────────────► perhaps stranded
//	    ▲                                                       │
//	    └───────────────────────────────────────────────────────┘
//	                    a cycle of the pod begins
//
// A call does not show for which pod it is made, so all pods nominated at that time may
// be stranded. There is no rest until the queue was flushed, which tries them.
//
// A pod of default-scheduler may be stranded too if it was tried while the scheduler's cache had more on
// a node than the node had. That is so for a pod that was given the node and requested less when it was
// seen there, or was seen on another node, or ended unseen. The scheduler's queue gets no event for that
// room. The store brings back only pods of queues.

// hasRoom tells whether a pod that is deleted gives room back: it runs on a node, or this
// process is about to bind it.
func (in *instance) hasRoom(pod *corev1.Pod) bool {
	defer holding(&in.interceptor.mu)()
	return !ended(pod) && (pod.Spec.NodeName != "" || in.interceptor.isLodged(pod.UID))
}

// nameTaken tells whether another pod has the name of a deleted one. Upstream's preemption knows a victim
// by its name, so until its call is answered it takes the other pod for a victim that still runs.
func (in *instance) nameTaken(deleted *corev1.Pod) (taken bool) {
	in.api.locked(func() {
		p := in.api.pod(nameOf(deleted))
		taken = p != nil && p.UID != deleted.UID
	})
	return taken
}

// strand is called when a call of upstream's preemption finds no running victim, or finds another pod of
// its name; more are pods that were nominated when the call began.
func (in *instance) strand(more []types.UID) {
	stranded := slices.Concat(more, in.nominatedPlain())
	in.api.locked(func() {
		for _, uid := range stranded {
			in.stranded[uid] = true
		}
	})
}

// nominatedPlain returns the pods of default-scheduler that are nominated.
func (in *instance) nominatedPlain() (all []types.UID) {
	for _, node := range in.nodeNames() {
		for _, nominated := range in.nominated(node) {
			if pod := nominated.GetPod(); pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
				all = append(all, pod.UID)
			}
		}
	}
	in.api.locked(func() {
		for _, pod := range in.api.allPods() { // a pod that must run on its node takes their nominations
			if pod.Spec.SchedulerName == corev1.DefaultSchedulerName && pending(pod) && pod.Status.NominatedNodeName != "" {
				all = append(all, pod.UID)
			}
		}
	})
	return all
}

func (in *instance) nodeNames() (names []string) {
	in.api.locked(func() {
		for _, n := range in.api.allNodes() {
			names = append(names, n.Name)
		}
	})
	return names
}

// lodging is the placement of a pod by a cycle.
type lodging struct {
	node    string
	request resources.Vector
}

// movesIn records that a pod is seen on a node; the caller holds mu.
func (w *interceptor) movesIn(p *objects.Pod, now time.Time) {
	if l, given := w.lodged[p.UID]; given && (l.node != p.Node || !p.Request.Covers(l.request)) {
		w.gaveBack = now
	}
	delete(w.lodged, p.UID)
}

// strandBeside marks the pods that were tried before room turned out to be free. The
// caller holds the lock of the API server.
func (in *instance) strandBeside() {
	w := in.interceptor
	w.mu.Lock()
	at := w.gaveBack
	w.gaveBack = time.Time{}
	w.mu.Unlock()
	if at.IsZero() {
		return
	}
	for _, pod := range in.api.allPods() {
		tried, once := in.tried[pod.UID]
		if pod.Spec.SchedulerName == corev1.DefaultSchedulerName && pending(pod) && once && !tried.began.After(at) {
			in.stranded[pod.UID] = true
		}
	}
}

// stranded tells whether a waiting pod may be stranded. The caller holds the lock.
func (s *simulation) stranded() bool {
	leader := s.leader()
	return leader != nil && slices.ContainsFunc(s.api.allPods(), func(p *corev1.Pod) bool { return pending(p) && leader.stranded[p.UID] })
}
