package evict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/internal/apianswer"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

const (
	done = "committed [uid-a], deleted [uid-a], failed 0"
	// doneLate is that of a plan with marks that took more than one try.
	doneLate = "committed [uid-a uid-a], deleted [uid-a], failed 0"
)

// TestFailuresThatPass: transient failures of the mark and of the delete, with and
// without effect.
func TestFailuresThatPass(t *testing.T) {
	for name, err := range transient() {
		for _, verb := range []string{"patch", "delete"} {
			for _, late := range []bool{false, true} {
				if late && apierrors.IsConflict(err) {
					continue // a conflict has no effect
				}
				name := fmt.Sprintf("%s/%s/late=%t", name, verb, late)
				storyOf(t, name, []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
					o.cluster.fail(first(3, fault{err: err, late: late}, func(c call) bool {
						return c.verb == verb && c.pod == "v1"
					}))
					o.books.plan(deleteFor("a", "v1", "v2"), victimsOf("a", "v1", "v2")...)
					pass(10 * time.Second)
					o.expectGone(t, "v1", "v2")
					o.expect(t, map[string]string{"patch": doneLate, "delete": done}[verb])
					if told := o.cluster.events(); len(told) != 3 {
						t.Errorf("events %q; want one on each of the three", told)
					}
				})
			}
		}
	}
}

// TestVictimsThatAreGone: they count as success, and no event claims that we deleted
// them.
func TestVictimsThatAreGone(t *testing.T) {
	ways := waysToGo("v1")
	for _, name := range []string{"deleted", "replaced"} {
		change := ways[name]
		ways[name+" between mark and delete"] = func(c *cluster) {
			c.fail(atEachDelete(func() { change(c) }))
		}
	}
	for name, change := range ways {
		storyOf(t, name, []string{"a", "v1"}, func(t *testing.T, o *office) {
			change(o.cluster)
			o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
			pass(time.Second)
			o.expect(t, done)
			if p := o.cluster.get("v1"); p != nil && p.UID == "another" && p.DeletionTimestamp != nil {
				t.Error("another pod of the same name was deleted")
			}
			if told := o.cluster.events(); len(told) != 1 {
				t.Errorf("events %q; want that on the asker only", told)
			}
			if got := o.cluster.story(); !strings.Contains(name, " ") && len(got) != 1 {
				t.Errorf("calls %v; want the claim only, for it was seen that the victim is gone", got)
			}
		})
	}
}

// mostGrace is the cap of TestGraceIsCapped, in seconds.
const mostGrace = 300

// TestGraceIsCapped: a delete shortens the grace period of a pod if it is longer than
// victims may have, and keeps that of others.
func TestGraceIsCapped(t *testing.T) {
	story(t, []string{"a", "v1", "v2", "v3"}, func(t *testing.T, o *office) {
		for name, own := range map[string]int64{"v1": 365 * 24 * 3600, "v2": mostGrace, "v3": 10} {
			o.cluster.update(name, func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &own })
		}
		going := victimsOf("a", "v1", "v2", "v3")
		for i := range going {
			going[i].Grace = mostGrace * time.Second
		}
		o.books.plan(deleteFor("a", "v1", "v2", "v3"), going...)
		pass(time.Second)
		o.expectGone(t, "v1", "v2", "v3")
		for _, c := range o.cluster.made() {
			if want := map[string]int64{"v1": mostGrace, "v2": mostGrace, "v3": 10}; c.verb == "delete" && (c.grace == nil || *c.grace != want[c.pod]) {
				t.Errorf("%s: grace %v", c, c.grace)
			}
		}
	})
}

// setDeleted has a pod being deleted with a grace period, and gives it one of its own.
func (c *cluster) setDeleted(name string, grace, own int64) {
	c.update(name, func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Duration(grace) * time.Second)}
		p.DeletionGracePeriodSeconds, p.Spec.TerminationGracePeriodSeconds = &grace, &own
	})
}

// TestALongerGraceIsShortened: a victim that is being deleted already is deleted again if
// that shortens its grace period. A pod that is leaving is left alone.
func TestALongerGraceIsShortened(t *testing.T) {
	const year = 365 * 24 * 3600
	story(t, []string{"a", "v1", "v2", "v3", "v4", "v5"}, func(t *testing.T, o *office) {
		o.cluster.graceful = true
		o.cluster.setDeleted("v1", year, 30)
		o.cluster.setDeleted("v2", 30, 30)
		o.cluster.setDeleted("v3", 1, 30)
		o.cluster.setDeleted("v4", year, year)
		going := victimsOf("a", "v1", "v2", "v3", "v4", "v5")
		going[3].Grace = mostGrace * time.Second
		o.books.plan(deleteFor("a", "v1", "v2", "v3", "v4", "v5"), going...)
		pass(time.Hour)
		o.expect(t, done)
		o.expectGone(t, "v1", "v2", "v3", "v4", "v5")
		if got := o.cluster.story(); len(got) != 7 {
			t.Errorf("calls %v; want the claim, and a mark and a delete of v1, v4 and v5", got)
		}
		var deletes []string
		for _, c := range o.cluster.made() {
			if c.verb == "delete" && c.grace != nil {
				deletes = append(deletes, fmt.Sprint(c.pod, " within ", *c.grace))
			}
		}
		expect.Same(t, "deletes", []string{"v1 within 30", "v4 within 300"}, deletes)
	})
}

// TestAPodThatIsNotShortenedIsSpared: the mark is cleared on a pod that its owner deletes
// with a long grace period, if our delete fails.
func TestAPodThatIsNotShortenedIsSpared(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		o.cluster.setDeleted("v1", 365*24*3600, 30)
		o.cluster.fail(on("delete", "v1", lasting()["forbidden"]))
		o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
		pass(time.Second)
		if c := o.cluster.condition("v1", corev1.DisruptionTarget); c.Status != corev1.ConditionFalse || c.Reason != sparedReason {
			t.Errorf("v1: %+v", c)
		}
	})
}

// TestAFinalFailureIsRolledBack: no victim was deleted, so none will be, and all marks
// are cleared.
func TestAFinalFailureIsRolledBack(t *testing.T) {
	for name, err := range lasting() {
		for _, verb := range []string{"patch", "delete"} {
			if verb == "patch" && apianswer.TooLarge(err) {
				continue // TestAVictimTooLargeForTheMark
			}
			storyOf(t, name+"/"+verb, []string{"a", "v1", "v2", "v3"}, func(t *testing.T, o *office) {
				o.cluster.fail(when(fault{err: err}, func(c call) bool {
					return c.verb == verb && strings.HasPrefix(c.pod, "v") && c.condition.Status != corev1.ConditionFalse
				}))
				o.books.plan(deleteFor("a", "v1", "v2", "v3"), victimsOf("a", "v1", "v2", "v3")...)
				pass(time.Second)
				o.expectGone(t)
				o.expect(t, "committed [uid-a], deleted [], failed 1")
				if why := o.books.failed[0]; !strings.Contains(why, "of queue root.b does not go") || !strings.Contains(why, "pod ns/v") ||
					!strings.Contains(why, err.Error()) || !strings.Contains(why, "of 3 pods that were to go 3 stay") {
					t.Errorf("given up because %q", why)
				}
				o.expectSpared(t, "v1", "v2", "v3")
				held := o.cluster.condition("a", reservations.HeldCondition)
				if held.Status != corev1.ConditionFalse || held.Reason != "HoldGivenUp" || !strings.Contains(held.Message, err.Error()) {
					t.Errorf("the claim: %+v", held)
				}
			})
		}
	}
}

// TestAllAreMarkedBeforeOneGoes: while the mark of one victim fails, no other victim is
// deleted. If it fails for good, all stay.
func TestAllAreMarkedBeforeOneGoes(t *testing.T) {
	for _, last := range []bool{false, true} {
		story(t, []string{"a", "v1", "v2", "v3"}, func(t *testing.T, o *office) {
			failing := func(err error) func(int, call) fault {
				return when(fault{err: err}, func(c call) bool {
					return c.verb == "patch" && c.pod == "v2" && c.condition.Status == corev1.ConditionTrue
				})
			}
			o.cluster.fail(failing(transient()["unavailable"]))
			o.books.plan(deleteFor("a", "v1", "v2", "v3"), victimsOf("a", "v1", "v2", "v3")...)
			pass(20 * time.Second)
			o.expectGone(t)
			if !last {
				o.cluster.fail(nil)
				pass(5 * time.Second)
				o.expectGone(t, "v1", "v2", "v3")
				o.expect(t, doneLate)
				return
			}
			o.cluster.fail(failing(lasting()["forbidden"]))
			pass(5 * time.Second)
			o.expectGone(t)
			o.expect(t, "committed [uid-a], deleted [], failed 1")
			o.expectSpared(t, "v1", "v2", "v3")
		})
	}
}

// TestAMarkThatIsRefusedForAWhile: the plan is tried on, because one of its victims ended by
// itself. Once the mark is accepted, that of the next victim is refused: no pod is deleted.
func TestAMarkThatIsRefusedForAWhile(t *testing.T) {
	story(t, []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
		o.cluster.fail(on("patch", "v1", lasting()["forbidden"]))
		o.books.plan(deleteFor("a", "v0", "v1", "v2"), victimsOf("a", "v1", "v2")...)
		pass(20 * time.Second)
		o.cluster.fail(on("patch", "v2", lasting()["forbidden"]))
		pass(3 * time.Minute)
		o.expectGone(t)
		o.expectSpared(t, "v1", "v2")
		expect.Same(t, "undeletable", []types.UID{"uid-v2"}, o.books.undeletable)
	})
}

// TestLateMarksAreJudgedAgain: where the marks took more than one try, the store judges the
// plan again before the first delete.
func TestLateMarksAreJudgedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		happens    func(o *office)
		gone, left []string
		want       string
	}{
		"lawful": {func(*office) {}, []string{"v1", "v2"}, nil, doneLate},
		"unlawful": {func(o *office) { o.books.off = reasons.New(reasons.HoldGivenUp, "things changed") },
			nil, []string{"v1", "v2"}, "committed [uid-a uid-a], deleted [], failed 0"},
		"a victim ended": {func(o *office) {
			o.cluster.remove("v1")
			o.books.going["uid-a"] = victimsOf("a", "v2")
		}, []string{"v1", "v2"}, nil, doneLate},
		"a victim stays": {func(o *office) { o.books.going["uid-a"] = victimsOf("a", "v2") },
			[]string{"v2"}, []string{"v1"}, "committed [uid-a uid-a uid-a], deleted [uid-a], failed 0"},
	} {
		storyOf(t, name, []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "v2", transient()["unavailable"]))
			o.books.plan(deleteFor("a", "v1", "v2"), victimsOf("a", "v1", "v2")...)
			pass(10 * time.Second)
			c.happens(o)
			o.cluster.fail(nil)
			pass(10 * time.Second)
			o.expectGone(t, c.gone...)
			o.expect(t, c.want)
			o.expectSpared(t, c.left...)
		})
	}
}

// TestTheVictimThatFailsIsNamed: not one that failed before.
func TestTheVictimThatFailsIsNamed(t *testing.T) {
	story(t, []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
		tries := 0
		o.cluster.fail(when(fault{err: transient()["unavailable"]}, func(c call) bool {
			tries++
			return c.condition.Status == corev1.ConditionTrue && (c.pod == "v1" && tries < 5 || c.pod == "v2")
		}))
		o.books.plan(deleteFor("a", "v1", "v2"), victimsOf("a", "v1", "v2")...)
		pass(time.Minute)
		if why := o.books.failed; len(why) != 1 || !strings.Contains(why[0], "pod ns/v2 ") {
			t.Errorf("given up because %q", why)
		}
	})
}

// TestAVictimTooLargeForTheMark: it is deleted without the mark, and with its own grace
// period.
func TestAVictimTooLargeForTheMark(t *testing.T) {
	for _, name := range []string{"too large", "no room"} {
		story(t, []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "v1", lasting()[name]))
			o.books.plan(deleteFor("a", "v1", "v2"), victimsOf("a", "v1", "v2")...)
			pass(time.Second)
			o.expectGone(t, "v1", "v2")
			o.expect(t, done)
			if tries := slices.DeleteFunc(o.cluster.story(), func(c string) bool { return !strings.HasPrefix(c, "patch v1") }); len(tries) != 1 {
				t.Errorf("%s: %v", name, o.cluster.story())
			}
			if !strings.Contains(o.log(), "without a mark") {
				t.Errorf("%s: the log is silent:\n%s", name, o.log())
			}
		})
	}
}

// TestAVictimTooLargeToBeDeleted: the plan is given up at once, no other victim goes, and
// people are told what helps. The pod is not deleted without a grace period.
func TestAVictimTooLargeToBeDeleted(t *testing.T) {
	story(t, []string{"a", "v1", "v2", "v3"}, func(t *testing.T, o *office) {
		o.cluster.fail(when(fault{err: beyondEtcd()}, func(c call) bool { return c.pod == "v1" }))
		o.books.plan(deleteFor("a", "v1", "v2", "v3"), victimsOf("a", "v1", "v2", "v3")...)
		pass(time.Second)
		o.expectGone(t)
		o.expect(t, "committed [uid-a], deleted [], failed 1")
		o.expectSpared(t, "v1", "v2", "v3")
		if why := o.books.failed[0]; !strings.Contains(why, "request is too large") || !strings.Contains(why, "shorten its annotations") {
			t.Errorf("given up because %q", why)
		}
		expect.Same(t, "undeletable", []types.UID{"uid-v1"}, o.books.undeletable)
		if strings.Contains(o.log(), "Cannot clear the mark") {
			t.Errorf("the log has a mark that was never written:\n%s", o.log())
		}
	})
}

// expectSpared checks that none of the victims is marked.
func (o *office) expectSpared(t *testing.T, names ...string) {
	t.Helper()
	for _, n := range names {
		if c := o.cluster.condition(n, corev1.DisruptionTarget); c.Status == corev1.ConditionTrue {
			t.Errorf("%s is there and marked: %+v", n, c)
		}
	}
}

// TestAFinalFailureStopsTheOthers: it stops the victims that are not terminating yet.
func TestAFinalFailureStopsTheOthers(t *testing.T) {
	names := []string{"v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8"}
	story(t, append([]string{"a"}, names...), func(t *testing.T, o *office) {
		o.cluster.fail(first(1, fault{err: lasting()["forbidden"]}, func(c call) bool { return c.verb == "delete" }))
		o.books.plan(deleteFor("a", names...), victimsOf("a", names...)...)
		pass(90 * time.Millisecond)
		if n := len(o.cluster.gone()); n > 1 {
			t.Errorf("%d went after a delete was refused, %v", n, o.cluster.story())
		}
	})
}

// halfDone is a story in which v1 is deleted first and v2 is refused.
func halfDone(t *testing.T, then func(t *testing.T, o *office)) {
	names := []string{"v1", "v2", "v3", "v4"}
	story(t, append([]string{"a"}, names...), func(t *testing.T, o *office) {
		deletes := 0
		o.cluster.fail(func(_ int, c call) fault {
			switch {
			case c.verb != "delete":
				return fault{}
			case c.pod == "v2":
				return fault{err: lasting()["forbidden"]}
			case deletes > 0:
				return fault{err: apierrors.NewServiceUnavailable("starting")}
			}
			deletes++
			return fault{}
		})
		o.books.plan(deleteFor("a", names...), victimsOf("a", names...)...)
		pass(time.Minute)
		if gone := o.cluster.gone(); len(gone) != 1 || len(o.books.failed) > 0 {
			t.Fatalf("gone %v, %s", gone, o.books.outcome())
		}
		// The store knows of the refusal before the hold ends, because another plan may
		// choose the victim at that moment.
		expect.Same(t, "undeletable", []types.UID{"uid-v2"}, o.books.undeletable)
		then(t, o)
	})
}

func TestAHalfDonePlanIsCompleted(t *testing.T) {
	halfDone(t, func(t *testing.T, o *office) {
		o.cluster.fail(nil)
		pass(20 * time.Second)
		o.expectGone(t, "v1", "v2", "v3", "v4")
		o.expect(t, done)
	})
}

// TestAHalfDonePlanIsGivenUp: it is given up after two minutes, and the marks of the
// victims that stay are cleared. Once a victim was refused, the others are not touched,
// even if that victim later fails in another way.
func TestAHalfDonePlanIsGivenUp(t *testing.T) {
	halfDone(t, func(t *testing.T, o *office) {
		before := o.cluster.gone()
		tries := 0
		o.cluster.fail(func(_ int, c call) fault {
			if c.verb == "delete" && c.pod == "v2" {
				tries++
				return fault{err: errors.New("reset")}
			}
			return fault{}
		})
		pass(70 * time.Second)
		o.expect(t, "committed [uid-a], deleted [], failed 1")
		if got := o.cluster.gone(); !slices.Equal(got, before) || tries < 5 {
			t.Errorf("gone %v, before %v; %d tries", got, before, tries)
		}
		if why := o.books.failed[0]; !strings.Contains(why, "pod ns/v2 of queue root.b") || !strings.Contains(why, "of 4 pods that were to go 3 stay") {
			t.Errorf("given up because %q", why)
		}
		o.expectSpared(t, "v3", "v4")
		stuck := slices.DeleteFunc(o.cluster.events(), func(e string) bool { return !strings.Contains(e, " MakingRoom Preempting: Pod ") })
		if len(stuck) != 1 || !strings.Contains(stuck[0], "Pod ns/v2 of queue root.b") || !strings.Contains(stuck[0], "then the plan is given up") {
			t.Errorf("while it was tried on, people were told %q", stuck)
		}
	})
}

// TestMarksAreClearedBeforeFailPlan: marks are cleared before FailPlan, because after it another plan
// may have chosen the pod.
func TestMarksAreClearedBeforeFailPlan(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		o.cluster.fail(func(_ int, c call) fault {
			if c.condition.Reason == sparedReason {
				return fault{err: errors.New("reset")}
			}
			return on("delete", "v1", lasting()["forbidden"])(0, c)
		})
		o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
		pass(20 * time.Second)
		o.expect(t, "committed [uid-a], deleted [], failed 0")
		pass(20 * time.Second)
		o.expect(t, "committed [uid-a], deleted [], failed 1")
		if !strings.Contains(o.log(), "Cannot clear the mark") {
			t.Errorf("the log is silent:\n%s", o.log())
		}
	})
}

// TestMarksOfAnEarlierProcess: they are cleared, too. A pod that has no mark is not touched.
func TestMarksOfAnEarlierProcess(t *testing.T) {
	story(t, []string{"a", "v1", "v2", "v3"}, func(t *testing.T, o *office) {
		for _, name := range []string{"v1", "v2"} {
			o.cluster.update(name, func(p *corev1.Pod) {
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
					Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler, Message: "goes for ns/a"})
			})
		}
		o.cluster.fail(on("patch", "v3", lasting()["forbidden"]))
		o.books.plan(deleteFor("a", "v1", "v2", "v3"), victimsOf("a", "v1", "v2", "v3")...)
		pass(time.Second)
		o.expectSpared(t, "v1", "v2", "v3")
		for _, call := range o.cluster.story() {
			if strings.HasPrefix(call, "patch v3 DisruptionTarget=False") || strings.HasSuffix(call, "DisruptionTarget=True PreemptionByScheduler") {
				t.Errorf("%s, in %v", call, o.cluster.story())
			}
		}
		o.cluster.forget() // the victims were not marked by this process
	})
}

func TestAnEndlessFailureIsRolledBack(t *testing.T) {
	story(t, []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
		o.cluster.fail(when(fault{err: transient()["unavailable"]}, func(c call) bool { return c.verb == "delete" }))
		o.books.plan(deleteFor("a", "v1", "v2"), victimsOf("a", "v1", "v2")...)
		pass(29 * time.Second)
		o.expect(t, "committed [uid-a], deleted [], failed 0")
		pass(7 * time.Second)
		o.expectGone(t)
		o.expect(t, "committed [uid-a], deleted [], failed 1")
		// The delete may have taken effect, so no event says that the pod stays.
		if c := o.cluster.condition("v1", corev1.DisruptionTarget); c.Status != corev1.ConditionTrue {
			t.Errorf("v1: %+v", c)
		}
	})
}

func TestPodInPermitIsRejected(t *testing.T) {
	story(t, []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
		var asked []string
		o.Reject = func(uid types.UID, message string) bool {
			asked = append(asked, string(uid)+" "+message)
			return uid == "uid-v1"
		}
		o.books.plan(deleteFor("a", "v1", "v2"), victimsOf("a", "v1", "v2")...)
		pass(time.Second)
		slices.Sort(asked)
		expect.Same(t, "asked", []string{"uid-v1 goes for ns/a"}, asked) // the other victim runs
		o.expectGone(t, "v2")
		o.expect(t, done)
		if c := o.cluster.condition("v1", corev1.DisruptionTarget); c.Type != "" || len(o.cluster.events()) != 3 {
			t.Errorf("v1: %+v, events %q", c, o.cluster.events())
		}
	}, func(o *office) { o.cluster.setNode("v1", "") })
}

// TestAPodThatLeftPermit: the pod is being bound and is not deleted, so the plan fails.
// If other victims were already deleted for the plan, it waits until the pod runs.
func TestAPodThatLeftPermit(t *testing.T) {
	unbound := func(name string) func(*office) {
		return func(o *office) {
			o.cluster.setNode(name, "")
			o.Reject = func(types.UID, string) bool { return false }
			o.InPermit = func() []types.UID { return []types.UID{"uid-x"} }
		}
	}
	storyOf(t, "first", []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
		o.books.plan(deleteFor("a", "v1", "v2"), victimsOf("a", "v1", "v2")...)
		pass(time.Minute)
		o.expectGone(t)
		o.expect(t, "committed [uid-a], deleted [], failed 1")
		if why := o.books.failed; !strings.Contains(why[0], "v1") || !strings.Contains(why[0], "is being bound") {
			t.Errorf("given up for %q", why)
		}
		if len(o.books.undeletable) > 0 {
			t.Errorf("undeletable: %v", o.books.undeletable)
		}
		expect.Same(t, "in Permit at the commit", []types.UID{"uid-x"}, o.books.inPermit)
		if c := o.cluster.condition("v1", corev1.DisruptionTarget); c.Type != "" {
			t.Errorf("v1: %+v", c)
		}
	}, unbound("v1"))
	storyOf(t, "first, and the asker can run there only", []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
		w := deleteFor("a", "v1", "v2")
		w.Hold.NodeBound = true
		o.books.plan(w, victimsOf("a", "v1", "v2")...)
		pass(time.Minute)
		o.expectGone(t)
		o.expect(t, "committed [uid-a], deleted [], failed 0")
		if why := o.books.calledOff; len(why) != 1 || !strings.Contains(why[0], "uid-a: ") || !strings.Contains(why[0], "is being bound") {
			t.Errorf("called off for %q", why)
		}
	}, unbound("v1"))
	storyOf(t, "last, and its delete times out", []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
		o.cluster.fail(on("delete", "v2", transient()["time-out"]))
		o.books.plan(deleteFor("a", "v1", "v2"), victimsOf("a", "v1", "v2")...)
		pass(3 * time.Second)
		o.expectGone(t, "v1")
		o.cluster.setNode("v2", "n1")
		pass(3 * time.Minute)
		o.expect(t, "committed [uid-a], deleted [], failed 1")
		if len(o.books.undeletable) > 0 {
			t.Errorf("undeletable: %v", o.books.undeletable)
		}
	}, unbound("v2"))
	storyOf(t, "last", []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
		o.books.plan(deleteFor("a", "v1", "v2"), victimsOf("a", "v1", "v2")...)
		pass(3 * time.Second)
		o.expectGone(t, "v1")
		o.cluster.setNode("v2", "n1")
		pass(10 * time.Second)
		o.expectGone(t, "v1", "v2")
		o.expect(t, done)
	}, unbound("v2"))
}

// TestNoFurtherVictimGoes: no further victim is deleted once the asker no longer waits.
func TestNoFurtherVictimGoes(t *testing.T) {
	bound := release(deleteFor("a"), reservations.Bound, reasons.Reason{})
	for _, c := range []struct {
		name    string
		happens func(o *office)
		want    string
	}{
		{"the asker was bound", func(o *office) { o.books.queue(bound) }, "committed [uid-a], deleted [], failed 0"},
		{"the asker was deleted", func(o *office) { o.cluster.remove("a") }, "committed [uid-a], deleted [], failed 1"},
	} {
		storyOf(t, c.name, []string{"a", "v1", "v2", "v3"}, func(t *testing.T, o *office) {
			o.cluster.latency = time.Second
			deletes := 0
			o.cluster.fail(atEachDelete(func() {
				if deletes++; deletes == 1 {
					c.happens(o)
				}
			}))
			o.books.plan(deleteFor("a", "v1", "v2", "v3"), victimsOf("a", "v1", "v2", "v3")...)
			pass(time.Minute)
			if deletes != 1 {
				t.Errorf("%d deletes: %v", deletes, o.cluster.story())
			}
			o.expect(t, c.want)
			o.expectSpared(t, "v1", "v2", "v3")
		})
	}
}

// TestAHoldThatIsOverBeforeItsTurn: no pod is disrupted for it.
func TestAHoldThatIsOverBeforeItsTurn(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		w := deleteFor("a", "v1")
		o.books.going[w.UID] = victimsOf("a", "v1")
		o.books.queue(w, release(w, reservations.NodeGone, reasons.New(reasons.HoldNodeGone, "node n1: deleted")))
		pass(time.Minute)
		o.expectGone(t)
		o.expect(t, "committed [], deleted [], failed 0")
		if c := o.cluster.condition("a", reservations.HeldCondition); c.Status != corev1.ConditionFalse || c.Reason != "HoldNodeGone" {
			t.Errorf("%+v", c)
		}
	})
}

// TestAHoldThatEndsWithItsLastVictim: the store is told, and events name the victims that
// were deleted for the asker, although it runs by then.
func TestAHoldThatEndsWithItsLastVictim(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		w := deleteFor("a", "v1")
		o.cluster.latency = 5 * time.Second / 2
		o.cluster.fail(atEachDelete(func() { o.books.queue(release(w, reservations.Bound, reasons.Reason{})) }))
		o.books.plan(w, victimsOf("a", "v1")...)
		pass(time.Minute)
		o.expectGone(t, "v1")
		o.expect(t, "committed [uid-a], deleted [], failed 0")
		expect.Same(t, "events", []string{
			"yunikorn: v1 Normal Preempted Preempting: goes for ns/a [a]",
			"yunikorn: a Normal MakingRoom Preempting: The pod holds node n1. To make room 1 pod leaves. Of queue root.b: ns/v1.",
		}, o.cluster.events())
	})
}

// TestAHoldWithoutVictimsThatIsOver: no event says that an asker waits for capacity once
// it no longer does.
func TestAHoldWithoutVictimsThatIsOver(t *testing.T) {
	story(t, []string{"a"}, func(t *testing.T, o *office) {
		w := deleteFor("a")
		o.books.committing = func() {
			o.books.queue(release(w, reservations.Bound, reasons.Reason{}))
			pass(time.Second)
		}
		o.books.plan(w)
		pass(time.Minute)
		o.expect(t, "committed [uid-a], deleted [], failed 0")
		if told := o.cluster.events(); len(told) > 0 {
			t.Errorf("events %q", told)
		}
	})
}

// TestAHoldThatEndsBeforeItsClaim: the executor does not call FailPlan, which could end the
// asker's next hold.
func TestAHoldThatEndsBeforeItsClaim(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		w := deleteFor("a", "v1")
		o.cluster.fail(on("patch", "a", errors.New("reset")))
		o.books.plan(w, victimsOf("a", "v1")...)
		pass(10 * time.Second)
		o.books.queue(release(w, reservations.NodeGone, reasons.New(reasons.HoldNodeGone, "node n1: deleted")))
		pass(time.Minute)
		o.expect(t, "committed [], deleted [], failed 0")
	})
}

// TestAPlanThatIsReplaced: while victims cannot be marked, other victims are chosen for
// the same hold. The later plan is carried out at once. A victim that it leaves out stays,
// and loses its mark.
func TestAPlanThatIsReplaced(t *testing.T) {
	story(t, []string{"a", "v1", "v2", "v3"}, func(t *testing.T, o *office) {
		o.cluster.fail(when(fault{err: errors.New("reset"), late: true}, func(c call) bool {
			return strings.HasPrefix(c.pod, "v") && c.condition.Status == corev1.ConditionTrue
		}))
		first := deleteFor("a", "v1", "v2")
		first.Hold.Decision = "1"
		second := deleteFor("a", "v2", "v3")
		second.Hold.Decision = "2"
		o.cluster.unseen["v1"], o.cluster.unseen["v2"] = o.cluster.get("v1"), o.cluster.get("v2")
		o.books.plan(first, victimsOf("a", "v1", "v2")...)
		pass(20 * time.Second)
		o.cluster.fail(nil)
		o.books.plan(second, victimsOf("a", "v2", "v3")...)
		pass(100 * time.Millisecond)
		o.expectGone(t, "v2", "v3")
		o.expect(t, "committed [uid-a uid-a], deleted [uid-a], failed 0")
		if c := o.cluster.condition("v1", corev1.DisruptionTarget); c.Status != corev1.ConditionFalse {
			t.Errorf("v1 stays and has the mark %+v", c)
		}
		if c := o.cluster.condition("v2", corev1.DisruptionTarget); c.Status == corev1.ConditionFalse {
			t.Errorf("v2, which both plans chose, lost its mark: %+v", c)
		}
		o.cluster.forget() // marks that took effect although they failed
	})
}
