package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// live is what the world calls of a store; a planted bug stands in between.
type live interface {
	Start(now time.Time)
	Upsert(event Pod, now time.Time)
	Delete(uid types.UID, now time.Time)
	Lost(uid types.UID, now time.Time)
	Configure(spec *config.Spec, now time.Time)
	UpsertNamespace(name string, annotations map[string]string, now time.Time) []error
	Gate(uid types.UID, now time.Time) reasons.Reason
	Judge(uid types.UID) (Ask, queues.Verdict, bool)
	Refused(uid types.UID, now time.Time)
	Failed(uid types.UID, kind string, why reasons.Reason, now time.Time)
	Assume(uid types.UID, node string, now time.Time) queues.Verdict
	Recheck(uid types.UID) queues.Verdict
	Forget(uid types.UID, now time.Time)
	Tick(now time.Time)
	TakeActivations() []Ref
	maker
}

// maker is what the world calls to make room.
type maker interface {
	UpsertNode(name string, allocatable resources.Vector, now time.Time)
	SetNodeSchedulable(name string, schedulable bool, now time.Time)
	NodeChanged(name string, now time.Time)
	DeleteNode(name string, now time.Time)
	UpsertPriorityClass(name string, optOut bool, now time.Time)
	UpsertBudget(b Budget, now time.Time)
	DeleteBudget(namespace, name string, now time.Time)
	SetPreemption(o PreemptionOptions)
	SetStandby(standby bool, now time.Time)
	Attempt(uid types.UID, kind string, inPermit []types.UID, now time.Time) (*Attempt, reasons.Reason)
	Claim(uid types.UID, d *victims.Decision, now time.Time) reasons.Reason
	Decline(uid types.UID, d *victims.Decision, now time.Time) reasons.Reason
	AttemptRequired(uid types.UID, inPermit []types.UID, now time.Time) (*RequiredAttempt, reasons.Reason)
	Settle(uid types.UID, d *required.Decision, now time.Time) (bool, reasons.Reason)
	TakeWork() []Work
	Commit(asker types.UID, inPermit []types.UID, now time.Time) ([]Victim, reasons.Reason)
	Disrupted(asker types.UID, now time.Time)
	GiveUp(asker types.UID, why reasons.Reason, now time.Time)
	CallOff(asker types.UID, why reasons.Reason, now time.Time)
}

// place in the scheduler's own queue.
type stage string

const (
	unseen   stage = "unseen"   // its informer has not told yet
	held     stage = "held"     // unschedulable or gated: only an activation or a hint moves it
	backoff  stage = "backoff"  // comes back by itself
	active   stage = "active"   // in the heap
	inCycle  stage = "in cycle" // popped
	binding  stage = "binding"  // reserved, its bind is on the way
	finished stage = "finished" // bound, or dropped by the scheduler
)

// object is a pod as the API server has it, and what others know of it.
type object struct {
	Pod
	gone   bool
	unfit  bool    // no node can take it, if it is of no kind
	kind   string  // what filters see of it; pods of one kind fit or not together
	events []event // not delivered to the store yet, in order
	last   *event  // delivered last

	stage  stage
	forced bool // activated while it was in its cycle
	failed bool // held because no node fitted
}

// event is what an informer delivers.
type event struct {
	pod     Pod
	deleted bool
	lost    bool // deleted, and the informer had not seen it on a node
}

// world is an API server, a scheduler and a store: the truth, what the
// scheduler's queue would do with the store's answers, and delays in between.
type world struct {
	live  live
	store *Store
	plant func(*Store) live
	spec  *config.Spec
	// unturned is the configuration before a leaf became a parent, nil if none did.
	unturned *config.Spec
	now      time.Time
	objects  []*object
	serial   int

	unfit  map[string]bool // kinds that no node can take
	popped *object         // in the scheduling cycle
	judged judgement
}

// judgement is what the pod in the scheduling cycle was told at its beginning.
type judgement struct {
	ask   Ask
	v     queues.Verdict
	known bool
}

func judgeOf(s live, uid types.UID) judgement {
	ask, v, known := s.Judge(uid)
	return judgement{ask, v, known}
}

func newWorld(spec *config.Spec, plant func(*Store) live) *world {
	w := &world{spec: spec, plant: plant, now: epoch, unfit: map[string]bool{}}
	w.restart()
	w.live.Start(w.now)
	return w
}

// restart replaces scheduler and store; only the truth is left.
func (w *world) restart() {
	w.store = New(w.spec, Options{Window: 2, MaxWindow: 8})
	w.store.OpenJournal()
	w.live = w.plant(w.store)
	w.popped = nil
	for _, o := range w.objects {
		o.events, o.last, o.stage, o.forced, o.failed = nil, nil, unseen, false, false
		if !o.gone {
			o.events = []event{{pod: o.Pod}}
		}
	}
}

// changed notes a change of the truth for delivery.
func (w *world) changed(o *object) { o.events = append(o.events, event{pod: o.Pod}) }

// remove deletes the object in the API server.
func (w *world) remove(o *object) {
	o.gone = true
	o.events = append(o.events, event{pod: o.Pod, deleted: true})
}

// deliver hands the next event of a pod to the store.
func (w *world) deliver(o *object) {
	if len(o.events) == 0 {
		return
	}
	e := o.events[0]
	o.events, o.last = o.events[1:], &e
	w.hand(e)
}

func (w *world) hand(e event) {
	switch {
	case e.lost:
		w.live.Lost(e.pod.UID, w.now)
		return
	case e.deleted:
		w.live.Delete(e.pod.UID, w.now)
		return
	}
	w.live.Upsert(e.pod, w.now)
}

// misfit tells whether no node can take the pod.
func (w *world) misfit(o *object) bool { return w.unfit[o.kind] || o.kind == "" && o.unfit }

// pending tells whether the API server has the pod as one to schedule.
func (o *object) pending() bool { return !o.gone && o.Node == "" && !o.Deleting && !o.Terminal }

// gate is PreEnqueue: the pod gets into the heap or is held.
func (w *world) gate(o *object) {
	switch {
	case o.gone || o.Node != "" || o.Terminal:
		o.stage = finished
	case o.Gated || !o.Foreign && !w.live.Gate(o.UID, w.now).None():
		o.stage = held
	default:
		o.stage, o.failed = active, false
	}
}

// activate is Activate of the scheduler's queue.
func (w *world) activate(refs []Ref) {
	for _, r := range refs {
		for _, o := range w.objects {
			if o.UID != r.UID {
				continue
			}
			switch o.stage {
			case held, backoff:
				w.gate(o)
			case inCycle, binding:
				o.forced = true
			}
		}
	}
}

// giveUp ends a cycle without success.
func (w *world) giveUp(o *object, to stage) {
	o.stage = to
	if o.forced {
		o.forced = false
		w.gate(o)
	}
}

// pop begins a scheduling cycle with the first pod of the heap.
func (w *world) pop() {
	if w.popped != nil {
		return
	}
	var heap []*object
	for _, o := range w.objects {
		if o.stage == active {
			heap = append(heap, o)
		}
	}
	if len(heap) == 0 {
		return
	}
	o := slices.MinFunc(heap, func(a, b *object) int {
		x, _ := w.store.Key(a.UID)
		y, _ := w.store.Key(b.UID)
		return cmp.Or(cmp.Compare(y.Rank, x.Rank), cmp.Compare(x.Time, y.Time), cmp.Compare(x.Seq, y.Seq), cmp.Compare(a.UID, b.UID))
	})
	if !o.pending() {
		o.stage = finished // the scheduler skips it and tells nobody
		return
	}
	o.stage, w.popped, w.judged = inCycle, o, judgeOf(w.live, o.UID)
}

// cycle ends the scheduling cycle, whose PreFilter was a while ago: Filter, Reserve.
func (w *world) cycle() error {
	o := w.popped
	if o == nil {
		return nil
	}
	w.popped = nil
	j := w.judged
	switch {
	case !j.known:
		if j.v.OK() {
			return fmt.Errorf("%s: judged neither way", o.Name)
		}
		w.giveUp(o, held)
		return nil
	case !j.v.OK():
		w.live.Refused(o.UID, w.now)
		w.live.Refused(o.UID, w.now) // PostFilter made no plan
		w.giveUp(o, held)
		return nil
	case w.misfit(o):
		w.live.Failed(o.UID, o.kind, reasons.New(reasons.NoNodeFits, "no node fits"), w.now)
		o.failed = true
		w.giveUp(o, held)
		return nil
	}
	if v := w.live.Assume(o.UID, "n1", w.now); !v.OK() {
		w.giveUp(o, held)
		return nil
	}
	o.stage = binding
	return w.withinMax(j.ask)
}

// withinMax tells whether a queue is over its max, or an owner over a limit, in
// something that was just granted.
func (w *world) withinMax(ask Ask) error {
	p := w.store.pods[ask.UID]
	if p == nil || p.state != assumed {
		return nil // bound by somebody else
	}
	for q := range w.store.Snapshot().Ancestors(p.app.leaf) {
		if q.IsRoot() {
			break
		}
		for name := range p.Request.All() {
			if most, limited := q.Max.Get(name); limited && q.Allocated.Get(name) > most {
				return fmt.Errorf("%s: granted, and %s has %v allocated of %v", p.Name, q.Path, q.Allocated, q.Max)
			}
		}
	}
	if v := w.store.ledger.Admit(w.store.draft, p.app.leaf, p.app.owner, p.Request.Sub(p.Request), queues.OnAllocated); !v.OK() {
		return fmt.Errorf("%s: granted, and %v", p.Name, v.Reason)
	}
	return nil
}

// bind ends the binding cycle: Permit and Bind; fails says that the API server
// does not take it.
func (w *world) bind(o *object, fails bool) {
	if o.stage != binding {
		return
	}
	if !w.live.Recheck(o.UID).OK() || fails || !o.pending() {
		w.live.Forget(o.UID, w.now)
		w.giveUp(o, backoff)
		return
	}
	o.Node, o.stage = "n1", finished
	w.changed(o)
}

// settle delivers everything and lets the scheduler work until nothing moves,
// with time passing only from one deadline to the next.
func (w *world) settle() error {
	for range 10_000 {
		moved, err := w.quiet()
		if err != nil {
			return err
		}
		if moved {
			continue
		}
		next, due := w.store.nextChore()
		if !due {
			return nil
		}
		w.now = latest(w.now, next)
		w.live.Tick(w.now)
	}
	return errors.New("it never comes to rest")
}

// quiet does all that can be done without time passing.
func (w *world) quiet() (moved bool, err error) {
	if refs := w.live.TakeActivations(); len(refs) > 0 {
		w.activate(refs)
		moved = true
	}
	for _, o := range w.objects {
		for len(o.events) > 0 {
			w.deliver(o)
			moved = true
		}
		before := o.stage
		switch {
		case o.stage == unseen && !o.gone, o.stage == backoff, o.stage == held && o.failed && !w.misfit(o):
			w.gate(o)
			moved = moved || o.stage != before
			o.failed = false
		case o.stage == binding:
			w.bind(o, false)
			moved = true
		}
	}
	w.pop()
	if w.popped != nil {
		moved = true
	}
	return moved, w.cycle()
}

// judge compares store and truth at a quiet moment.
func (w *world) judge() error {
	var listed []Pod
	for _, o := range w.objects {
		if !o.gone {
			listed = append(listed, o.Pod)
		}
	}
	if err := errors.Join(w.store.Check(), w.store.Recount(listed)); err != nil {
		return err
	}
	for _, o := range w.objects {
		if o.pending() {
			if err := w.stranded(o); err != nil {
				return fmt.Errorf("pod %s: %w", o.Name, err)
			}
		}
	}
	if w.store.window.taken != 0 {
		return fmt.Errorf("%d slots are taken and everything is at rest", w.store.window.taken)
	}
	return nil
}

// stranded tells whether a pod that could run does not.
func (w *world) stranded(o *object) error {
	p := w.store.pods[o.UID]
	switch p.state {
	case unplaced:
		if w.store.Explain(o.UID).None() {
			return errors.New("has no queue and nobody says why")
		}
	case parked:
		if !w.misfit(o) || o.stage != held || !o.failed {
			return fmt.Errorf("is parked; unfit %v, in the scheduler's queue: %s", w.misfit(o), o.stage)
		}
	case waiting:
		if p.heldByTwin() && w.misfit(o) {
			return nil
		}
		if w.store.judge(p.app, p.Request, queues.OnCommitted).OK() {
			return errors.New("waits and could run")
		}
	default:
		return fmt.Errorf("is %v, in the scheduler's queue: %s", p.state, o.stage)
	}
	return nil
}
