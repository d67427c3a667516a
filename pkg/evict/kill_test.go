package evict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	c := newCluster(t, pods(append(append([]string{"a"}, planned...), otherwise...)...)...)
	c.graceful = true
	first := newOffice(t, c)
	taints(TaintIfAllowed)(first)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
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
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx, first.Executor)
	}()
	pass(5 * time.Minute)
	if at.IsZero() {
		cancel()
		<-ended
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
	cancel()
	<-ended
	if left := c.nodes.taints("n1"); err == nil && len(left) > 0 {
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

// madeRoom checks that exactly the wanted pods are gone, and the invariants of
// wellFormed.
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

// planted is an executor with a bug.
type planted struct {
	name     string
	carryOut func(ctx context.Context, e *Executor, a *asker) error
	finding  string
}

// inOrder takes steps until one fails.
func inOrder(steps ...func(context.Context, *Executor, *asker) error) func(context.Context, *Executor, *asker) error {
	return func(ctx context.Context, e *Executor, a *asker) error {
		for _, step := range steps {
			if err := step(ctx, e, a); err != nil {
				return err
			}
		}
		return nil
	}
}

func claimed(ctx context.Context, e *Executor, a *asker) error {
	w := e.Store.(*books).works["uid-a"]
	return e.writeClaim(ctx, a, &w)
}

func tainted(ctx context.Context, e *Executor, _ *asker) error { return e.reconcileNode(ctx, "n1") }

func deleted(ctx context.Context, e *Executor, a *asker) error { return e.advance(ctx, a) }

// each marks and deletes the victims in a given way.
func each(letGo func(ctx context.Context, e *Executor, a *asker, v *victim) error) func(context.Context, *Executor, *asker) error {
	return func(ctx context.Context, e *Executor, a *asker) (err error) {
		for _, v := range a.plan.left {
			if v.pod, err = e.find(v.Ref); err == nil {
				err = letGo(ctx, e, a, v)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// deletes marks a victim and deletes it with the given options.
func deletes(options func(*victim) metav1.DeleteOptions) func(context.Context, *Executor, *asker, *victim) error {
	return func(ctx context.Context, e *Executor, a *asker, v *victim) error {
		if err := e.mark(ctx, a, v); err != nil {
			return err
		}
		return e.call(ctx, func(ctx context.Context) error {
			return e.Client.CoreV1().Pods("ns").Delete(ctx, v.Name, options(v))
		})
	}
}

// bugs complete a plan as long as no call fails.
var bugs = []planted{
	{"taints after the deletes", inOrder(claimed, deleted, tainted), "is without the taint"},
	{"taints before the claim", inOrder(tainted, claimed, deleted), "is before the claim"},
	{"claims after the deletes", inOrder(deleted, claimed), "is "},
	{"claims half of the victims", inOrder(func(ctx context.Context, e *Executor, a *asker) error {
		half := deleteFor("a", planned[:2]...)
		return e.writeClaim(ctx, a, &half)
	}, tainted, deleted, claimed), "want [v1 v2]"},
	{"marks before the claim", inOrder(each(func(ctx context.Context, e *Executor, a *asker, v *victim) error {
		return e.mark(ctx, a, v)
	}), claimed, tainted, deleted), "is before the claim"},
	{"does not mark", inOrder(claimed, tainted, each(func(ctx context.Context, e *Executor, a *asker, v *victim) error {
		return e.delete(ctx, a, v)
	})), "is before the mark"},
	{"marks after the delete", inOrder(claimed, tainted, each(func(ctx context.Context, e *Executor, a *asker, v *victim) error {
		return errors.Join(e.delete(ctx, a, v), e.mark(ctx, a, v))
	})), "is before the mark"},
	{"deletes any UID", inOrder(claimed, tainted, each(deletes(func(*victim) metav1.DeleteOptions { return metav1.DeleteOptions{} }))), "is for any UID"},
	{"is in a hurry", inOrder(claimed, tainted, each(deletes(func(v *victim) metav1.DeleteOptions {
		now := int64(0)
		return metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(v.UID)), GracePeriodSeconds: &now}
	}))), "says how long the pod has"},
	{"goes on without the lease", func(ctx context.Context, e *Executor, a *asker) error {
		e.Leading = func() bool { return true }
		return inOrder(claimed, tainted, deleted)(ctx, e, a)
	}, "at which it was stopped"},
	{"lets one more go", inOrder(claimed, tainted, func(_ context.Context, _ *Executor, a *asker) error {
		a.plan.left = append(a.plan.left, &victim{Victim: victimsOf("a", "w1")[0]})
		return nil
	}, deleted), "gone are [v1 v2 v3 w1]"},
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
					a := e.open[w.UID]
					a.plan = newPlan(&w, going, e.Clock.Now())
					if bug.carryOut(ctx, e, a) == nil && a.plan != nil {
						e.Store.VictimsDeleted(w.UID, e.Clock.Now()) // a plan that is completed by advance is gone
					}
				}
			}, asExpected)
			if !slices.ContainsFunc(found, asExpected) {
				t.Errorf("no finding %q in %v", bug.finding, found)
			}
		})
	}
}
