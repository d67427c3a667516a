package evict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	story(t, func(t *testing.T, o *office) {
		w := o.plan("a", "v1", "v2")
		o.expectAfter(t, time.Second, done, "v1", "v2")
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
		o.expectCalls(t, "patch a paddock.io/NodeHeld=True MakingRoom",
			"patch v1 DisruptionTarget=True PreemptionByScheduler", "patch v2 DisruptionTarget=True PreemptionByScheduler",
			"delete v1", "delete v2")
	})
}

// TestAHoldWithoutVictims: the condition and the event have one reason and say why.
func TestAHoldWithoutVictims(t *testing.T) {
	for note, c := range map[string]struct{ reason, told string }{
		"": {"WaitingForRoom", "The pod holds node n1 and starts there once pods that are leaving are gone."},
		"victims there are chosen as soon as the limits allow": {"RoomAwaited",
			"The pod can run on node n1 only, which is held for it: victims there are chosen as soon as the limits allow."},
	} {
		storyOf(t, c.reason, func(t *testing.T, o *office) {
			w := deleteFor("a")
			w.Hold.Note = note
			o.books.plan(w)
			o.expectAfter(t, time.Second, done)
			o.expectCalls(t, "patch a paddock.io/NodeHeld=True "+c.reason)
			expect.Same(t, "events", []string{"yunikorn: a Normal " + c.reason + " Preempting: " + c.told}, o.cluster.events())
		})
	}
}

func TestTries(t *testing.T) {
	stories(t, map[string]func(*testing.T, *office){
		"they are at fixed times": func(t *testing.T, o *office) {
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
		},
		"a call without an answer ends after five seconds and is repeated": func(t *testing.T, o *office) {
			o.cluster.fail(func(n int, _ call) fault { return fault{hang: n%2 == 1} })
			o.planAndPass(4900*time.Millisecond, "a", "v1")
			expect.Same(t, "calls", 1, len(o.cluster.made()))
			o.expectAfter(t, 20*time.Second, doneLate, "v1")
		},
		"a standby writes nothing": func(t *testing.T, o *office) {
			o.leading.Store(false)
			pass(time.Second)
			o.planAndPass(time.Minute, "a", "v1")
			expect.That(t, len(o.cluster.made()) == 0 && len(o.books.queued) == 1,
				"a standby made calls %v and left %d works", o.cluster.story(), len(o.books.queued))
			o.leading.Store(true) // without a signal
			o.expectAfter(t, 2*time.Second, done, "v1")
		},
		"a plan that is refused at the commit is not tried": func(t *testing.T, o *office) {
			o.books.off = reasons.New(reasons.HoldGivenUp, "queue root.a has its guarantee by now")
			o.plan("a", "v1")
			o.expectAfter(t, time.Minute, committed)
			o.expectEvents(t, 0)
		},
	})
}

func TestAnAskerThatIsGone(t *testing.T) {
	for name, change := range waysToGo("a") {
		storyOf(t, name, func(t *testing.T, o *office) {
			change(o.cluster)
			o.plan("a", "v1")
			o.expectAfter(t, time.Minute, neverBegun, goneAfter(name, "a")...)
			expect.Same(t, "the claim", "", o.cluster.claim())
		})
	}
}

func TestAClaimThatCannotBeWritten(t *testing.T) {
	for name, err := range lasting() {
		storyOf(t, name, func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "a", err))
			o.plan("a", "v1")
			o.expectAfter(t, 50*time.Millisecond, neverBegun)
			o.expectWhy(t, "node n1: the claim of pod ns/a cannot be written", err.Error())
			expect.Says(t, o.log(), "Cannot take back the claim")
		})
	}
	for name, err := range transient() {
		storyOf(t, name, func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "a", err))
			o.plan("a", "v1")
			o.expectAfter(t, 29*time.Second, untouched)
			o.expectAfter(t, 10*time.Second, neverBegun)
			// A try may have taken effect: the release is not dropped.
			pass(10 * time.Minute)
			o.cluster.fail(nil)
			pass(10 * time.Second)
			expect.Same(t, "the claim after all is well again", "False HoldGivenUp", o.cluster.claim())
		})
	}
}

// TestTheLeaseIsLost: the lease is lost after each of the calls, and the work goes on when it is back.
func TestTheLeaseIsLost(t *testing.T) {
	for k := 1; k <= 5; k++ {
		story(t, func(t *testing.T, o *office) {
			o.cluster.fail(func(n int, _ call) fault {
				if n == k {
					o.leading.Store(false)
				}
				return fault{}
			})
			o.planAndPass(time.Minute, "a", "v1", "v2")
			expect.That(t, len(o.cluster.made()) == k,
				"after %d calls the lease was lost, and there were %v", k, o.cluster.story())
			o.leading.Store(true)
			pass(10 * time.Second)
			o.expectGone(t, "v1", "v2")
			expect.That(t, len(o.books.deleted) == 1 && len(o.books.failed) == 0 && len(o.cluster.made()) <= 6,
				"%s; calls %v", o.books.outcome(), o.cluster.story())
		})
	}
}

func TestLaterWork(t *testing.T) {
	stories(t, map[string]func(*testing.T, *office){
		"a later hold replaces the end of one, which is told once": func(t *testing.T, o *office) {
			first := deleteFor("a", "v1")
			o.cluster.fail(on("patch", "a", apierrors.NewInternalError(errors.New("etcd"))))
			o.books.queue(release(first, reservations.Superseded, reasons.New(reasons.HoldSuperseded, "node n1: pod ns/d took the room")))
			pass(time.Minute)
			o.cluster.forget()
			o.planAndPass(20*time.Second, "a", "v2")
			o.expectGone(t)
			o.cluster.fail(nil)
			pass(10 * time.Second)
			o.expectGone(t, "v2")
			claim := informer.Claim(o.cluster.get("a"))
			expect.That(t, claim != nil && slices.Equal(claim.Victims, []types.UID{"uid-v2"}),
				"the claim is %+v", claim)
			expect.That(t, !strings.Contains(fmt.Sprint(o.cluster.story()), "NodeHeld=False"),
				"the end of the first hold was written after the second began: %v", o.cluster.story())
			o.expectEvents(t, 3) // the end, the victim, the room
			expect.Says(t, o.cluster.events()[0], "HoldSuperseded Preempting: node n1: pod ns/d took the room")
		},
		"victims that are chosen while the claim without them is written go with their claim": func(t *testing.T, o *office) {
			first, second := deleteFor("a"), deleteFor("a", "v1")
			second.Hold.Since = first.Hold.Since
			o.books.committing = func() {
				o.books.committing = nil
				o.books.plan(second, victimsOf("a", "v1")...)
			}
			o.books.plan(first)
			o.expectAfter(t, time.Second, doneLate, "v1")
			o.expectCalls(t, "patch a paddock.io/NodeHeld=True WaitingForRoom", "patch a paddock.io/NodeHeld=True MakingRoom",
				"patch v1 DisruptionTarget=True PreemptionByScheduler", "delete v1")
		},
		"a later plan for the same hold is carried out at once, and a victim that it leaves out loses its mark": func(t *testing.T, o *office) {
			o.cluster.fail(when(fault{err: errors.New("reset"), late: true}, func(c call) bool {
				return strings.HasPrefix(c.pod, "v") && c.condition.Status == corev1.ConditionTrue
			}))
			first, second := deleteFor("a", "v1", "v2"), deleteFor("a", "v2", "v3")
			first.Hold.Decision, second.Hold.Decision = "1", "2"
			o.cluster.unseen["v1"], o.cluster.unseen["v2"] = o.cluster.get("v1"), o.cluster.get("v2")
			o.books.plan(first, victimsOf("a", "v1", "v2")...)
			pass(20 * time.Second)
			o.cluster.fail(nil)
			o.books.plan(second, victimsOf("a", "v2", "v3")...)
			o.expectAfter(t, 100*time.Millisecond, doneLate, "v2", "v3")
			expect.Same(t, "the mark of the pod that stays", "False "+sparedReason, o.cluster.mark("v1"))
			expect.That(t, !strings.Contains(fmt.Sprint(o.cluster.story()), "patch v2 DisruptionTarget=False"),
				"v2, which both plans chose, lost its mark: %v", o.cluster.story())
			o.cluster.forget() // marks that took effect although they failed
		},
	})
}

// TestCallsInFlight: there are never more than askers may be worked on at the same time, and no fewer.
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
			o.plan(asker, victim)
		}
		pass(time.Minute)
		o.mu.Lock()
		defer o.mu.Unlock()
		expect.That(t, c.most == 16 && len(o.books.deleted) == 30 && len(o.open) == 0,
			"%d calls in flight, want 16; %d askers left; %s", c.most, len(o.open), o.books.outcome())
	})
}

// TestRunEndsAtOnce: with calls, back-offs and releases in progress, Run ends at once, makes no
// further call, and leaves no goroutine: the bubble would not end.
func TestRunEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, newCluster(t, "a", "b", "c", "v1", "v2", "v3"))
		stop := o.run(t)
		o.cluster.fail(func(_ int, c call) fault {
			return fault{hang: c.pod == "v1" || c.pod == "c", err: errors.New("reset")}
		})
		o.plan("b", "v2")
		o.end(deleteFor("c"), reservations.TimedOut)
		pass(time.Second)
		o.cluster.fail(func(_ int, c call) fault { return fault{hang: c.verb == "patch"} })
		o.planAndPass(time.Second, "a", "v1", "v3")
		began, calls := time.Now(), len(o.cluster.made())
		stop()
		waited := time.Since(began)
		expect.That(t, waited <= 10*time.Millisecond, "it took %v to end", waited)
		pass(time.Hour)
		expect.Same(t, "calls after the end", 0, len(o.cluster.made())-calls)
		expect.That(t, len(o.books.deleted)+len(o.books.failed) == 0, "finished: %s", o.books.outcome())
	})
}

// TestRunEndsAfterACallInProgress: Run waits for a call that takes long.
func TestRunEndsAfterACallInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t, newCluster(t, "a"))
		o.cluster.latency = 4 * time.Second
		stop := o.run(t)
		o.planAndPass(time.Second, "a")
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
		{true, nil, going[:1], "The pod holds node n1, the only one it can run on. To make room 1 pod leaves. Of queue root.b: ns/x."},
		{false, nil, going, "The pod holds node n1. To make room 3 pods leave. Of queue root.a: ns/z. Of queue root.b: ns/x, ns/y."},
		{false, &planner.Decision{OptedOut: 1, Violations: 2}, going[:1], "The pod holds node n1. To make room 1 pod leaves. " +
			"1 of them has opted out of preemption; without them there was no way. 2 disruptions are beyond what PodDisruptionBudgets allow. Of queue root.b: ns/x."},
	} {
		w.Hold.NodeBound, w.Decision = c.nodeBound, c.decision
		expect.Same(t, "note", c.want, askerNote(w, c.going))
	}
}
