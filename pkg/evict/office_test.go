package evict

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
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

	learning atomic.Bool // it does not know the holds yet
}

func newBooks() *books {
	return &books{
		work: make(chan struct{}, 1), going: map[types.UID][]output.Victim{},
		works: map[types.UID]output.Work{}, keepsOff: map[string][]types.UID{},
	}
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
		return askers[0], !b.learning.Load()
	}
	return "", !b.learning.Load()
}

// What the executor reports of a plan for a, which outcome writes.
const (
	untouched  = "committed [], deleted [], failed 0"
	neverBegun = "committed [], deleted [], failed 1"
	committed  = "committed [uid-a], deleted [], failed 0"
	planFailed = "committed [uid-a], deleted [], failed 1"
	done       = "committed [uid-a], deleted [uid-a], failed 0"
	doneLate   = "committed [uid-a uid-a], deleted [uid-a], failed 0" // the marks took more than one try
)

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

func victimsOf(asker string, names ...string) (out []output.Victim) {
	for _, n := range names {
		out = append(out, output.Victim{Ref: refOf(n), Node: "n1", Queue: "root.b", Note: "goes for ns/" + asker})
	}
	return out
}

// office is an executor and everything that it deals with. It must run in a synctest bubble.
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
		Clock:    clock.RealClock{}, Logger: logger,
	}
	o.Taints = NewTaints("yunikorn", func() TaintPolicy { return TaintNever }, c.nodes.Lister())
	return o
}

// run starts the executor. It returns a function that ends it and waits for it.
func (o *office) run(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { o.Run(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// pass lets time pass, together with everything that happens in it.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// cast are the pods of a story.
var cast = []string{"a", "b", "c", "v1", "v2", "v3", "v4", "v5", "w1"}

// story is a test of one office that runs after its setup.
func story(t *testing.T, tell func(t *testing.T, o *office), setUp ...func(*office)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, newCluster(t, cast...))
		for _, set := range setUp {
			set(o)
		}
		defer o.run(t)()
		tell(t, o)
		expect.Holds(t, wellFormed(o.cluster.made(), "a"))
	})
}

// storyOf is a subtest of one story.
func storyOf(t *testing.T, name string, tell func(t *testing.T, o *office), setUp ...func(*office)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { story(t, tell, setUp...) })
}

// stories are subtests with the same setup. Their names say what they show.
func stories(t *testing.T, tell map[string]func(t *testing.T, o *office), setUp ...func(*office)) {
	t.Helper()
	for name, of := range tell {
		storyOf(t, name, of, setUp...)
	}
}

// taints sets the taint policy of held nodes.
func taints(policy TaintPolicy) func(*office) {
	return func(o *office) {
		o.Taints = NewTaints("yunikorn", func() TaintPolicy { return policy }, o.cluster.nodes.Lister())
		o.cluster.nodes.showTo(o.Taints.Hide)
	}
}

// plan has victims chosen for a hold of an asker.
func (o *office) plan(asker string, victims ...string) output.Work {
	w := deleteFor(asker, victims...)
	o.books.plan(w, victimsOf(asker, victims...)...)
	return w
}

// planAndPass is plan, and lets time pass.
func (o *office) planAndPass(d time.Duration, asker string, victims ...string) output.Work {
	w := o.plan(asker, victims...)
	pass(d)
	return w
}

var (
	timedOut = reasons.New(reasons.HoldTimedOut, "node n1: 10m")
	nodeGone = reasons.New(reasons.HoldNodeGone, "node n1: deleted")
)

// end ends a hold, for a reason unless the asker was bound or deleted.
func (o *office) end(w output.Work, how reservations.End) {
	why := timedOut
	switch how {
	case reservations.Bound, reservations.Deleted:
		why = reasons.Reason{}
	case reservations.NodeGone:
		why = nodeGone
	}
	o.books.queue(release(w, how, why))
}

// expectAfter checks, after some time, what the store was told and which of the initial pods are gone.
func (o *office) expectAfter(t *testing.T, d time.Duration, want string, gone ...string) {
	t.Helper()
	pass(d)
	got := o.books.outcome()
	expect.That(t, got == want, "the store was told: %s; want: %s\n%s", got, want, o.log())
	o.expectGone(t, gone...)
}

func (o *office) expectGone(t *testing.T, want ...string) {
	t.Helper()
	got := o.cluster.gone()
	expect.That(t, slices.Equal(got, want), "gone: %v, want %v\n%v", got, want, o.cluster.story())
}

// expectSpared checks that none of the victims is marked.
func (o *office) expectSpared(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		c := o.cluster.condition(n, corev1.DisruptionTarget)
		expect.That(t, c.Status != corev1.ConditionTrue, "%s is there and marked: %+v", n, c)
	}
}

// expectWhy checks that one plan was given up, and why.
func (o *office) expectWhy(t *testing.T, parts ...string) {
	t.Helper()
	expect.Same(t, "plans that were given up", 1, len(o.books.failed))
	expect.Says(t, strings.Join(o.books.failed, "\n"), parts...)
}

func (o *office) expectCalls(t *testing.T, want ...string) {
	t.Helper()
	expect.Same(t, "calls", want, o.cluster.story())
}

func (o *office) expectEvents(t *testing.T, want int) {
	t.Helper()
	got := o.cluster.events()
	expect.That(t, len(got) == want, "events %q, want %d", got, want)
}
