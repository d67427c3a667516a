package evict

import (
	"errors"
	"fmt"
	"os"
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

// forTransient runs a test for each transient failure of a call, with and without effect.
func forTransient(t *testing.T, test func(t *testing.T, f fault)) {
	for name, err := range transient() {
		for _, late := range []bool{false, true} {
			if late && apierrors.IsConflict(err) {
				continue // a conflict has no effect
			}
			t.Run(fmt.Sprintf("%s/late=%t", name, late), func(t *testing.T) {
				test(t, fault{err: err, late: late})
			})
		}
	}
}

// TestFailuresThatPass: transient failures of the mark and of the delete.
func TestFailuresThatPass(t *testing.T) {
	forTransient(t, func(t *testing.T, f fault) {
		for verb, want := range map[string]string{"patch": doneLate, "delete": done} {
			storyOf(t, verb, func(t *testing.T, o *office) {
				o.cluster.fail(first(3, f, func(c call) bool { return c.verb == verb && c.pod == "v1" }))
				o.plan("a", "v1", "v2")
				o.expectAfter(t, 10*time.Second, want, "v1", "v2")
				o.expectEvents(t, 3) // one on each of the three
			})
		}
	})
}

// TestVictimsThatAreGone: they count as success, and no event claims that we deleted
// them. Another pod of the name stays.
func TestVictimsThatAreGone(t *testing.T) {
	ways := waysToGo("v1")
	for _, name := range []string{"deleted", "replaced"} {
		change := ways[name]
		ways[name+" between mark and delete"] = func(c *cluster) { c.fail(atEachDelete(func() { change(c) })) }
	}
	for name, change := range ways {
		storyOf(t, name, func(t *testing.T, o *office) {
			change(o.cluster)
			o.plan("a", "v1")
			o.expectAfter(t, time.Second, done, goneAfter(name, "v1")...)
			o.expectEvents(t, 1) // on the asker
			expect.That(t, strings.Contains(name, " ") || len(o.cluster.story()) == 1,
				"calls %v; want the claim only, for it was seen that the victim is gone", o.cluster.story())
		})
	}
}

// mostGrace is the cap of TestGraceIsCapped, in seconds.
const mostGrace = 300

// graces are the grace periods that deletes set, by pod.
func (c *cluster) graces() map[string]int64 {
	out := map[string]int64{}
	for _, made := range c.made() {
		if made.verb == "delete" && made.grace != nil {
			out[made.pod] = *made.grace
		}
	}
	return out
}

// TestGraceIsCapped: a delete shortens the grace period of a pod if it is longer than
// victims may have, and keeps that of others.
func TestGraceIsCapped(t *testing.T) {
	story(t, func(t *testing.T, o *office) {
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
		want := map[string]int64{"v1": mostGrace, "v2": mostGrace, "v3": 10}
		expect.Same(t, "grace periods", want, o.cluster.graces())
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
	story(t, func(t *testing.T, o *office) {
		o.cluster.graceful = true
		o.cluster.setDeleted("v1", year, 30)
		o.cluster.setDeleted("v2", 30, 30)
		o.cluster.setDeleted("v3", 1, 30)
		o.cluster.setDeleted("v4", year, year)
		going := victimsOf("a", "v1", "v2", "v3", "v4", "v5")
		going[3].Grace = mostGrace * time.Second
		o.books.plan(deleteFor("a", "v1", "v2", "v3", "v4", "v5"), going...)
		o.expectAfter(t, time.Hour, done, "v1", "v2", "v3", "v4", "v5")
		expect.That(t, len(o.cluster.story()) == 7,
			"calls %v; want the claim, and a mark and a delete of v1, v4 and v5", o.cluster.story())
		expect.Same(t, "grace periods", map[string]int64{"v1": 30, "v4": 300}, o.cluster.graces())
	})
}

func TestMarks(t *testing.T) {
	stories(t, map[string]func(*testing.T, *office){
		"a pod that its owner deletes slowly loses its mark if our delete fails": func(t *testing.T, o *office) {
			o.cluster.setDeleted("v1", 365*24*3600, 30)
			o.cluster.fail(on("delete", "v1", lasting()["forbidden"]))
			o.planAndPass(time.Second, "a", "v1")
			expect.Same(t, "the mark", "False "+sparedReason, o.cluster.mark("v1"))
		},
		"no pod goes while one mark after the other is refused": func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "v1", lasting()["forbidden"]))
			// v0 has ended by itself, so the plan is tried on.
			o.books.plan(deleteFor("a", "v0", "v1", "v2"), victimsOf("a", "v1", "v2")...)
			pass(20 * time.Second)
			o.cluster.fail(on("patch", "v2", lasting()["forbidden"]))
			pass(3 * time.Minute)
			o.expectGone(t)
			o.expectSpared(t, "v1", "v2")
			expect.Same(t, "undeletable", []types.UID{"uid-v2"}, o.books.undeletable)
		},
		"marks are cleared before FailPlan: after it another plan may have chosen the pod": func(t *testing.T, o *office) {
			o.cluster.fail(func(_ int, c call) fault {
				if c.condition.Reason == sparedReason {
					return fault{err: errors.New("reset")}
				}
				return on("delete", "v1", lasting()["forbidden"])(0, c)
			})
			o.plan("a", "v1")
			o.expectAfter(t, 20*time.Second, committed)
			o.expectAfter(t, 20*time.Second, planFailed)
			expect.Says(t, o.log(), "Cannot clear the mark")
		},
		"those of an earlier process are cleared, and a pod without a mark is not touched": func(t *testing.T, o *office) {
			for _, name := range []string{"v1", "v2"} {
				o.cluster.update(name, func(p *corev1.Pod) {
					p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
						Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler, Message: "goes for ns/a"})
				})
			}
			o.cluster.fail(on("patch", "v3", lasting()["forbidden"]))
			o.planAndPass(time.Second, "a", "v1", "v2", "v3")
			o.expectSpared(t, "v1", "v2", "v3")
			for _, call := range o.cluster.story() {
				touched := strings.HasPrefix(call, "patch v3 DisruptionTarget=False") || strings.HasSuffix(call, "=True PreemptionByScheduler")
				expect.That(t, !touched, "%s", call)
			}
			o.cluster.forget() // the victims were not marked by this process
		},
		"a pod whose delete may have taken effect keeps its mark": func(t *testing.T, o *office) {
			o.cluster.fail(when(fault{err: transient()["unavailable"]}, func(c call) bool { return c.verb == "delete" }))
			o.plan("a", "v1", "v2")
			o.expectAfter(t, 29*time.Second, committed)
			o.expectAfter(t, 7*time.Second, planFailed)
			// The delete may have taken effect, so no event says that the pod stays.
			expect.Same(t, "the mark", "True PreemptionByScheduler", o.cluster.mark("v1"))
		},
		"the victim whose mark fails is named, not one that failed before": func(t *testing.T, o *office) {
			tries := 0
			o.cluster.fail(when(fault{err: transient()["unavailable"]}, func(c call) bool {
				tries++
				return c.condition.Status == corev1.ConditionTrue && (c.pod == "v1" && tries < 5 || c.pod == "v2")
			}))
			o.planAndPass(time.Minute, "a", "v1", "v2")
			o.expectWhy(t, "pod ns/v2 ")
		},
	})
}

// TestAFinalFailureIsRolledBack: no victim was deleted, so none will be, and all marks are cleared.
func TestAFinalFailureIsRolledBack(t *testing.T) {
	for name, err := range lasting() {
		for _, verb := range []string{"patch", "delete"} {
			if verb == "patch" && apianswer.TooLarge(err) {
				continue // TestAVictimTooLargeForTheMark
			}
			storyOf(t, name+"/"+verb, func(t *testing.T, o *office) {
				o.cluster.fail(when(fault{err: err}, func(c call) bool {
					return c.verb == verb && strings.HasPrefix(c.pod, "v") && c.condition.Status != corev1.ConditionFalse
				}))
				o.plan("a", "v1", "v2", "v3")
				o.expectAfter(t, time.Second, planFailed)
				o.expectWhy(t, "pod ns/v", "of queue root.b does not go", err.Error(), "of 3 pods that were to go 3 stay")
				o.expectSpared(t, "v1", "v2", "v3")
				expect.Same(t, "the claim", "False HoldGivenUp", o.cluster.claim())
				expect.Says(t, o.cluster.condition("a", reservations.HeldCondition).Message, err.Error())
			})
		}
	}
}

// TestAllAreMarkedBeforeOneGoes: while the mark of one victim fails, no other victim is
// deleted. If it fails for good, all stay.
func TestAllAreMarkedBeforeOneGoes(t *testing.T) {
	for _, last := range []bool{false, true} {
		story(t, func(t *testing.T, o *office) {
			failing := func(err error) func(int, call) fault {
				return when(fault{err: err}, func(c call) bool {
					return c.verb == "patch" && c.pod == "v2" && c.condition.Status == corev1.ConditionTrue
				})
			}
			o.cluster.fail(failing(transient()["unavailable"]))
			o.planAndPass(20*time.Second, "a", "v1", "v2", "v3")
			o.expectGone(t)
			if !last {
				o.cluster.fail(nil)
				o.expectAfter(t, 5*time.Second, doneLate, "v1", "v2", "v3")
				return
			}
			o.cluster.fail(failing(lasting()["forbidden"]))
			o.expectAfter(t, 5*time.Second, planFailed)
			o.expectSpared(t, "v1", "v2", "v3")
		})
	}
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
		storyOf(t, name, func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "v2", transient()["unavailable"]))
			o.planAndPass(10*time.Second, "a", "v1", "v2")
			c.happens(o)
			o.cluster.fail(nil)
			o.expectAfter(t, 10*time.Second, c.want, c.gone...)
			o.expectSpared(t, c.left...)
		})
	}
}

// TestAVictimTooLargeForTheMark: it is deleted without the mark, and with its own grace period.
func TestAVictimTooLargeForTheMark(t *testing.T) {
	for _, name := range []string{"too large", "no room"} {
		storyOf(t, name, func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "v1", lasting()[name]))
			o.plan("a", "v1", "v2")
			o.expectAfter(t, time.Second, done, "v1", "v2")
			expect.Same(t, "tries of the mark", 1, strings.Count(strings.Join(o.cluster.story(), ","), "patch v1"))
			expect.Says(t, o.log(), "without a mark")
		})
	}
}

// TestAVictimTooLargeToBeDeleted: the plan is given up at once, no other victim goes, and
// people are told what helps. The pod is not deleted without a grace period.
func TestAVictimTooLargeToBeDeleted(t *testing.T) {
	story(t, func(t *testing.T, o *office) {
		o.cluster.fail(when(fault{err: beyondEtcd()}, func(c call) bool { return c.pod == "v1" }))
		o.plan("a", "v1", "v2", "v3")
		o.expectAfter(t, time.Second, planFailed)
		o.expectSpared(t, "v1", "v2", "v3")
		o.expectWhy(t, "request is too large", "shorten its annotations")
		expect.Same(t, "undeletable", []types.UID{"uid-v1"}, o.books.undeletable)
		expect.That(t, !strings.Contains(o.log(), "Cannot clear the mark"),
			"the log has a mark that was never written:\n%s", o.log())
	})
}

// TestAHalfDonePlan: v1 is deleted, and v2 is refused. Then the others are not touched, even
// if v2 later fails in another way.
func TestAHalfDonePlan(t *testing.T) {
	for name, then := range map[string]func(t *testing.T, o *office){
		"it is completed": func(t *testing.T, o *office) {
			o.cluster.fail(nil)
			o.expectAfter(t, 20*time.Second, done, "v1", "v2", "v3", "v4")
		},
		"it is given up after two minutes, and marks are cleared": func(t *testing.T, o *office) {
			tries := func() int { return strings.Count(fmt.Sprint(o.cluster.story()), "delete v2") }
			before := tries()
			o.cluster.fail(on("delete", "v2", errors.New("reset")))
			o.expectAfter(t, 70*time.Second, planFailed, "v1")
			expect.That(t, tries()-before >= 5, "%d tries", tries()-before)
			o.expectWhy(t, "pod ns/v2 of queue root.b", "of 4 pods that were to go 3 stay")
			o.expectSpared(t, "v3", "v4")
			told := fmt.Sprint(o.cluster.events())
			expect.Same(t, "events while it was tried on", 1, strings.Count(told, " MakingRoom Preempting: Pod "))
			expect.Says(t, told, " MakingRoom Preempting: Pod ns/v2 of queue root.b", "then the plan is given up")
		},
	} {
		storyOf(t, name, func(t *testing.T, o *office) {
			o.cluster.fail(on("delete", "v2", lasting()["forbidden"]))
			o.plan("a", "v1", "v2", "v3", "v4")
			o.expectAfter(t, time.Minute, committed, "v1")
			// The store knows of the refusal before the hold ends, because another plan may
			// choose the victim at that moment.
			expect.Same(t, "undeletable", []types.UID{"uid-v2"}, o.books.undeletable)
			then(t, o)
		})
	}
}

func TestVictimsInPermit(t *testing.T) {
	stories(t, map[string]func(*testing.T, *office){
		"a pod in Permit is rejected": func(t *testing.T, o *office) {
			o.cluster.setNode("v1", "")
			var asked []string
			o.Reject = func(uid types.UID, message string) bool {
				asked = append(asked, string(uid)+" "+message)
				return uid == "uid-v1"
			}
			o.plan("a", "v1", "v2")
			o.expectAfter(t, time.Second, done, "v2")
			expect.Same(t, "asked", []string{"uid-v1 goes for ns/a"}, asked) // the other victim runs
			expect.Same(t, "the mark", "", o.cluster.mark("v1"))
			o.expectEvents(t, 3)
		},
		"the plan fails if a pod that left Permit is being bound": func(t *testing.T, o *office) {
			o.leftPermit("v1")
			o.plan("a", "v1", "v2")
			o.expectAfter(t, time.Minute, planFailed)
			o.expectWhy(t, "v1", "is being bound")
			expect.Same(t, "undeletable", 0, len(o.books.undeletable))
			expect.Same(t, "in Permit at the commit", []types.UID{"uid-x"}, o.books.inPermit)
			expect.Same(t, "the mark", "", o.cluster.mark("v1"))
		},
		"so it does if the asker can run there only": func(t *testing.T, o *office) {
			o.leftPermit("v1")
			w := deleteFor("a", "v1", "v2")
			w.Hold.NodeBound = true
			o.books.plan(w, victimsOf("a", "v1", "v2")...)
			o.expectAfter(t, time.Minute, committed)
			expect.Same(t, "plans that are off", 1, len(o.books.calledOff))
			expect.Says(t, strings.Join(o.books.calledOff, "\n"), "uid-a: ", "is being bound")
		},
		"it fails later if another victim was deleted, and the delete times out": func(t *testing.T, o *office) {
			o.leftPermit("v2")
			o.cluster.fail(on("delete", "v2", transient()["time-out"]))
			o.planAndPass(3*time.Second, "a", "v1", "v2")
			o.expectGone(t, "v1")
			o.cluster.setNode("v2", "n1")
			o.expectAfter(t, 3*time.Minute, planFailed, "v1")
			expect.Same(t, "undeletable", 0, len(o.books.undeletable))
		},
		"it waits until the pod runs if another victim was deleted": func(t *testing.T, o *office) {
			o.leftPermit("v2")
			o.planAndPass(3*time.Second, "a", "v1", "v2")
			o.expectGone(t, "v1")
			o.cluster.setNode("v2", "n1")
			o.expectAfter(t, 10*time.Second, done, "v1", "v2")
		},
	})
}

// leftPermit has a pod that left Permit and is being bound.
func (o *office) leftPermit(name string) {
	o.cluster.setNode(name, "")
	o.Reject = func(types.UID, string) bool { return false }
	o.InPermit = func() []types.UID { return []types.UID{"uid-x"} }
}

// TestNoFurtherVictimGoes: no further victim is deleted once the asker no longer waits.
func TestNoFurtherVictimGoes(t *testing.T) {
	for _, c := range []struct {
		name    string
		happens func(o *office)
		want    string
		gone    []string
	}{
		{"the asker was bound", func(o *office) { o.end(deleteFor("a"), reservations.Bound) }, committed, []string{"v1"}},
		{"the asker was deleted", func(o *office) { o.cluster.remove("a") }, planFailed, []string{"a", "v1"}},
	} {
		storyOf(t, c.name, func(t *testing.T, o *office) {
			o.cluster.latency = time.Second
			deletes := 0
			o.cluster.fail(atEachDelete(func() {
				if deletes++; deletes == 1 {
					c.happens(o)
				}
			}))
			o.plan("a", "v1", "v2", "v3")
			o.expectAfter(t, time.Minute, c.want, c.gone...)
			expect.Same(t, "deletes", 1, deletes)
			o.expectSpared(t, "v1", "v2", "v3")
		})
	}
}

func TestHoldsThatEnd(t *testing.T) {
	stories(t, map[string]func(*testing.T, *office){
		"no pod is disrupted for a hold that is over before its turn": func(t *testing.T, o *office) {
			w := deleteFor("a", "v1")
			o.books.going[w.UID] = victimsOf("a", "v1")
			o.books.queue(w, release(w, reservations.NodeGone, nodeGone))
			o.expectAfter(t, time.Minute, untouched)
			expect.Same(t, "the claim", "False HoldNodeGone", o.cluster.claim())
		},
		"events name the victims of an asker that runs by then": func(t *testing.T, o *office) {
			w := deleteFor("a", "v1")
			o.cluster.latency = 5 * time.Second / 2
			o.cluster.fail(atEachDelete(func() { o.end(w, reservations.Bound) }))
			o.books.plan(w, victimsOf("a", "v1")...)
			o.expectAfter(t, time.Minute, committed, "v1")
			expect.Same(t, "events", []string{
				"yunikorn: v1 Normal Preempted Preempting: goes for ns/a [a]",
				"yunikorn: a Normal MakingRoom Preempting: The pod holds node n1. To make room 1 pod leaves. Of queue root.b: ns/v1.",
			}, o.cluster.events())
		},
		"no event says that an asker waits once it no longer does": func(t *testing.T, o *office) {
			w := deleteFor("a")
			o.books.committing = func() {
				o.end(w, reservations.Bound)
				pass(time.Second)
			}
			o.books.plan(w)
			o.expectAfter(t, time.Minute, committed)
			o.expectEvents(t, 0)
		},
		"FailPlan, which could end the next hold, is not called for one that ended before its claim": func(t *testing.T, o *office) {
			o.cluster.fail(on("patch", "a", errors.New("reset")))
			w := o.planAndPass(10*time.Second, "a", "v1")
			o.end(w, reservations.NodeGone)
			o.expectAfter(t, time.Minute, untouched)
		},
	})
}

// TestCommentsDrawTheTables: the comments of the progress of a victim and of the stage of a
// plan show their tables.
func TestCommentsDrawTheTables(t *testing.T) {
	for file, want := range map[string]string{"victim.go": ofVictim.String(), "plan.go": ofPlan.String()} {
		expect.Says(t, string(expect.Get(os.ReadFile(file))(t)), "//\n"+want+"type ")
	}
}
