package simulation_test

import (
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// interceptor stands between the store of one process and its callers, the watcher and the
// executor. It records the calls to the store, so that decisions of the store are judged by its
// inputs. Of the store itself it asks only for holds and settings, and for what pods wait and by
// which queues (Explain, Explanation, Key, Snapshot). Bugs are planted here.
type interceptor struct {
	*store.Store
	in *instance

	mu       sync.Mutex                  // taken before the store's lock; guards the fields below
	pods     map[types.UID]objects.Pod   // the last update of each
	nodes    map[string]resources.Vector // the last update of each
	cordoned map[string]bool             // the unschedulable nodes
	// placed is the placements by scheduling cycles: pods that have a node and are not
	// known to be bound, as they were at the placement.
	placed map[types.UID]objects.Pod
	since  map[types.UID]time.Time // when a cycle last gave a pod its node
	// due are the pods that may be deleted: the victims that the store named, by asker. A
	// delete that is in flight may arrive much later.
	due map[types.UID]types.UID
	// placedMembers is, for each placed pod that is not known to be bound, how many members of
	// its PodGroup had a place at a time since its own placement.
	placedMembers map[types.UID]int
	lodged        map[types.UID]lodging // placements of pods not known to be bound, of both profiles
	// gaveBack is when a lodged pod turned out to use less than its placement, or
	// nothing; zero if that has not happened since strandBeside last looked.
	gaveBack time.Time

	claimed   []claimed                 // plans as they were made
	budgets   map[string]objects.Budget // as passed to the store
	guardedAt time.Time                 // when a budget, or whether a pod is ready, last changed
	lost      map[types.UID]time.Time   // when an asker last lost room for which pods had been deleted
	nodeBound map[types.UID]nodeBound   // the waiting pods that can run on one node only
	// firstBound is when the first of them came for a node, since that came or changed.
	firstBound map[nodeOf]time.Time
	late       map[types.UID]objects.Pod // the last update of placed pods; it counts if the bind fails
	counts     sync.Map                  // claimants by UID, as the process counts pods; it needs no lock
	minMember  int                       // of the asker's PodGroup that is judged; 0 if it is not known

	// Notes for checks in several files:

	begun     map[begin]time.Time     // when each hold was seen first
	refused   map[begin]time.Time     // since when a taint or a label of the node of each hold refuses the asker
	committed map[types.UID]time.Time // when pods were last told to go, by asker
	leftAt    map[types.UID]time.Time // when a cycle of each pod failed after Reserve
	wentAt    map[types.UID]time.Time // when a pod that each asker waits for was last told to be gone
	told      int                     // changes of pods, nodes and budgets that were told, and of places
	roomier   map[string]int          // told, when a node last got more room
	sought    map[string]int          // told, when a pod with such a request was last tried (seeks)
	held      map[begin]string        // the nodes of the holds when noteEnds last looked
	lostHold  map[types.UID]bool      // pods that lost a hold and were not tried since
	gaveWay   map[types.UID]int       // how often each pod went back to the order since it found no node
	tooLarge  map[types.UID]time.Time // when the delete of each pod was refused last
	planBegan map[types.UID]bool      // whether other victims of each asker of such a pod are gone
	ownTimes  map[nodeOf]*ownTime     // how long nodes were closed by holds that wait for pods of their own
	waits     map[types.UID]waiting   // pods of which a plan waited for room

	planted // state of a planted bug
}

var _ app.Interceptor = &interceptor{}

func newInterceptor(in *instance, s *store.Store) *interceptor {
	return &interceptor{
		Store: s, in: in, pods: map[types.UID]objects.Pod{}, nodes: map[string]resources.Vector{}, cordoned: map[string]bool{},
		begun: map[begin]time.Time{}, refused: map[begin]time.Time{}, committed: map[types.UID]time.Time{}, wentAt: map[types.UID]time.Time{}, leftAt: map[types.UID]time.Time{}, roomier: map[string]int{}, sought: map[string]int{}, lostHold: map[types.UID]bool{}, gaveWay: map[types.UID]int{}, tooLarge: map[types.UID]time.Time{}, planBegan: map[types.UID]bool{}, ownTimes: map[nodeOf]*ownTime{}, waits: map[types.UID]waiting{},
		placed: map[types.UID]objects.Pod{}, since: map[types.UID]time.Time{}, due: map[types.UID]types.UID{}, placedMembers: map[types.UID]int{}, lodged: map[types.UID]lodging{}, lost: map[types.UID]time.Time{}, nodeBound: map[types.UID]nodeBound{}, firstBound: map[nodeOf]time.Time{}, budgets: map[string]objects.Budget{}, late: map[types.UID]objects.Pod{}, planted: planted{first: map[types.UID]resources.Vector{}, hidden: map[types.UID]bool{}},
	}
}

// lockAll takes the lock of the API server and then mu: defer w.lockAll()().
func (w *interceptor) lockAll() (unlock func()) {
	w.in.api.mu.Lock()
	w.mu.Lock()
	return func() {
		w.mu.Unlock()
		w.in.api.mu.Unlock()
	}
}

func (w *interceptor) Upsert(p objects.Pod, now time.Time) {
	defer holding(&w.mu)()
	w.judgeOwner(&p)
	w.told++
	told := p
	p = w.inForce(p)
	if p.Terminal {
		w.goes(p.UID)
	} else {
		w.moveWrongly(&told)
		if old, known := w.pods[p.UID]; known && old.Health != p.Health {
			w.guardedAt = now
		}
		w.pods[p.UID] = p
		w.bindToNode(&p, now)
		if p.Node != "" {
			w.movesIn(&p, now)
			delete(w.placed, p.UID)
			w.countPlacedMembers(&p)
		}
	}
	if p, ok := w.upsertWrongly(told); ok {
		w.Store.Upsert(p, now)
	}
}

func (w *interceptor) Delete(uid types.UID, now time.Time) { w.gone(uid, now, w.Store.Delete) }

// DeleteLastSeenPending passes on that a pod last seen without a node is gone.
func (w *interceptor) DeleteLastSeenPending(uid types.UID, now time.Time) {
	w.gone(uid, now, func(uid types.UID, now time.Time) {
		w.gaveBack = now
		w.Store.DeleteLastSeenPending(uid, now)
	})
}

func (w *interceptor) gone(uid types.UID, now time.Time, tell func(types.UID, time.Time)) {
	defer w.lockAll()()
	w.goes(uid)
	if !w.deleteWrongly() {
		tell(uid, now)
	}
}

func (w *interceptor) goes(uid types.UID) {
	w.told++
	w.noteWent(uid)
	w.roomier[w.pods[uid].Node] = w.told
	delete(w.pods, uid)
	delete(w.late, uid)
	w.counts.Delete(uid)
	delete(w.placed, uid)
	delete(w.placedMembers, uid)
	delete(w.lodged, uid)
	delete(w.nodeBound, uid)
}

// noteWent notes the holders that waited for a pod that is gone, or that lost its place. The caller
// holds mu.
func (w *interceptor) noteWent(uid types.UID) {
	for _, h := range w.Holds().All() {
		if slices.Contains(h.Awaited, uid) {
			w.wentAt[h.Asker] = time.Now()
		}
	}
}

func (w *interceptor) UpsertNode(name string, allocatable resources.Vector, now time.Time) {
	defer holding(&w.mu)()
	w.told++
	if old, known := w.nodes[name]; !known || !old.Equal(allocatable) {
		w.resetNodeBound(name, now)
		w.roomier[name] = w.told
	}
	w.nodes[name] = allocatable
	if w.in.sim.bug == bugInvented {
		allocatable = allocatable.Add(resources.VectorOf(resources.Entry{Name: inventedType(70), Amount: 1}))
	}
	w.Store.UpsertNode(name, allocatable, now)
}

func (w *interceptor) SetNodeSchedulable(name string, ok bool, now time.Time) {
	defer holding(&w.mu)()
	w.told++
	if ok && w.cordoned[name] {
		w.resetNodeBound(name, now)
	}
	w.cordoned[name] = !ok
	w.Store.SetNodeSchedulable(name, ok, now)
}

func (w *interceptor) DeleteNode(name string, now time.Time) {
	defer holding(&w.mu)()
	delete(w.nodes, name)
	w.told++
	delete(w.cordoned, name)
	if w.in.sim.bug != bugNodeStays || len(w.Holds().On(name)) == 0 {
		w.in.sim.counts[heldGone].Add(int64(len(w.Holds().On(name))))
		w.Store.DeleteNode(name, now)
	}
	for _, h := range w.Holds().On(name) {
		if !w.Store.Ready() {
			break // it ends no hold before it has a configuration
		}
		w.in.sim.fault("%s holds node %s for %s still, and the node is gone", w.in.name, name, h.Name)
	}
}

func (w *interceptor) UpsertBudget(b objects.Budget, now time.Time) {
	defer w.lockAll()()
	w.budgets[b.Namespace+"/"+b.Name] = b
	w.told++
	w.guardedAt = now
	b.AlwaysAllow = b.AlwaysAllow && w.in.sim.bug != bugUnhealthy
	if w.in.sim.bug == bugLavish {
		b.Allowed, b.Desired = b.Allowed+2, b.Desired-2
	}
	w.Store.UpsertBudget(b, now)
}

func (w *interceptor) DeleteBudget(namespace, name string, now time.Time) {
	defer holding(&w.mu)()
	delete(w.budgets, namespace+"/"+name)
	w.told++
	w.guardedAt = now
	w.Store.DeleteBudget(namespace, name, now)
}

// TakeWork hands out the writes that are due.
func (w *interceptor) TakeWork() []output.Work {
	work := w.Store.TakeWork()
	w.judgeTimedOut(work)
	for i := range work {
		switch work[i].Kind {
		case output.WorkRelease:
			w.countRefused(&work[i])
			w.noteLoss(&work[i])
		case output.WorkDeleteVictims:
			w.judgeNominated(&work[i])
			w.judgeBudgets(&work[i])
		}
	}
	if w.in.sim.bug == bugHoldLeaks {
		work = slices.DeleteFunc(work, func(w output.Work) bool { return w.Kind == output.WorkRelease })
	}
	w.workWrongly(work)
	return work
}

// Commit judges the plan that the store commits.
func (w *interceptor) Commit(asker types.UID, inPermit []types.UID, now time.Time) ([]output.Victim, reasons.Reason) {
	minMember := onlyMember(w.in.sim.minMembers(asker))
	defer holding(&w.mu)()
	w.minMember = minMember
	spec := w.Spec()
	before, held := w.Holds().Of(asker)
	going, why := w.Store.Commit(asker, inPermit, now)
	going = w.commitWrongly(asker, going, &before, inPermit)
	if !why.None() {
		return going, why
	}
	after, holds := w.Holds().Of(asker)
	switch {
	case len(going) == 0:
	case !held:
		w.in.sim.fault("%s makes pods go for %s, which holds no node", w.in.name, w.in.sim.podName(asker))
	case !holds || spec != w.Spec() || !before.Since.Equal(after.Since):
		w.in.sim.count(undecided)
	default:
		if err := w.judge(asker, &after, going, inPermit, spec); err != nil {
			w.in.sim.fault("%s makes pods go for %s on node %s: %v", w.in.name, w.in.sim.podName(asker), after.Node, err)
		}
	}
	w.committed[asker] = now // also if all victims go already
	if len(going) > 0 {
		w.judgeRetry(asker, &after)
	}
	for _, v := range going {
		w.due[v.UID] = asker
		w.judgeMark(&v, asker)
		w.in.sim.logf("%s lets %s go for %s on %s", w.in.name, v.Name, w.in.sim.podName(asker), after.Node)
	}
	return going, why
}

// assumed records that a cycle has given a pod a node; the caller holds mu.
func (w *interceptor) assumed(pod *corev1.Pod, node string) {
	p, known := w.pods[pod.UID]
	if !known || p.Node != "" || p.Foreign {
		return
	}
	p.Node = node
	w.told++
	delete(w.waits, pod.UID)
	w.placed[pod.UID], w.since[pod.UID] = p, time.Now()
	w.countPlacedMembers(&p)
}

// unreserved records that a cycle has failed; the caller holds mu.
func (w *interceptor) unreserved(pod *corev1.Pod) {
	w.told++
	w.noteWent(pod.UID)
	delete(w.placed, pod.UID)
	delete(w.placedMembers, pod.UID)
	delete(w.lodged, pod.UID)
	w.leftAt[pod.UID] = time.Now()
	if late, changed := w.late[pod.UID]; changed {
		w.pods[pod.UID] = w.inForce(late)
	}
	if p, known := w.pods[pod.UID]; known && p.Deleting && p.Node == "" {
		delete(w.pods, pod.UID)
		delete(w.late, pod.UID)
		w.counts.Delete(pod.UID)
	}
}

// mirrored is a pod as the store must have it.
type mirrored struct {
	objects.Pod
	binding bool // it is not known to be bound
}

func (w *interceptor) mirror() []mirrored {
	var out []mirrored
	for uid, p := range w.pods {
		at, placed := w.placed[uid]
		switch {
		case p.Node != "":
			out = append(out, mirrored{Pod: p})
		case placed:
			at.Deleting = p.Deleting
			out = append(out, mirrored{Pod: at, binding: true})
		}
	}
	slices.SortFunc(out, func(a, b mirrored) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return out
}

func (w *interceptor) mayUse(holds *reservations.View, pod *corev1.Pod, node string) reservations.Pass {
	return holds.MayUse(node, reservations.Pod{UID: pod.UID, Namespace: pod.Namespace, Group: objects.GroupOf(pod.Namespace, pod.Labels), Required: w.in.sim.onceRequired(pod.UID) == node})
}

// checkReserve finds a pod that was given a node that is held for others.
func (w *interceptor) checkReserve(holds *reservations.View, pod *corev1.Pod, node string) {
	if pass := w.mayUse(holds, pod, node); !pass.OK {
		w.in.sim.fault("%s places %s on node %s; that is held for %s on %s", w.in.name, pod.Name, node, pass.Holder.Name, pass.Holder.Node)
	}
}

// checkQuota finds a pod that was given a node and takes a queue over the max, or a user or
// group over the limit, of the configuration in force, by the calls to the store. Where the
// pod held no node, those that hold one count, too. Unlike for a bind, no event happens
// between decision and check. The caller holds mu.
func (w *interceptor) checkQuota(uid types.UID, spec *config.Spec) {
	p, known := w.pods[uid]
	if !known || p.Foreign || p.Node != "" || spec != w.Spec() {
		return
	}
	t := newTally(spec)
	for _, m := range w.mirror() {
		if m.UID != uid && !m.Foreign {
			t.add(claimantOf(&m.Pod), 1)
		}
	}
	if holds := w.Holds().All(); !slices.ContainsFunc(holds, func(h reservations.Hold) bool { return h.Asker == uid }) {
		for i := range holds {
			if holder, pending := w.pendingPod(holds[i].Asker); pending && !holder.Foreign {
				t.add(claimantOf(&holder), 1)
			}
		}
	}
	for _, q := range claimantOf(&p).quotas(spec) {
		if used := t.used[q.of]; !w.in.sim.removed[q.queue] && !q.max.Allows(used, p.Request) {
			w.in.sim.fault("%s gives %s, which requests %v, a node: %s uses %v of %v", w.in.name, p.Name, p.Request, q.of, used, q.max)
		}
	}
}
