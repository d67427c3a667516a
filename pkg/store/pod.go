package store

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

func placementOf(p *objects.Pod) placement.Pod {
	return placement.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID),
		Labels: p.Labels, Annotations: p.Annotations,
	}
}

// cachePod is embedded under a name of its own, because the Pod of a pod is its event.
type cachePod = cache.Pod

// pod is the record of a pod: that of package cache, and what the store has of it beside.
// Most pods of a cluster run. To save memory, state that only pending pods need is in turn
// and asks. Pods that need no turn share an empty one.
type pod struct {
	cachePod
	*turn
	state state.State
	asked bool // it joined its application without a node

	chosenBy types.UID // the preemptor that chose it as a victim; empty for none

	app   *app              // nil while unplaced
	gang  *hardGang         // the Hard gang that it asks for or is kept back by; nil if none
	mates *podGroup         // the PodGroup that it names; nil if none
	asks  *preemption.Asker // nil once it runs and nothing of it is needed

	failed *failures       // nil for none
	report *history.Report // nil once it runs and nothing is left to report

	history.Mark[PodRecord]
}

// failures are the failed cycles of a pod. Immutable.
type failures struct {
	count int // since it was placed
	last  time.Time
}

func (f *failures) attempts() int {
	if f == nil {
		return 0
	}
	return f.count
}

// newPod returns the record of a pod after its first event.
func newPod(event *objects.Pod, noTurn *turn) *pod {
	p := &pod{cachePod: cache.NewPod(event), turn: noTurn}
	if event.Node == "" || !event.Foreign {
		p.turn = newTurn(p) // its own until it runs in a queue
	}
	if event.Node == "" {
		p.asks = preemption.NewAsker(p.UID)
	}
	return p
}

// leaves tells whether the pod has a node and is about to leave it: it was deleted or
// chosen as a victim.
func (p *pod) leaves() bool {
	return (p.Foreign || p.state.HasNode()) && (p.Deleting || p.chosenBy != "")
}

func (p *pod) askKey() order.AskKey {
	return order.AskKey{Priority: p.Priority, Created: p.Created, UID: string(p.UID)}
}

// askKind separates asks with equal requests: by equivalence class (twins), and by
// whether the pod requests something that does not count.
func (p *pod) askKind() string {
	if kind := p.equivalenceClass.Kind(); kind != "" {
		return kind
	}
	return p.apartKind()
}

// apartKind is askKind for an order without equivalence classes.
func (p *pod) apartKind() string {
	if !p.Uncounted.IsZero() {
		return "uncounted"
	}
	return ""
}

// Key is the sort key of an admitted pod in the scheduler's queue.
type Key = pending.Key

// Key returns the sort key of an admitted pod, and false for every other pod.
// It takes no lock.
func (s *Store) Key(uid types.UID) (Key, bool) { return s.pending.Keys.Get(uid) }

// The state transitions. Each takes the pod from the named state and leaves the
// accounting right. Callers hold the lock.

// heldByClass tells whether a pod waits because its equivalence class failed.
func (p *pod) heldByClass() bool {
	return p.state == state.Queued && p.equivalenceClass.Failed()
}

// enter sets the state of a pod. Every state change goes through it or setState, so that
// counts stay right.
func (s *Store) enter(p *pod, to state.State) {
	if to.WaitsForNode() || to == state.GroupBlocked {
		p.assumedRequest = nil // its cycle is over
	}
	s.history.changed(p)
	s.setState(p, to)
}

// setState is enter for a change that readers do not see.
func (s *Store) setState(p *pod, to state.State) {
	from := p.state
	if from == state.Unschedulable {
		s.leaveLane(p)
	}
	s.pending.Transitions.Note(from, to)
	p.state = to
	s.updateMate(p, p.asks.Holds())
	s.history.tally(p)
	s.pending.Classes.Move(p.equivalenceClass, from, to)
}

// toWaiting: any state without a node to Queued.
func (s *Store) toWaiting(p *pod) {
	s.enter(p, state.Queued)
	p.ask = s.pending.Order.PushKind(p.app.ordered, p.askKey(), p.Request, p.askKind())
}

// leaveOrder takes a waiting pod out of the order.
func (s *Store) leaveOrder(p *pod) {
	s.pending.Order.Remove(p.ask)
	p.ask = nil
}

// toAdmitted: Queued to Admitted.
func (s *Store) toAdmitted(p *pod, now time.Time) {
	s.leaveOrder(p)
	s.admit(p, now)
}

// admit: a pod that is out of the order becomes admitted. A preemptor with a hold is
// charged as arriving and therefore not as admitted.
func (s *Store) admit(p *pod, now time.Time) {
	s.enter(p, state.Admitted)
	s.history.reports.Admitted(p.report, now)
	s.pending.Window.Enter(p)
	if !p.Is(cache.Arriving) {
		s.charge(p, p.Amount(), p.In()|cache.Admitted)
	}
	p.app.AddSlots(1)
	s.count(p.app)
	p.hopes = s.pending.Classes.Limit.Reopened()
	s.pending.Timers.Set(&p.timer, now.Add(s.options.lease(p)))
	s.pending.Keys.Add(p.UID, queues.Rank(s.cache.Tree(), p.app.Leaf, p.Priority), now.UnixNano())
}

// leaveSlot takes an admitted pod out of the window. The caller takes back the admitted
// charge. The key stays, because the pod may still be in the scheduler's heap; a caller
// that knows it is not there deletes the key.
func (s *Store) leaveSlot(p *pod) {
	p.asks.OverQuota = false
	p.app.AddSlots(-1)
	s.pending.Window.Leave(p)
	s.pending.Timers.Clear(&p.timer)
	s.asking.End(p.UID)
	s.keepAsking(p)
}

// vacate takes an admitted pod that does not go on to a node out of the window and frees
// its room for other pods.
func (s *Store) vacate(p *pod) {
	s.leaveSlot(p)
	s.charge(p, p.Amount(), p.In()&^cache.Admitted)
	s.count(p.app)
	s.pending.Release(s.cache.Tree(), p.app.Leaf)
}

// toParked: a state with a slot (already taken back) or Assumed (already uncharged) to
// Unschedulable.
func (s *Store) toParked(p *pod, why reasons.Reason, now time.Time) {
	s.enter(p, state.Unschedulable)
	p.reason, p.erred = why, why.Code == reasons.BackingOff
	s.history.failedAt(p, now)
	p.notUntil = now.Add(s.options.backoff(p.failed.attempts()))
	if p.erred { // a cycle for a plan would end the same way
		p.asks.RetryAt = latest(p.asks.RetryAt, p.notUntil)
	}
}

// toAllocated: a pod becomes assumed or bound. It was admitted, and its admitted charge
// becomes the allocation, or it was pending and out of the order.
func (s *Store) toAllocated(p *pod, to state.State, node string) {
	if p.state.HasSlot() {
		s.leaveSlot(p)
	}
	s.pending.Keys.Remove(p.UID)
	s.pending.Classes.Leave(&p.equivalenceClass, p.state)
	s.leaveDemand(p)
	s.disarm(p)
	s.enter(p, to)
	p.Node = node
	s.charge(p, p.Request, p.In()&^(cache.Pending|cache.Admitted)|cache.Allocated)
	s.settleOn(p, node, p.Amount())
	s.history.notePod(Allocated, p)
	s.weigh(p)
	if p.asks.Holds() {
		s.preemption.Holds.TimesChange()
	}
	s.history.counts.Allocated++
	if to == state.Bound {
		s.history.begin(p.app)
	}
	s.count(p.app)
}

// leaveAllocated takes back the charge of an assumed or bound pod. Preemptors no longer
// wait for it to leave its node.
func (s *Store) leaveAllocated(p *pod) {
	s.history.notePod(Released, p)
	s.chosen(p, "")
	s.weighAs(p, 0)
	s.settleOn(p, "", resources.Vector{})
	s.charge(p, p.Amount(), 0)
	s.history.counts.Released++
	s.count(p.app)
	s.pending.Release(s.cache.Tree(), p.app.Leaf)
}

// backoff is how long a pod waits after its n-th failure: the same as in the scheduler's
// queue.
func (o *Options) backoff(n int) time.Duration {
	d := max(o.InitialBackoff, 0)
	for i := 1; i < n && d < o.MaxBackoff; i++ {
		d *= 2
	}
	return min(d, max(o.MaxBackoff, 0))
}
