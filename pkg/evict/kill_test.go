package evict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// kill is a call at which a process ends or loses its lease, and how.
type kill struct {
	lease  bool // the process continues without its lease
	effect bool // the call takes effect
}

func (k kill) String() string { return fmt.Sprintf("lease=%t,effect=%t", k.lease, k.effect) }

var kills = []kill{{false, false}, {false, true}, {true, false}, {true, true}}

var (
	planned   = []string{"v1", "v2", "v3"}
	otherwise = []string{"w1", "w2"} // what the next process would plan on its own
)

// survives kills a process at its nth call, and starts another process from the state of
// the API server. That process must delete exactly the pods of the claim; without a claim
// exactly those of the new plan. It reports whether there was an nth call.
func survives(t *testing.T, run func(context.Context, *Executor), how kill, n int) (reached bool, err error) {
	c := newCluster(t, slices.Concat([]string{"a"}, planned, otherwise)...)
	c.graceful = true
	first := newOffice(t, c)
	taints(TaintIfAllowed)(first)
	ctx, cancel := context.WithCancel(t.Context())
	var at time.Time
	c.fail(func(i int, _ call) fault {
		if i != n {
			return fault{}
		}
		at = time.Now()
		if how.lease {
			first.leading.Store(false)
		} else {
			cancel()
		}
		return fault{err: errors.New("connection lost"), late: how.effect}
	})
	first.books.plan(deleteFor("a", planned...), victimsOf("a", planned...)...)
	var running sync.WaitGroup
	running.Go(func() { run(ctx, first.Executor) })
	defer running.Wait()
	defer cancel()
	pass(5 * time.Minute)
	if at.IsZero() {
		return false, first.madeRoom(planned)
	}
	for i, made := range c.made() {
		if made.at.After(at) {
			return true, fmt.Errorf("call %d, %s, was made after call %d, at which it was stopped", i+1, made, n)
		}
	}
	second, want := takeOver(t, c)
	stop := second.run(t)
	pass(5 * time.Minute)
	err = second.madeRoom(want)
	second.books.queue(release(deleteFor("a"), reservations.Bound, reasons.Reason{}))
	pass(5 * time.Minute)
	stop()
	if left := c.nodes.taints(); err == nil && len(left) > 0 {
		err = fmt.Errorf("the hold is over, and the node has taints %q", left)
	}
	return true, err
}

// takeOver makes the next process; its store knows what the API server has.
func takeOver(t *testing.T, c *cluster) (next *office, want []string) {
	next = newOffice(t, c)
	taints(TaintIfAllowed)(next)
	claim := informer.Claim(c.get("a"))
	if claim == nil {
		next.books.plan(deleteFor("a", otherwise...), victimsOf("a", otherwise...)...)
		return next, otherwise
	}
	var left []string
	for _, uid := range claim.Victims {
		name := string(uid[len("uid-"):])
		if want = append(want, name); c.get(name).DeletionTimestamp == nil {
			left = append(left, name)
		}
	}
	w := deleteFor("a", left...)
	w.Hold.Since, w.Hold.Chosen = claim.Since, claim.Victims
	next.books.plan(w, victimsOf("a", left...)...)
	return next, want
}

// madeRoom checks that exactly the wanted pods are gone, and the invariants of wellFormed.
func (o *office) madeRoom(want []string) error {
	if err := wellFormed(o.cluster.made(), "a"); err != nil {
		return err
	}
	if err := keptOff(o.cluster.made()); err != nil {
		return err
	}
	if got := o.cluster.gone(); !slices.Equal(got, want) {
		return fmt.Errorf("gone are %v, want %v", got, want)
	}
	if claim := informer.Claim(o.cluster.get("a")); claim == nil || len(claim.Victims) != len(want) {
		return fmt.Errorf("the claim is %+v", claim)
	}
	if !slices.Equal(o.books.deleted, []types.UID{"uid-a"}) {
		return fmt.Errorf("the store was told: %s", o.books.outcome())
	}
	return nil
}

// findings kills a process at every call in every way, until it has enough failures.
func findings(t *testing.T, run func(context.Context, *Executor), enough func(error) bool) (found []error, tried int) {
	for _, how := range kills {
		for n, more := 1, true; more; n++ {
			if len(found) > 0 && enough(found[len(found)-1]) {
				return found, tried
			}
			synctest.Test(t, func(t *testing.T) {
				reached, err := survives(t, run, how, n)
				if err != nil {
					found = append(found, fmt.Errorf("killed at call %d, %s: %w", n, how, err))
				}
				more = reached && n < 50
			})
			tried++
		}
	}
	return found, tried
}

func TestKilledAtAnyCall(t *testing.T) {
	found, tried := findings(t, func(ctx context.Context, e *Executor) { e.Run(ctx) }, func(error) bool { return false })
	for _, err := range found {
		t.Error(err)
	}
	expect.Same(t, "deaths", len(kills)*9, tried) // eight calls, and the ninth that is not made
}

// process is an executor that carries out the plan of an asker, step by step.
type process struct {
	*Executor
	ctx   context.Context
	asker *asker
}

type step func(p process) error

func claimed(p process) error {
	w := p.Store.(*books).works["uid-a"]
	return p.writeClaim(p.ctx, p.asker, &w)
}

func tainted(p process) error { return p.reconcileNode(p.ctx, "n1") }

func deleted(p process) error { return p.advance(p.ctx, p.asker) }

// each lets the victims go in a given way.
func each(letGo func(p process, v *victim) error) step {
	return func(p process) (err error) {
		for _, v := range p.asker.plan.left {
			if v.pod, err = p.find(v.Ref); err == nil {
				err = letGo(p, v)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

func marks(p process, v *victim) error { return p.mark(p.ctx, p.asker, v) }

func deletes(p process, v *victim) error { return p.delete(p.ctx, p.asker, v) }

func marksLate(p process, v *victim) error { return errors.Join(deletes(p, v), marks(p, v)) }

// deletesWith marks a victim and deletes it with the given options, and its UID if they have
// a grace period.
func deletesWith(options metav1.DeleteOptions) func(process, *victim) error {
	return func(p process, v *victim) error {
		if err := marks(p, v); err != nil {
			return err
		}
		if options.GracePeriodSeconds != nil {
			options.Preconditions = metav1.NewUIDPreconditions(string(v.UID))
		}
		return p.call(p.ctx, func(ctx context.Context) error {
			return p.Client.CoreV1().Pods("ns").Delete(ctx, v.Name, options)
		})
	}
}

// bugs complete a plan as long as no call fails.
var bugs = []struct {
	name, finding string
	steps         []step
}{
	{"taints after the deletes", "is without the taint", []step{claimed, deleted, tainted}},
	{"taints before the claim", "is before the claim", []step{tainted, claimed, deleted}},
	{"claims after the deletes", "is ", []step{deleted, claimed}},
	{"claims half of the victims", "want [v1 v2]", []step{func(p process) error {
		half := deleteFor("a", planned[:2]...)
		return p.writeClaim(p.ctx, p.asker, &half)
	}, tainted, deleted, claimed}},
	{"marks before the claim", "is before the claim", []step{each(marks), claimed, tainted, deleted}},
	{"does not mark", "is before the mark", []step{claimed, tainted, each(deletes)}},
	{"marks after the delete", "is before the mark", []step{claimed, tainted, each(marksLate)}},
	{"deletes any UID", "is for any UID", []step{claimed, tainted, each(deletesWith(metav1.DeleteOptions{}))}},
	{"is in a hurry", "says how long the pod has", []step{
		claimed, tainted, each(deletesWith(metav1.DeleteOptions{GracePeriodSeconds: new(int64)})),
	}},
	{"goes on without the lease", "at which it was stopped", []step{func(p process) error {
		p.Leading = func() bool { return true }
		return nil
	}, claimed, tainted, deleted}},
	{"lets one more go", "gone are [v1 v2 v3 w1]", []step{claimed, tainted, func(p process) error {
		p.asker.plan.left = append(p.asker.plan.left, &victim{Victim: victimsOf("a", "w1")[0]})
		return nil
	}, deleted}},
}

func TestKillsFindPlantedBugs(t *testing.T) {
	for _, bug := range bugs {
		t.Run(bug.name, func(t *testing.T) {
			asExpected := func(err error) bool { return strings.Contains(err.Error(), bug.finding) }
			found, _ := findings(t, func(ctx context.Context, e *Executor) {
				e.prepare()
				defer e.askers.ShutDown()
				defer e.nodes.ShutDown()
				for _, w := range e.Store.TakeWork() {
					e.add(&w)
					going, _ := e.Store.Commit(w.UID, nil, e.Clock.Now())
					p := process{e, ctx, e.open[w.UID]}
					p.asker.plan = newPlan(&w, going, e.Clock.Now())
					fails := func(s step) bool { return s(p) != nil }
					if !slices.ContainsFunc(bug.steps, fails) && p.asker.plan != nil {
						e.Store.VictimsDeleted(w.UID, e.Clock.Now()) // a plan that is completed by advance is gone
					}
				}
			}, asExpected)
			expect.That(t, slices.ContainsFunc(found, asExpected), "no finding %q in %v", bug.finding, found)
		})
	}
}
