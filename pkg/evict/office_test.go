package evict

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/output"

	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/events"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// books is a store as the executor sees it. Like the real one, it queues a release when a
// hold is given up.
type books struct {
	work       chan struct{}
	committing func() // called while Commit runs; nil for none

	mu        sync.Mutex // guards the rest
	queued    []output.Work
	going     map[types.UID][]output.Victim
	off       reasons.Reason // what Commit answers; none: the victims
	committed []types.UID
	inPermit  []types.UID // of the last Commit
	deleted   []types.UID
	failed    []string
	calledOff []string                  // of node-bound pods
	works     map[types.UID]output.Work // the last disruption of an asker
	keepsOff  map[string][]types.UID    // askers for which a node should be tainted
	// undeletable are the victims that could not be deleted for good.
	undeletable []types.UID
	refused     []string // what was found out about pods that are gone
	learning    bool     // it does not know the holds yet
}

// store.Store implements the executor's Store.
var _ Store = (*store.Store)(nil)

func newBooks() *books {
	return &books{work: make(chan struct{}, 1), going: map[types.UID][]output.Victim{}, works: map[types.UID]output.Work{}, keepsOff: map[string][]types.UID{}}
}

func (b *books) Work() <-chan struct{} { return b.work }

func (b *books) TakeWork() []output.Work {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.queued
	b.queued = nil
	return taken
}

func (b *books) queue(work ...output.Work) {
	b.mu.Lock()
	b.queued = append(b.queued, work...)
	for _, w := range work {
		askers := slices.DeleteFunc(b.keepsOff[w.Hold.Node], func(a types.UID) bool { return a == w.UID })
		if w.Kind != output.WorkRelease && len(w.Hold.Chosen) > 0 {
			askers = append(askers, w.UID)
		}
		b.keepsOff[w.Hold.Node] = askers
	}
	b.mu.Unlock()
	select {
	case b.work <- struct{}{}:
	default:
	}
}

// plan queues a disruption.
func (b *books) plan(w output.Work, going ...output.Victim) {
	b.mu.Lock()
	b.going[w.UID], b.works[w.UID] = going, w
	b.mu.Unlock()
	b.queue(w)
}

func (b *books) Commit(asker types.UID, inPermit []types.UID, _ time.Time) ([]output.Victim, reasons.Reason) {
	if b.committing != nil {
		b.committing()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.committed, b.inPermit = append(b.committed, asker), inPermit
	if !b.off.None() {
		return nil, b.off
	}
	return slices.Clone(b.going[asker]), reasons.Reason{}
}

func (b *books) VictimsDeleted(asker types.UID, _ time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deleted = append(b.deleted, asker)
}

func (b *books) VictimsRefused(refused []output.Undeletable, _ time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range refused {
		if !slices.Contains(b.undeletable, r.UID) {
			b.undeletable = append(b.undeletable, r.UID)
		}
	}
}

func (b *books) FailPlan(asker types.UID, why reasons.Reason, refused []output.Undeletable, now time.Time) {
	b.VictimsRefused(refused, now)
	b.mu.Lock()
	b.failed = append(b.failed, why.Text)
	w := b.works[asker]
	b.mu.Unlock()
	b.queue(release(w, reservations.GivenUp, why))
}

func (b *books) KubeletRefused(asker types.UID, reason string, _ time.Time) reasons.Reason {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refused = append(b.refused, string(asker)+" "+reason)
	if reason == "" {
		return reasons.Reason{}
	}
	return reasons.New(reasons.HoldSuperseded, "refused: %s", reason)
}

func (b *books) AbortPlan(asker types.UID, why reasons.Reason, _ time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calledOff = append(b.calledOff, string(asker)+": "+why.Text)
}

func (b *books) KeepsOff(node string) (types.UID, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if askers := b.keepsOff[node]; len(askers) > 0 {
		return askers[0], !b.learning
	}
	return "", !b.learning
}

// learn sets whether the store does not know the holds yet.
func (b *books) learn(does bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learning = does
}

// outcome returns what the executor reported to the store.
func (b *books) outcome() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	slices.Sort(b.committed)
	return fmt.Sprintf("committed %v, deleted %v, failed %d", b.committed, b.deleted, len(b.failed))
}

func release(w output.Work, ended reservations.End, why reasons.Reason) output.Work {
	w.Kind, w.Ended, w.Reason = output.WorkRelease, ended, why
	return w
}

func refOf(name string) objects.Ref {
	return objects.Ref{UID: types.UID("uid-" + name), Namespace: "ns", Name: name}
}

// deleteFor returns the work for a hold of node n1 with chosen victims.
func deleteFor(asker string, chosen ...string) output.Work {
	h := reservations.Hold{Asker: types.UID("uid-" + asker), Namespace: "ns", Name: asker, Node: "n1", Since: time.Now()}
	for _, c := range chosen {
		h.Chosen = append(h.Chosen, types.UID("uid-"+c))
	}
	h.Awaited = slices.Clone(h.Chosen)
	return output.Work{Ref: refOf(asker), Kind: output.WorkDeleteVictims, Hold: h}
}

func victimsOf(asker string, names ...string) []output.Victim {
	var out []output.Victim
	for _, n := range names {
		out = append(out, output.Victim{Ref: refOf(n), Node: "n1", Queue: "root.b", Note: "goes for ns/" + asker})
	}
	return out
}

// office is an executor and everything that it deals with. It must run in a synctest
// bubble.
type office struct {
	*Executor
	cluster *cluster
	books   *books
	leading atomic.Bool
	log     func() string
}

func newOffice(t *testing.T, c *cluster) *office {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(2)))
	o := &office{cluster: c, books: newBooks(), log: logger.GetSink().(ktesting.Underlier).GetBuffer().String}
	o.leading.Store(true)
	o.Executor = &Executor{
		Store: o.books, Client: c, Pods: c, Leading: o.leading.Load,
		Recorder: func(profile string) clientevents.EventRecorder { return voice{profile: profile, cluster: c} },
		Reject:   func(types.UID, string) bool { return false },
		InPermit: func() []types.UID { return nil },
		Note:     events.Note, Advice: events.Advice, Clock: clock.RealClock{}, Logger: logger,
	}
	o.Taints = NewTaints("yunikorn", func() TaintPolicy { return TaintNever }, c.nodes.Lister())
	return o
}

// run starts the executor. It returns a function that ends it and waits for it.
func (o *office) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.Run(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}

// pass lets time pass, together with everything that happens in it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// story is a test of one office that runs after its setup.
func story(t *testing.T, names []string, tell func(t *testing.T, o *office), setUp ...func(*office)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, newCluster(t, pods(names...)...))
		for _, set := range setUp {
			set(o)
		}
		defer o.run(t)()
		tell(t, o)
		expect.Holds(t, wellFormed(o.cluster.made(), "a"))
	})
}

// storyOf is a subtest of one story.
func storyOf(
	t *testing.T, name string, names []string, tell func(t *testing.T, o *office), setUp ...func(*office),
) {
	t.Helper()
	t.Run(name, func(t *testing.T) { story(t, names, tell, setUp...) })
}

// taints sets the taint policy of held nodes.
func taints(policy TaintPolicy) func(*office) {
	return func(o *office) {
		o.Taints = NewTaints("yunikorn", func() TaintPolicy { return policy }, o.cluster.nodes.Lister())
		o.cluster.nodes.showTo(o.Taints.Hide)
	}
}

func (o *office) expect(t *testing.T, want string) {
	t.Helper()
	if got := o.books.outcome(); got != want {
		t.Errorf("the store was told: %s; want: %s\n%s", got, want, o.log())
	}
}

func (o *office) expectGone(t *testing.T, want ...string) {
	t.Helper()
	if got := o.cluster.gone(); !slices.Equal(got, want) {
		t.Errorf("gone: %v, want %v\n%v", got, want, o.cluster.story())
	}
}
