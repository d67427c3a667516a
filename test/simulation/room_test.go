package simulation_test

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

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
		if !waited[ask.UID] || !free.Covers(ask.Request) || w.tiedElsewhere(ask.UID, node) || w.in.sim.isChoosy(ask.UID) || !w.waitsForRoom(&ask, &got, node) {
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
		if k, slot := w.Key(uid); (!slot || own.Compare(k) < 0 || w.isBeforeGate(uid)) && w.waitsForRoom(&p, &got, node) {
			waiting[uid] = true
		}
	}
	return waiting
}

// isBeforeGate tells whether a pod was let through, and the scheduler's queue does not have it yet.
func (w *interceptor) isBeforeGate(uid types.UID) bool {
	x, known := w.Explanation(uid, time.Now())
	return known && x.State == "Admitted"
}

func (w *interceptor) apart(p *objects.Pod) bool {
	return w.in.sim.settings.groups && p.Labels[objects.PodGroupLabel] != ""
}

// tries notes the begin of a cycle; the scheduler sees the nodes at least as they were told.
func (w *interceptor) tries(uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
	var theirs []string
	if path, ok := other.Labels[placement.KeyQueue]; ok {
		theirs = ancestors(path)
	}
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
	below, reached := map[string]bool{}, map[string]bool{}
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
