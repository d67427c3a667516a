package evict

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// clear returns the work for a hold that became clear now.
func clear(w output.Work) output.Work {
	w.Kind, w.Hold.Awaited, w.Hold.ClearSince = output.WorkRecord, nil, time.Now()
	return w
}

func TestClaims(t *testing.T) {
	stories(t, map[string]func(*testing.T, *office){
		"when the node became clear is written once": func(t *testing.T, o *office) {
			w := deleteFor("a", "v1")
			pass(time.Second)
			w = clear(w)
			o.books.queue(w)
			pass(time.Second)
			claim := informer.Claim(o.cluster.get("a"))
			want := w.Hold.Claim()
			expect.That(t, claim != nil && claim.ClearSince.Equal(want.ClearSince) && claim.Since.Equal(want.Since),
				"the claim is %+v", claim)
			o.expectEvents(t, 0)
			o.books.queue(w)
			pass(time.Second)
			expect.Same(t, "writes", 1, len(o.cluster.story()))
			o.cluster.remove("a")
			o.books.queue(w)
			pass(time.Second)
			expect.That(t, len(o.cluster.made()) == 1 && !strings.Contains(o.log(), "Cannot"),
				"an asker that is gone: %v\n%s", o.cluster.made(), o.log())
		},
		"that it cannot be written is logged": func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "a", lasting()["forbidden"]))
			o.books.queue(clear(deleteFor("a")))
			pass(time.Second)
			expect.Says(t, o.log(), "Cannot write the claim again", `pod="ns/a"`)
		},
		"one that is there is not written after a restart, even if some victims are gone": func(t *testing.T, o *office) {
			o.cluster.hold(deleteFor("a", "v1", "v2"))
			o.planAndPass(time.Second, "a", "v2")
			o.expectCalls(t, "patch v2 DisruptionTarget=True PreemptionByScheduler", "delete v2")
			o.cluster.forget() // the claim is not among the calls
		},
	})
}

// hold writes the claim of a hold on a without a call.
func (c *cluster) hold(w output.Work) {
	c.update("a", func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, heldCondition(w.Hold.Claim()))
	})
}

// TestAClaimCoversTheSameHoldWithFewerVictims: a claim on the API server covers a wanted one
// only if nothing of that is missing.
func TestAClaimCoversTheSameHoldWithFewerVictims(t *testing.T) {
	now := time.Now()
	c := reservations.Claim{Node: "n1", Since: now, Victims: []types.UID{"v"}, Decision: "d"}
	for name, change := range map[string]func(*reservations.Claim){
		"another node":     func(c *reservations.Claim) { c.Node = "n2" },
		"another hold":     func(c *reservations.Claim) { c.Since = now.Add(1) },
		"another decision": func(c *reservations.Claim) { c.Decision = "e" },
		"clear since":      func(c *reservations.Claim) { c.ClearSince = now.Add(1) },
		"another victim":   func(c *reservations.Claim) { c.Victims = []types.UID{"v", "w"} },
	} {
		other := c
		change(&other)
		expect.That(t, !covers(c, other), "%s: not noticed", name)
	}
	fewer := c
	fewer.Victims = nil
	expect.That(t, covers(c, c) && covers(c, fewer), "a claim covers itself, and one with fewer victims")
}

// warning is the event on a for a reason: with what helps.
func warning(why reasons.Reason) string {
	return fmt.Sprintf("yunikorn: a Warning %s Preempting: %s", why.Code, why.Advice())
}

func TestTheEndsOfAHold(t *testing.T) {
	for _, c := range []struct {
		ended reservations.End
		why   reasons.Code // empty if no event says that it ended
		claim string
	}{
		{reservations.Bound, "", "False Bound"},
		{reservations.Deleted, "", "True WaitingForRoom"},
		{reservations.Superseded, reasons.HoldSuperseded, "False HoldSuperseded"},
		{reservations.NodeGone, reasons.HoldNodeGone, "False HoldNodeGone"},
		{reservations.NodeUnschedulable, reasons.HoldNodeUnschedulable, "False HoldNodeUnschedulable"},
		{reservations.TimedOut, reasons.HoldTimedOut, "False HoldTimedOut"},
		{reservations.GivenUp, reasons.HoldGivenUp, "False HoldGivenUp"},
	} {
		storyOf(t, string(c.ended), func(t *testing.T, o *office) {
			w := o.planAndPass(time.Second, "a")
			o.cluster.forget()
			why := reasons.Reason{}
			if c.why != "" {
				why = reasons.New(c.why, "node n1: so it is")
			}
			o.books.queue(release(w, c.ended, why))
			pass(time.Second)
			expect.Same(t, "the claim", c.claim, o.cluster.claim())
			held := o.cluster.condition("a", reservations.HeldCondition)
			if held.Status == corev1.ConditionFalse {
				changed := held.LastTransitionTime.Sub(w.Hold.Since)
				expect.That(t, changed >= time.Second, "it changed %v after the hold began", changed)
			}
			if c.why == "" {
				o.expectEvents(t, 0)
				return
			}
			expect.Same(t, "message", why.Advice(), held.Message)
			expect.Same(t, "events", []string{warning(why)}, o.cluster.events())
		})
	}
}

func TestReleases(t *testing.T) {
	stories(t, map[string]func(*testing.T, *office){
		"neither failures nor the loss of the lease drop a release": func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "a", errors.New("reset")))
			o.end(deleteFor("a"), reservations.TimedOut)
			pass(time.Hour)
			o.leading.Store(false)
			o.cluster.fail(nil)
			before := len(o.cluster.made())
			pass(time.Hour)
			expect.Same(t, "calls of a standby", 0, len(o.cluster.made())-before)
			o.expectEvents(t, 0)
			o.leading.Store(true)
			pass(time.Second)
			expect.Same(t, "the claim", "False HoldTimedOut", o.cluster.claim())
			o.expectEvents(t, 1)
		},
		"a late release does not withdraw the claim of a later hold": func(t *testing.T, o *office) {
			first := deleteFor("a", "v1")
			pass(time.Second)
			second := deleteFor("a", "v2")
			o.cluster.hold(second)
			o.end(first, reservations.TimedOut)
			pass(time.Minute)
			expect.Same(t, "the claim", "True MakingRoom", o.cluster.claim())
			o.expectEvents(t, 0)
			o.end(second, reservations.TimedOut)
			pass(time.Minute)
			expect.Same(t, "the claim", "False HoldTimedOut", o.cluster.claim())
		},
		"room that is lost while the node stays held is reported by an event only": func(t *testing.T, o *office) {
			w := o.planAndPass(time.Second, "a")
			before := o.cluster.condition("a", reservations.HeldCondition)
			o.cluster.forget()
			why := reasons.New(reasons.HoldSuperseded, "others took the room on node n1: ns/f of default-scheduler; this is loss 2 in a row, so no plan is made for the pod for 30s")
			o.books.queue(output.Work{Ref: w.Ref, Kind: output.WorkTell, Hold: w.Hold, Reason: why})
			pass(time.Second)
			expect.Same(t, "events", []string{warning(why)}, o.cluster.events())
			expect.Same(t, "the condition", before, o.cluster.condition("a", reservations.HeldCondition))
		},
	})
}

// TestEndOfAPodIsReadFromTheAPIServer: if the informer no longer has a pod, how the pod ended is read from the
// API server.
func TestEndOfAPodIsReadFromTheAPIServer(t *testing.T) {
	for _, c := range []struct {
		name           string
		phase          corev1.PodPhase
		reason         string
		other          bool // another pod has its name now
		want, toldThat string
	}{
		{"refused", corev1.PodFailed, "OutOfcpu", false, "uid-a OutOfcpu", "refused: OutOfcpu"},
		{"refused for a device", corev1.PodFailed, "OutOfexample.com/gpu", false, "uid-a OutOfexample.com/gpu", "refused: OutOfexample.com/gpu"},
		{"failed", corev1.PodFailed, "NodeAffinity", false, "uid-a ", ""},
		{"succeeded", corev1.PodSucceeded, "", false, "uid-a ", ""},
		{"runs", corev1.PodRunning, "OutOfcpu", false, "uid-a ", ""},
		{"another pod", corev1.PodFailed, "OutOfcpu", true, "b ", ""},
		{"gone", "", "", false, "gone ", ""},
	} {
		storyOf(t, c.name, func(t *testing.T, o *office) {
			w := deleteFor("a")
			w.Kind = output.WorkInquire
			switch {
			case c.other:
				w.UID = "b"
			case c.phase == "":
				w.UID, w.Name = "gone", "gone"
			}
			o.cluster.update("a", func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = c.phase, c.reason })
			o.books.queue(w)
			pass(time.Second)
			expect.Same(t, "found", []string{c.want}, o.books.refused)
			var want []string
			if c.toldThat != "" {
				want = []string{warning(reasons.New(reasons.HoldSuperseded, "%s", c.toldThat))}
			}
			expect.Same(t, "events", want, o.cluster.events())
		})
	}
}

// While its hold lasts, the asker is nominated to the node. The nomination must not block other pods
// once the hold is over, in particular if the asker has no scheduling cycle any more.
func TestANominationEndsWithItsHold(t *testing.T) {
	for _, c := range []struct {
		name            string
		ended           reservations.End
		nominated, want string
		unseen          bool // the informer does not have the nomination yet
	}{
		{"to the node that was held", reservations.GivenUp, "n1", "", false},
		{"to the node that was held, a moment ago", reservations.GivenUp, "n1", "", true},
		{"by another scheduler", reservations.GivenUp, "n2", "n2", false},
		{"none", reservations.TimedOut, "", "", false},
		{"bound", reservations.Bound, "n1", "n1", false},
		{"deleted, and a finalizer keeps it", reservations.Deleted, "n1", "", false},
		{"deleted, and never nominated", reservations.Deleted, "", "", false},
	} {
		story(t, func(t *testing.T, o *office) {
			w := o.planAndPass(time.Second, "a")
			o.cluster.update("a", func(p *corev1.Pod) {
				p.Spec.NodeName, p.Status.NominatedNodeName = "", c.nominated
				if c.ended == reservations.Deleted {
					p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
				}
			})
			if c.unseen {
				o.cluster.unseen["a"] = o.cluster.get("a")
				o.cluster.unseen["a"].Status.NominatedNodeName = ""
			}
			o.end(w, c.ended)
			pass(time.Second)
			expect.Same(t, c.name+": nominated to", c.want, o.cluster.get("a").Status.NominatedNodeName)
		})
	}
}

func TestReleaseForADeletedAsker(t *testing.T) {
	for name, change := range waysToGo("a") {
		storyOf(t, name, func(t *testing.T, o *office) {
			change(o.cluster)
			o.end(deleteFor("a"), reservations.TimedOut)
			pass(time.Minute)
			expect.Same(t, "the claim", "", o.cluster.claim())
			o.expectEvents(t, 0)
			expect.That(t, len(o.cluster.story()) <= 1, "calls %v", o.cluster.story())
		})
	}
}

func TestAReleaseThatIsRefused(t *testing.T) {
	for name, err := range lasting() {
		storyOf(t, name, func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "a", err))
			o.end(deleteFor("a"), reservations.TimedOut)
			pass(time.Hour)
			expect.Same(t, "calls", 1, len(o.cluster.story()))
			expect.Says(t, o.log(), "Cannot take back the claim", `pod="ns/a"`)
		})
	}
}

// TestWhatAConflictMeans: after a conflict the pod that has the name is read.
func TestWhatAConflictMeans(t *testing.T) {
	story(t, func(t *testing.T, o *office) {
		conflict := apierrors.NewConflict(podResource, "a", errors.New("modified"))
		lost := errors.New("reset")
		for _, c := range []struct {
			name   string
			ref    objects.Ref
			err    error
			lookup error
			want   error
		}{
			{"the same pod", refOf("a"), conflict, nil, conflict},
			{"another one", objects.Ref{UID: "other", Namespace: "ns", Name: "a"}, conflict, nil, errGone},
			{"no pod", refOf("none"), conflict, nil, errGone},
			{"unknown", refOf("a"), conflict, lost, lost},
			{"no conflict", objects.Ref{UID: "other", Namespace: "ns", Name: "a"}, lost, nil, lost},
		} {
			o.cluster.fail(on("get", "a", c.lookup))
			got := o.orGone(t.Context(), c.ref, c.err)
			expect.That(t, errors.Is(got, c.want), "%s: %v, want %v", c.name, got, c.want)
		}
	})
}
