package evict

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/output"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// clear returns the work for a hold that became clear now.
func clear(w output.Work) output.Work {
	w.Kind, w.Hold.Awaited, w.Hold.ClearSince = output.WorkRecord, nil, time.Now()
	return w
}

func TestWhenItBecameClearIsWritten(t *testing.T) {
	story(t, []string{"a"}, func(t *testing.T, o *office) {
		w := deleteFor("a", "v1")
		pass(time.Second)
		w = clear(w)
		o.books.queue(w)
		pass(time.Second)
		if claim := informer.Claim(o.cluster.get("a")); claim == nil || !claim.ClearSince.Equal(w.Hold.ClearSince) || !claim.Since.Equal(w.Hold.Since) {
			t.Errorf("the claim is %+v", claim)
		}
		if len(o.cluster.events()) > 0 {
			t.Errorf("events %q", o.cluster.events())
		}
		o.books.queue(w)
		pass(time.Second)
		if got := o.cluster.story(); len(got) != 1 {
			t.Errorf("written again: %v", got)
		}
		o.cluster.remove("a")
		o.books.queue(w)
		pass(time.Second)
		if len(o.cluster.made()) != 1 || strings.Contains(o.log(), "Cannot") {
			t.Errorf("an asker that is gone: %v\n%s", o.cluster.made(), o.log())
		}
	})
}

func TestWhenItBecameClearCannotBeWritten(t *testing.T) {
	story(t, []string{"a"}, func(t *testing.T, o *office) {
		o.cluster.fail(on("patch", "a", lasting()["forbidden"]))
		o.books.queue(clear(deleteFor("a")))
		pass(time.Second)
		if !strings.Contains(o.log(), "Cannot write the claim again") || !strings.Contains(o.log(), `pod="ns/a"`) {
			t.Errorf("the log is silent:\n%s", o.log())
		}
	})
}

// TestAClaimThatIsThere: work that resumes after a restart does not write the claim
// again, even if some victims are gone.
func TestAClaimThatIsThere(t *testing.T) {
	story(t, []string{"a", "v2"}, func(t *testing.T, o *office) {
		w := deleteFor("a", "v1", "v2")
		o.cluster.update("a", func(p *corev1.Pod) { p.Status.Conditions = append(p.Status.Conditions, heldCondition(w.Hold.Claim())) })
		o.books.plan(deleteFor("a", "v2"), victimsOf("a", "v2")...)
		pass(time.Second)
		if got := o.cluster.story(); !slices.Equal(got, []string{"patch v2 DisruptionTarget=True PreemptionByScheduler", "delete v2"}) {
			t.Errorf("calls %v", got)
		}
		o.cluster.forget() // the claim is not among the calls
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
		if change(&other); covers(c, other) {
			t.Errorf("%s: not noticed", name)
		}
	}
	fewer := c
	if fewer.Victims = nil; !covers(c, c) || !covers(c, fewer) {
		t.Error("a claim covers itself, and one with fewer victims")
	}
}

func TestTheEndsOfAHold(t *testing.T) {
	for _, c := range []struct {
		ended  reservations.End
		why    reasons.Code
		reason string // of the condition; empty for none
		events int
	}{
		{reservations.Bound, "", "Bound", 0},
		{reservations.Deleted, "", "", 0},
		{reservations.Superseded, reasons.HoldSuperseded, "HoldSuperseded", 1},
		{reservations.NodeGone, reasons.HoldNodeGone, "HoldNodeGone", 1},
		{reservations.NodeUnschedulable, reasons.HoldNodeUnschedulable, "HoldNodeUnschedulable", 1},
		{reservations.TimedOut, reasons.HoldTimedOut, "HoldTimedOut", 1},
		{reservations.GivenUp, reasons.HoldGivenUp, "HoldGivenUp", 1},
	} {
		story(t, []string{"a"}, func(t *testing.T, o *office) {
			w := deleteFor("a")
			o.books.plan(w)
			pass(time.Second)
			o.cluster.forget()
			why := reasons.Reason{}
			if c.why != "" {
				why = reasons.New(c.why, "node n1: so it is")
			}
			o.books.queue(release(w, c.ended, why))
			pass(time.Second)
			got := o.cluster.condition("a", reservations.HeldCondition)
			if c.reason == "" {
				if got.Status != corev1.ConditionTrue {
					t.Errorf("%s: %+v", c.ended, got)
				}
			} else if got.Status != corev1.ConditionFalse || got.Reason != c.reason || got.LastTransitionTime.Sub(w.Hold.Since) < time.Second {
				t.Errorf("%s: %+v", c.ended, got)
			}
			entry, _ := reasons.Explain(c.why)
			told := o.cluster.events()
			if len(told) != c.events || c.events > 0 && told[0] != "yunikorn: a Warning "+c.reason+" Preempting: node n1: so it is. "+entry.Remedy {
				t.Errorf("%s: events %q", c.ended, told)
			}
			if c.events > 0 && got.Message != "node n1: so it is. "+entry.Remedy {
				t.Errorf("%s: message %q", c.ended, got.Message)
			}
		})
	}
}

// TestLostRoomIsReported: while the node stays held, or after the pod was bound, a loss is
// reported by an event only.
func TestLostRoomIsReported(t *testing.T) {
	story(t, []string{"a"}, func(t *testing.T, o *office) {
		w := deleteFor("a")
		o.books.plan(w)
		pass(time.Second)
		before := o.cluster.condition("a", reservations.HeldCondition)
		o.cluster.forget()
		why := reasons.New(reasons.HoldSuperseded, "others took the room on node n1: ns/f of default-scheduler; this is loss 2 in a row, so no plan is made for the pod for 30s")
		o.books.queue(output.Work{Ref: w.Ref, Kind: output.WorkTell, Hold: w.Hold, Reason: why})
		pass(time.Second)
		entry, _ := reasons.Explain(why.Code)
		want := "yunikorn: a Warning HoldSuperseded Preempting: " + why.Text + ". " + entry.Remedy
		if told := o.cluster.events(); len(told) != 1 || told[0] != want {
			t.Errorf("events %q, want %q", told, want)
		}
		if after := o.cluster.condition("a", reservations.HeldCondition); after != before {
			t.Errorf("the condition is another one: %+v", after)
		}
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
		storyOf(t, c.name, []string{"a"}, func(t *testing.T, o *office) {
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
			if got := o.books.refused; len(got) != 1 || got[0] != c.want {
				t.Errorf("found %q, want %q", got, c.want)
			}
			entry, _ := reasons.Explain(reasons.HoldSuperseded)
			var want []string
			if c.toldThat != "" {
				want = []string{"yunikorn: a Warning HoldSuperseded Preempting: " + c.toldThat + ". " + entry.Remedy}
			}
			expect.Same(t, "events", want, o.cluster.events())
		})
	}
}

// While its hold lasts, the asker is nominated to the node. The nomination must not block
// other pods once the hold is over, in particular if the asker has no scheduling cycle
// any more.
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
		story(t, []string{"a"}, func(t *testing.T, o *office) {
			w := deleteFor("a")
			o.books.plan(w)
			pass(time.Second)
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
			o.books.queue(release(w, c.ended, timedOut))
			pass(time.Second)
			expect.Same(t, c.name+": nominated to", c.want, o.cluster.get("a").Status.NominatedNodeName)
		})
	}
}

var timedOut = reasons.New(reasons.HoldTimedOut, "node n1: 10m")

func TestReleaseForADeletedAsker(t *testing.T) {
	for name, change := range waysToGo("a") {
		story(t, []string{"a"}, func(t *testing.T, o *office) {
			change(o.cluster)
			o.books.queue(release(deleteFor("a"), reservations.TimedOut, timedOut))
			pass(time.Minute)
			if p := o.cluster.get("a"); p != nil && len(p.Status.Conditions) > 0 || len(o.cluster.events()) > 0 || len(o.cluster.story()) > 1 {
				t.Errorf("%s: calls %v, events %q", name, o.cluster.story(), o.cluster.events())
			}
		})
	}
}

// TestAReleaseIsNotForgotten: neither failures nor the loss of the lease drop a release.
func TestAReleaseIsNotForgotten(t *testing.T) {
	story(t, []string{"a"}, func(t *testing.T, o *office) {
		o.cluster.fail(on("patch", "a", errors.New("reset")))
		o.books.queue(release(deleteFor("a"), reservations.TimedOut, timedOut))
		pass(time.Hour)
		o.leading.Store(false)
		o.cluster.fail(nil)
		before := len(o.cluster.made())
		pass(time.Hour)
		if len(o.cluster.made()) != before || len(o.cluster.events()) > 0 {
			t.Errorf("a standby made %d calls", len(o.cluster.made())-before)
		}
		o.leading.Store(true)
		pass(time.Second)
		if c := o.cluster.condition("a", reservations.HeldCondition); c.Status != corev1.ConditionFalse || len(o.cluster.events()) != 1 {
			t.Errorf("%+v, events %q", c, o.cluster.events())
		}
	})
}

// TestAReleaseThatIsLate: a late release does not withdraw the claim of a later hold.
func TestAReleaseThatIsLate(t *testing.T) {
	story(t, []string{"a"}, func(t *testing.T, o *office) {
		first := deleteFor("a", "v1")
		pass(time.Second)
		second := deleteFor("a", "v2")
		o.cluster.update("a", func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, heldCondition(second.Hold.Claim()))
		})
		o.books.queue(release(first, reservations.TimedOut, timedOut))
		pass(time.Minute)
		if c := o.cluster.condition("a", reservations.HeldCondition); c.Status != corev1.ConditionTrue || len(o.cluster.events()) > 0 {
			t.Errorf("%+v, events %q", c, o.cluster.events())
		}
		o.books.queue(release(second, reservations.TimedOut, timedOut))
		pass(time.Minute)
		if c := o.cluster.condition("a", reservations.HeldCondition); c.Status != corev1.ConditionFalse {
			t.Errorf("%+v", c)
		}
	})
}

func TestAReleaseThatIsRefused(t *testing.T) {
	for name, err := range lasting() {
		story(t, []string{"a"}, func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "a", err))
			o.books.queue(release(deleteFor("a"), reservations.TimedOut, timedOut))
			pass(time.Hour)
			if len(o.cluster.story()) != 1 || !strings.Contains(o.log(), "Cannot take back the claim") || !strings.Contains(o.log(), `pod="ns/a"`) {
				t.Errorf("%s: calls %v\n%s", name, o.cluster.story(), o.log())
			}
		})
	}
}

// TestWhatAConflictMeans: after a conflict the pod that has the name is read.
func TestWhatAConflictMeans(t *testing.T) {
	story(t, []string{"a"}, func(t *testing.T, o *office) {
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
			{"no pod", refOf("b"), conflict, nil, errGone},
			{"unknown", refOf("a"), conflict, lost, lost},
			{"no conflict", objects.Ref{UID: "other", Namespace: "ns", Name: "a"}, lost, nil, lost},
		} {
			o.cluster.fail(on("get", "a", c.lookup))
			if got := o.orGone(t.Context(), c.ref, c.err); !errors.Is(got, c.want) {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
			}
		}
	})
}
