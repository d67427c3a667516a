package evict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

func TestRoomIsMade(t *testing.T) {
	story(t, []string{"a", "v1", "v2", "w1"}, func(t *testing.T, o *office) {
		w := deleteFor("a", "v1", "v2")
		o.books.plan(w, victimsOf("a", "v1", "v2")...)
		pass(time.Second)
		o.expectGone(t, "v1", "v2")
		o.expect(t, "committed [uid-a], deleted [uid-a], failed 0")
		held := o.cluster.condition("a", reservations.HeldCondition)
		want := corev1.PodCondition{Type: reservations.HeldCondition, Status: corev1.ConditionTrue, Reason: "MakingRoom",
			Message: w.Hold.Claim().Message(), LastTransitionTime: metav1.NewTime(w.Hold.Since.Truncate(time.Second))}
		expect.Same(t, "the claim", want, held)
		told := o.cluster.events()
		slices.Sort(told)
		expect.Same(t, "events", []string{
			"yunikorn: a Normal MakingRoom Preempting: The pod holds node n1. To make room 2 pods leave. Of queue root.b: ns/v1, ns/v2.",
			"yunikorn: v1 Normal Preempted Preempting: goes for ns/a [a]",
			"yunikorn: v2 Normal Preempted Preempting: goes for ns/a [a]",
		}, told)
		if got := o.cluster.story(); len(got) != 5 || got[0] != "patch a paddock.io/NodeHeld=True MakingRoom" ||
			!slices.Contains(got, "patch v1 DisruptionTarget=True PreemptionByScheduler") {
			t.Errorf("calls %v", got)
		}
	})
}

func TestAHoldWithoutVictims(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		o.books.plan(deleteFor("a"))
		pass(time.Second)
		o.expectGone(t)
		o.expect(t, "committed [uid-a], deleted [uid-a], failed 0")
		if got := o.cluster.story(); !slices.Equal(got, []string{"patch a paddock.io/NodeHeld=True WaitingForRoom"}) {
			t.Errorf("calls %v", got)
		}
		if got := o.cluster.events(); len(got) != 1 || !strings.Contains(got[0],
			"a Normal WaitingForRoom Preempting: The pod holds node n1 and starts there once pods that are leaving are gone.") {
			t.Errorf("events %q", got)
		}
	})
}

// TestAHoldThatMayNotHaveVictimsYet: the condition and the event have one reason and say why.
func TestAHoldThatMayNotHaveVictimsYet(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		w := deleteFor("a")
		w.Hold.Note = "victims there are chosen as soon as the limits allow"
		o.books.plan(w)
		pass(time.Second)
		if got := o.cluster.story(); !slices.Equal(got, []string{"patch a paddock.io/NodeHeld=True RoomAwaited"}) {
			t.Errorf("calls %v", got)
		}
		if got := o.cluster.events(); len(got) != 1 || !strings.HasSuffix(got[0],
			"a Normal RoomAwaited Preempting: The pod can run on node n1 only, which is held for it: victims there are chosen as soon as the limits allow.") {
			t.Errorf("events %q", got)
		}
	})
}

func TestPlanThatIsRefusedAtCommit(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		o.books.off = reasons.New(reasons.HoldGivenUp, "queue root.a has its guarantee by now")
		o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
		pass(time.Minute)
		o.expectGone(t)
		o.expect(t, "committed [uid-a], deleted [], failed 0")
		if len(o.cluster.events()) > 0 {
			t.Errorf("events %q", o.cluster.events())
		}
	})
}

func TestAnAskerThatIsGone(t *testing.T) {
	for name, change := range waysToGo("a") {
		storyOf(t, name, []string{"a", "v1"}, func(t *testing.T, o *office) {
			change(o.cluster)
			o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
			pass(time.Minute)
			o.expect(t, "committed [], deleted [], failed 1")
			if o.cluster.get("v1") == nil || len(o.cluster.condition("a", reservations.HeldCondition).Type) > 0 {
				t.Errorf("calls %v", o.cluster.story())
			}
		})
	}
}

func TestAClaimThatCannotBeWritten(t *testing.T) {
	for name, err := range lasting() {
		story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "a", err))
			o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
			pass(50 * time.Millisecond)
			o.expect(t, "committed [], deleted [], failed 1")
			if !strings.Contains(o.books.failed[0], "node n1: the claim of pod ns/a cannot be written") || !strings.Contains(o.books.failed[0], err.Error()) {
				t.Errorf("%s: %q", name, o.books.failed)
			}
			if !strings.Contains(o.log(), "Cannot take back the claim") {
				t.Errorf("%s: the log is silent\n%s", name, o.log())
			}
		})
	}
	for name, err := range transient() {
		story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "a", err))
			o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
			pass(29 * time.Second)
			o.expect(t, "committed [], deleted [], failed 0")
			pass(10 * time.Second)
			o.expect(t, "committed [], deleted [], failed 1")
			// A try may have taken effect: the release is not dropped.
			pass(10 * time.Minute)
			o.cluster.fail(nil)
			pass(10 * time.Second)
			if c := o.cluster.condition("a", reservations.HeldCondition); c.Status != corev1.ConditionFalse || c.Reason != "HoldGivenUp" {
				t.Errorf("%s: the claim after all is well again: %+v", name, c)
			}
		})
	}
}

func TestTriesAreAtFixedTimes(t *testing.T) {
	story(t, []string{"a"}, func(t *testing.T, o *office) {
		o.cluster.latency = 0
		o.cluster.fail(func(n int, _ call) fault { return fault{err: []error{errors.New("reset"), nil}[n/9]} })
		start := time.Now()
		o.books.plan(deleteFor("a"))
		pass(time.Minute)
		var at []time.Duration
		for _, c := range o.cluster.made() {
			at = append(at, c.at.Sub(start))
		}
		ms := time.Millisecond
		expect.Same(t, "", []time.Duration{0, 100 * ms, 300 * ms, 700 * ms, 1500 * ms, 3100 * ms, 6300 * ms, 11300 * ms, 16300 * ms}, at)
	})
}

// TestACallWithoutAnAnswer: the call ends after five seconds and is repeated.
func TestACallWithoutAnAnswer(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		o.cluster.fail(func(n int, _ call) fault { return fault{hang: n%2 == 1} })
		o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
		pass(4900 * time.Millisecond)
		if len(o.cluster.made()) != 1 {
			t.Errorf("calls %v", o.cluster.story())
		}
		pass(20 * time.Second)
		o.expectGone(t, "v1")
		o.expect(t, doneLate)
	})
}

func TestAStandbyWritesNothing(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		o.leading.Store(false)
		pass(time.Second)
		o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
		pass(time.Minute)
		if len(o.cluster.made()) > 0 || len(o.books.queued) != 1 {
			t.Errorf("a standby made calls %v and left %d works", o.cluster.story(), len(o.books.queued))
		}
		o.leading.Store(true) // without a signal
		pass(2 * time.Second)
		o.expect(t, "committed [uid-a], deleted [uid-a], failed 0")
	})
}

// TestTheLeaseIsLost: the lease is lost after each of the calls, and the work goes on when
// it is back.
func TestTheLeaseIsLost(t *testing.T) {
	for k := 1; k <= 5; k++ {
		story(t, []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
			o.cluster.fail(func(n int, _ call) fault {
				if n == k {
					o.leading.Store(false)
				}
				return fault{}
			})
			o.books.plan(deleteFor("a", "v1", "v2"), victimsOf("a", "v1", "v2")...)
			pass(time.Minute)
			if n := len(o.cluster.made()); n != k {
				t.Errorf("after %d calls the lease was lost, and there were %d: %v", k, n, o.cluster.story())
			}
			o.leading.Store(true)
			pass(10 * time.Second)
			o.expectGone(t, "v1", "v2")
			if len(o.books.deleted) != 1 || len(o.books.failed) > 0 || len(o.cluster.made()) > 6 {
				t.Errorf("%s; calls %v", o.books.outcome(), o.cluster.story())
			}
		})
	}
}

func TestDifferentAskersSideBySide(t *testing.T) {
	story(t, []string{"a", "b", "v1", "v2"}, func(t *testing.T, o *office) {
		o.cluster.fail(func(_ int, c call) fault { return fault{hang: c.pod == "v1"} })
		o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
		o.books.plan(deleteFor("b", "v2"), victimsOf("b", "v2")...)
		pass(time.Second)
		o.expectGone(t, "v2")
		o.expect(t, "committed [uid-a uid-b], deleted [uid-b], failed 0")
	})
}

// TestALaterHoldReplacesARelease: while the end of a hold cannot be written, the asker
// gets another hold. Its claim is written in the place of the end, and the reason of the
// end is told once.
func TestALaterHoldReplacesARelease(t *testing.T) {
	story(t, []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
		first := deleteFor("a", "v1")
		o.cluster.fail(on("patch", "a", apierrors.NewInternalError(errors.New("etcd"))))
		o.books.queue(release(first, reservations.Superseded, reasons.New(reasons.HoldSuperseded, "node n1: pod ns/d took the room")))
		pass(time.Minute)
		o.cluster.forget()
		o.books.plan(deleteFor("a", "v2"), victimsOf("a", "v2")...)
		pass(20 * time.Second)
		o.expectGone(t)
		o.cluster.fail(nil)
		pass(10 * time.Second)
		o.expectGone(t, "v2")
		claim := informer.Claim(o.cluster.get("a"))
		if claim == nil || !slices.Equal(claim.Victims, []types.UID{"uid-v2"}) {
			t.Errorf("the claim is %+v", claim)
		}
		if story := strings.Join(o.cluster.story(), ", "); strings.Contains(story, "NodeHeld=False") {
			t.Errorf("the end of the first hold was written after the second began: %s", story)
		}
		if told := o.cluster.events(); len(told) != 3 || !strings.Contains(told[0], "HoldSuperseded Preempting: node n1: pod ns/d took the room") {
			t.Errorf("events %q; want the end, the victim, the room", told)
		}
	})
}

// TestWorkThatIsOvertaken: while the claim of a hold without victims is written, victims
// are chosen for it. They are deleted by the work that has them in its claim.
func TestWorkThatIsOvertaken(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		first, second := deleteFor("a"), deleteFor("a", "v1")
		second.Hold.Since = first.Hold.Since
		o.books.committing = func() {
			o.books.committing = nil
			o.books.plan(second, victimsOf("a", "v1")...)
		}
		o.books.plan(first)
		pass(time.Second)
		want := []string{"patch a paddock.io/NodeHeld=True WaitingForRoom", "patch a paddock.io/NodeHeld=True MakingRoom", "patch v1 DisruptionTarget=True PreemptionByScheduler", "delete v1"}
		expect.Same(t, "calls", want, o.cluster.story())
		o.expectGone(t, "v1")
		o.expect(t, "committed [uid-a uid-a], deleted [uid-a], failed 0")
	})
}

// TestCallsInFlight: there are never more than askers may be worked on at the same time,
// and no fewer.
func TestCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		o := newOffice(t, c)
		c.latency = 100 * time.Millisecond
		defer o.run(t)()
		for i := range 30 {
			asker, victim := fmt.Sprint("a", i), fmt.Sprint("v", i)
			for _, name := range []string{asker, victim} {
				expect.OK(t, c.tracker.Tracker().Add(pod(name)))
			}
			o.books.plan(deleteFor(asker, victim), victimsOf(asker, victim)...)
		}
		pass(time.Minute)
		o.mu.Lock()
		defer o.mu.Unlock()
		if c.most != 16 || len(o.books.deleted) != 30 || len(o.open) > 0 {
			t.Errorf("%d calls in flight, want 16; %d askers left; %s", c.most, len(o.open), o.books.outcome())
		}
	})
}

// TestRunEndsAtOnce: with calls, back-offs and releases in progress, Run ends at once, makes no
// further call, and leaves no goroutine.
func TestRunEndsAtOnce(t *testing.T) {
	before := goleak.IgnoreCurrent()
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, newCluster(t, pods("a", "b", "c", "v1", "v2", "v3")...))
		stop := o.run(t)
		o.cluster.fail(func(_ int, c call) fault {
			return fault{hang: c.pod == "v1" || c.pod == "c", err: errors.New("reset")}
		})
		o.books.plan(deleteFor("b", "v2"), victimsOf("b", "v2")...)
		o.books.queue(release(deleteFor("c"), reservations.TimedOut, reasons.New(reasons.HoldTimedOut, "node n1: since 10m")))
		pass(time.Second)
		o.cluster.fail(func(_ int, c call) fault { return fault{hang: c.verb == "patch"} })
		o.books.plan(deleteFor("a", "v1", "v3"), victimsOf("a", "v1", "v3")...)
		pass(time.Second)
		began, calls := time.Now(), len(o.cluster.made())
		stop()
		if waited := time.Since(began); waited > 10*time.Millisecond {
			t.Errorf("it took %v to end", waited)
		}
		pass(time.Hour)
		if n := len(o.cluster.made()); n != calls {
			t.Errorf("%d calls after the end", n-calls)
		}
		if len(o.books.deleted)+len(o.books.failed) > 0 {
			t.Errorf("finished: %s", o.books.outcome())
		}
	})
	expect.Holds(t, goleak.Find(before))
}

// TestRunEndsAfterACallInProgress: Run waits for a call that takes long.
func TestRunEndsAfterACallInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, newCluster(t, pods("a")...))
		o.cluster.latency = 4 * time.Second
		stop := o.run(t)
		o.books.plan(deleteFor("a"))
		pass(time.Second)
		began := time.Now()
		stop()
		expect.Same(t, "the time of the end, with a call in flight", 3*time.Second, time.Since(began))
	})
}

func TestAskerNote(t *testing.T) {
	w := &output.Work{Hold: reservations.Hold{Node: "n1"}}
	going := []output.Victim{
		{Ref: refOf("x"), Queue: "root.b"}, {Ref: refOf("z"), Queue: "root.a"}, {Ref: refOf("y"), Queue: "root.b"},
	}
	for _, c := range []struct {
		nodeBound bool
		decision  *planner.Decision
		going     []output.Victim
		want      string
	}{
		{false, nil, nil, "The pod holds node n1 and starts there once pods that are leaving are gone."},
		{true, nil, going[:1], "The pod holds node n1, the only one it can run on. To make room 1 pod leaves. Of queue root.b: ns/x."},
		{false, &planner.Decision{}, going[:1], "The pod holds node n1. To make room 1 pod leaves. Of queue root.b: ns/x."},
		{false, nil, going, "The pod holds node n1. To make room 3 pods leave. Of queue root.a: ns/z. Of queue root.b: ns/x, ns/y."},
		{false, &planner.Decision{OptedOut: 1, Violations: 2}, going[:1], "The pod holds node n1. To make room 1 pod leaves. " +
			"1 of them has opted out of preemption; without them there was no way. 2 disruptions are beyond what PodDisruptionBudgets allow. Of queue root.b: ns/x."},
	} {
		w.Hold.NodeBound, w.Decision = c.nodeBound, c.decision
		expect.Same(t, "note", c.want, askerNote(w, c.going))
	}
}
