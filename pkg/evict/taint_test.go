package evict

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

const heldForA = reservations.HeldTaint + "=yunikorn.uid-a:NoSchedule"

func (o *office) expectTaints(t *testing.T, want ...string) {
	t.Helper()
	if got := o.cluster.nodes.taints("n1"); !slices.Equal(got, want) {
		t.Errorf("node n1 has taints %q, want %q\n%v", got, want, o.cluster.story())
	}
}

// writes returns the calls that changed a node or failed to.
func (o *office) writes() []string {
	var out []string
	for _, c := range o.cluster.made() {
		if writesNode(c) {
			out = append(out, c.String())
		}
	}
	return out
}

func (o *office) expectWrites(t *testing.T, want ...string) {
	t.Helper()
	expect.Same(t, "writes of nodes", want, o.writes())
}

func TestNodeIsTaintedBeforeCommit(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		committed := false
		o.books.committing = func() {
			committed = true
			o.expectTaints(t, heldForA)
			o.expectGone(t)
		}
		w := deleteFor("a", "v1")
		o.books.plan(w, victimsOf("a", "v1")...)
		pass(time.Second)
		if !committed {
			t.Error("the plan was not committed")
		}
		want := []string{
			"patch a paddock.io/NodeHeld=True MakingRoom", "taint yunikorn.uid-a n1",
			"patch v1 DisruptionTarget=True PreemptionByScheduler", "delete v1",
		}
		if got := o.cluster.story(); !slices.Equal(got, want) {
			t.Errorf("calls %v, want %v", got, want)
		}
		if shown := o.cluster.nodes.shown("n1"); len(shown) > 0 {
			t.Errorf("the filters of this process see %v", shown)
		}
		o.books.queue(release(w, reservations.Bound, reasons.Reason{}))
		pass(afterBound - 10*time.Millisecond)
		o.expectTaints(t, heldForA)
		pass(time.Second)
		o.expectTaints(t)
	}, taints(TaintIfAllowed))
}

func TestHoldsWithoutATaint(t *testing.T) {
	for name, policy := range map[string]TaintPolicy{"no victims": TaintAlways, "never": TaintNever} {
		storyOf(t, name, []string{"a", "v1"}, func(t *testing.T, o *office) {
			w := deleteFor("a")
			if policy == TaintNever {
				w = deleteFor("a", "v1")
			}
			o.books.plan(w, victimsOf("a", "v1")[:len(w.Hold.Chosen)]...)
			pass(time.Second)
			o.expect(t, done)
			o.books.queue(release(w, reservations.Bound, reasons.Reason{}))
			pass(time.Minute)
			o.expectWrites(t)
		}, taints(policy))
	}
}

// TestTheTaintGoesWithTheHold: whatever the reason for which the hold ends, before and
// after its victims are deleted.
func TestTheTaintGoesWithTheHold(t *testing.T) {
	for _, end := range []reservations.End{
		reservations.Bound, reservations.Deleted, reservations.Superseded, reservations.NodeGone,
		reservations.NodeUnschedulable, reservations.TimedOut, reservations.GivenUp,
	} {
		storyOf(t, string(end), []string{"a", "v1"}, func(t *testing.T, o *office) {
			w := deleteFor("a", "v1")
			o.books.plan(w, victimsOf("a", "v1")...)
			pass(time.Second)
			o.expectTaints(t, heldForA)
			if end == reservations.Deleted {
				o.cluster.remove("a")
			}
			o.books.queue(release(w, end, reasons.New(reasons.HoldTimedOut, "why")))
			pass(2 * time.Second)
			o.expectTaints(t)
			o.expectWrites(t, "taint yunikorn.uid-a n1", "untaint n1")
		}, taints(TaintIfAllowed))
	}
	for name, fails := range map[string]func(*office){
		"the laws refuse": func(o *office) { o.books.off = reasons.New(reasons.HoldGivenUp, "no") },
		"a victim stays":  func(o *office) { o.cluster.fail(on("delete", "v1", lasting()["forbidden"])) },
	} {
		storyOf(t, name, []string{"a", "v1"}, func(t *testing.T, o *office) {
			fails(o)
			w := deleteFor("a", "v1")
			o.books.plan(w, victimsOf("a", "v1")...)
			pass(time.Second)
			if !o.books.off.None() { // a store ends the hold itself
				o.books.queue(release(w, reservations.GivenUp, o.books.off))
			}
			pass(time.Second)
			o.expectTaints(t)
			o.expectWrites(t, "taint yunikorn.uid-a n1", "untaint n1")
		}, taints(TaintIfAllowed))
	}
}

// TestHoldsShareATaint: it is written once, and removed with the last hold.
func TestHoldsShareATaint(t *testing.T) {
	for _, blind := range []bool{false, true} {
		storyOf(t, fmt.Sprintf("blind=%t", blind), []string{"a", "b", "c", "v1", "v2", "v3"}, func(t *testing.T, o *office) {
			o.cluster.nodes.blind = blind // the informer is late
			a, b, c := deleteFor("a", "v1"), deleteFor("b", "v2"), deleteFor("c", "v3")
			o.books.plan(a, victimsOf("a", "v1")...)
			pass(10 * time.Millisecond)
			o.books.plan(b, victimsOf("b", "v2")...)
			pass(time.Second)
			o.books.queue(release(a, reservations.Bound, reasons.Reason{}))
			pass(afterBound / 2)
			o.books.plan(c, victimsOf("c", "v3")...)
			pass(2 * time.Second)
			o.expectTaints(t, heldForA)
			o.books.queue(release(c, reservations.TimedOut, reasons.New(reasons.HoldTimedOut, "late")))
			pass(2 * time.Second)
			o.expectTaints(t, heldForA)
			o.books.queue(release(b, reservations.Bound, reasons.Reason{}))
			pass(2 * time.Second)
			o.expectTaints(t)
			expect.Holds(t, keptOff(o.cluster.made()))
			if got := o.writes(); !blind && len(got) != 2 || len(got) > 4 { // a conflict for each write that is based on late data
				t.Errorf("writes %q", got)
			}
			o.cluster.forget() // three askers
		}, taints(TaintIfAllowed))
	}
}

// lateNodes lists nodes, and calls a function before each Get.
type lateNodes struct {
	corelisters.NodeLister
	before func()
}

func (l lateNodes) Get(name string) (*corev1.Node, error) {
	l.before()
	return l.NodeLister.Get(name)
}

// TestTheTaintStaysForAHoldThatComesBeforeItsRemoval: the next hold counts on the taint that
// is about to be removed.
func TestTheTaintStaysForAHoldThatComesBeforeItsRemoval(t *testing.T) {
	story(t, []string{"a", "b", "v1", "v2"}, func(t *testing.T, o *office) {
		a, b := deleteFor("a", "v1"), deleteFor("b", "v2")
		o.books.plan(a, victimsOf("a", "v1")...)
		pass(time.Second)
		nodes := o.Taints.nodes
		o.Taints.nodes = lateNodes{nodes, sync.OnceFunc(func() {
			o.books.plan(b, victimsOf("b", "v2")...)
			time.Sleep(10 * time.Millisecond)
		})}
		o.books.queue(release(a, reservations.Bound, reasons.Reason{}))
		pass(2 * time.Second)
		o.expectTaints(t, heldForA)
		o.expectWrites(t, "taint yunikorn.uid-a n1")
		o.books.queue(release(b, reservations.Bound, reasons.Reason{}))
		pass(2 * time.Second)
		o.expectTaints(t)
		o.cluster.forget() // two askers
	}, taints(TaintIfAllowed))
}

// TestOtherTaintsStay: another controller writes the list at the same time.
func TestOtherTaintsStay(t *testing.T) {
	disk := corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}
	gpu := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoExecute}
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		nodes := o.cluster.nodes
		nodes.update("n1", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{gpu} })
		nodes.blind = true
		nodes.update("n1", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{gpu, disk} })
		w := deleteFor("a", "v1")
		o.books.plan(w, victimsOf("a", "v1")...)
		pass(time.Second)
		o.expectTaints(t, "gpu=yes:NoExecute", "node.kubernetes.io/disk-pressure:NoSchedule", heldForA)
		nodes.update("n1", func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[1:] })
		o.books.queue(release(w, reservations.TimedOut, reasons.New(reasons.HoldTimedOut, "late")))
		pass(time.Second)
		o.expectTaints(t, "node.kubernetes.io/disk-pressure:NoSchedule")
	}, taints(TaintIfAllowed))
}

// TestATaintOfAnotherScheduler: the taint of another scheduler with these plugins is not
// ours. It is neither hidden nor removed, and no victim is deleted on its node.
func TestATaintOfAnotherScheduler(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		other := corev1.Taint{Key: reservations.HeldTaint, Value: "batch.uid-x", Effect: corev1.TaintEffectNoSchedule}
		o.cluster.nodes.update("n1", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{other} })
		expect.Same(t, "the filters see", []corev1.Taint{other}, o.cluster.nodes.shown("n1"))
		o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
		pass(time.Minute)
		o.expectTaints(t, other.ToString())
		o.expectGone(t)
		o.expect(t, "committed [], deleted [], failed 1")
		if why := o.books.failed; !strings.Contains(why[0], "another scheduler") {
			t.Errorf("why: %q", why)
		}
	}, taints(TaintIfAllowed))
}

// writesNode tells whether a call changes a node or tries to.
func writesNode(c call) bool { return c.node != "" && c.verb != "get" }

// refuses makes writes of nodes fail.
func refuses(err error) func(int, call) fault { return when(fault{err: err}, writesNode) }

func TestATaintThatIsRefused(t *testing.T) {
	for name, err := range lasting() {
		t.Run(name, func(t *testing.T) {
			story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
				o.cluster.fail(refuses(err))
				w := deleteFor("a", "v1")
				o.books.plan(w, victimsOf("a", "v1")...)
				pass(time.Second)
				o.expect(t, done)
				o.expectGone(t, "v1")
				o.books.queue(release(w, reservations.Bound, reasons.Reason{}))
				pass(time.Minute)
				o.expectWrites(t, "taint yunikorn.uid-a n1 failed")
				if n := strings.Count(o.log(), "Cannot taint a node that is held"); n != 1 {
					t.Errorf("told %d times\n%s", n, o.log())
				}
			}, taints(TaintIfAllowed))
			story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
				o.cluster.fail(refuses(err))
				o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
				pass(time.Second)
				o.expectGone(t)
				o.expect(t, "committed [], deleted [], failed 1")
				if why := o.books.failed; !strings.Contains(why[0], "node n1: it cannot be tainted as held") || !strings.Contains(why[0], err.Error()) {
					t.Errorf("why: %q", why)
				}
			}, taints(TaintAlways))
		})
	}
}

// TestATaintThatFailsForAWhile: the write is retried, whether it took effect or not. The
// taint is written once and removed in the end.
func TestATaintThatFailsForAWhile(t *testing.T) {
	for name, err := range transient() {
		for _, late := range []bool{false, true} {
			if late && apierrors.IsConflict(err) {
				continue
			}
			name := fmt.Sprintf("%s/late=%t", name, late)
			storyOf(t, name, []string{"a", "v1"}, func(t *testing.T, o *office) {
				o.cluster.fail(first(3, fault{err: err, late: late}, writesNode))
				w := deleteFor("a", "v1")
				o.books.plan(w, victimsOf("a", "v1")...)
				pass(10 * time.Second)
				o.expect(t, done)
				o.expectTaints(t, heldForA)
				o.cluster.fail(first(3, fault{err: err, late: late}, writesNode))
				o.books.queue(release(w, reservations.TimedOut, reasons.New(reasons.HoldTimedOut, "late")))
				pass(10 * time.Second)
				o.expectTaints(t)
				expect.Holds(t, keptOff(o.cluster.made()))
			}, taints(TaintIfAllowed))
		}
	}
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		o.cluster.fail(refuses(errors.New("reset")))
		o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
		pass(29 * time.Second)
		o.expect(t, "committed [], deleted [], failed 0")
		pass(10 * time.Second)
		o.expect(t, "committed [], deleted [], failed 1")
		o.expectGone(t)
	}, taints(TaintIfAllowed))
}

// TestTheLeaseIsLostBeforeTheTaint: the first write of the taint fails, and the lease is
// lost during it or before the next one. The plan goes on when the lease is back.
func TestTheLeaseIsLostBeforeTheTaint(t *testing.T) {
	for _, during := range []bool{true, false} {
		storyOf(t, fmt.Sprintf("during=%t", during), []string{"a", "v1"}, func(t *testing.T, o *office) {
			o.cluster.fail(func(n int, c call) fault {
				if c.node == "" {
					return fault{}
				}
				o.leading.Store(!during)
				return fault{err: errors.New("reset")}
			})
			o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
			pass(50 * time.Millisecond) // before the next write
			o.leading.Store(false)
			o.cluster.fail(nil)
			pass(10 * time.Second)
			o.expectWrites(t, "taint yunikorn.uid-a n1 failed")
			o.leading.Store(true)
			pass(10 * time.Second)
			o.expect(t, done)
			o.expectTaints(t, heldForA)
			o.expectWrites(t, "taint yunikorn.uid-a n1 failed", "taint yunikorn.uid-a n1")
		}, taints(TaintIfAllowed))
	}
}

// TestTimeWithoutTheLeaseDoesNotCount: the first write after the lease is back fails, too.
// The plan is not given up for it, however long the lease was lost.
func TestTimeWithoutTheLeaseDoesNotCount(t *testing.T) {
	for _, of := range []string{"a", "n1"} { // the claim, the taint
		storyOf(t, of, []string{"a", "v1"}, func(t *testing.T, o *office) {
			failed := 0
			o.cluster.fail(func(_ int, c call) fault {
				if c.pod+c.node != of || failed == 2 {
					return fault{}
				}
				failed++
				o.leading.Store(failed == 2)
				return fault{err: errors.New("reset")}
			})
			o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
			pass(time.Minute)
			o.leading.Store(true)
			pass(10 * time.Second)
			o.expect(t, done)
			expect.Same(t, "writes failed", 2, failed)
		}, taints(TaintIfAllowed))
	}
}

// TestEventsOlderThanAWriteAreNotBelieved: while the taint is removed, and after that, the
// informer may still deliver the node without it, and then with it.
func TestEventsOlderThanAWriteAreNotBelieved(t *testing.T) {
	taints := NewTaints("yunikorn", func() TaintPolicy { return TaintAlways }, nil)
	version := func(v string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: v}}
	}
	taints.begin("n1", "a")
	taints.wrote(version("12"), "a")
	taints.begin("n1", "")
	taints.observed(version("9"), "")
	taints.observed(version("12"), "a")
	if value, sure := taints.on("n1"); sure {
		t.Errorf("the taint is %q for sure while it is removed", value)
	}
	taints.wrote(version("13"), "")
	taints.observed(version("12"), "a")
	if !taints.isTainted("n1", false) {
		t.Error("the removed taint is back")
	}
	taints.observed(version("13"), "")
	if left := taints.taintedNodes(); len(left) > 0 {
		t.Errorf("it still knows of %v", left)
	}
}

// TestANodeThatIsGone: no victim is deleted there, and no data of the node is kept.
func TestANodeThatIsGone(t *testing.T) {
	story(t, []string{"a", "v1", "v2"}, func(t *testing.T, o *office) {
		w := deleteFor("a", "v1")
		o.books.plan(w, victimsOf("a", "v1")...)
		pass(time.Second)
		o.cluster.nodes.remove("n1")
		o.books.queue(release(w, reservations.NodeGone, reasons.New(reasons.HoldNodeGone, "gone")))
		pass(time.Minute)
		if left := o.Taints.taintedNodes(); len(left) > 0 {
			t.Errorf("it still knows of %v", left)
		}
		o.books.plan(deleteFor("a", "v2"), victimsOf("a", "v2")...)
		pass(time.Minute)
		o.expectGone(t, "v1")
		if why := o.books.failed; len(why) != 1 || why[0] != "node n1 is gone" {
			t.Errorf("why: %q", why)
		}
	}, taints(TaintAlways))
}

// TestTaintsThatAreLeft: taints of an earlier process are removed once this one leads and
// knows the holds, and not before.
func TestTaintsThatAreLeft(t *testing.T) {
	left := func(o *office) {
		o.cluster.nodes.update("n1", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: reservations.HeldTaint, Value: "yunikorn.uid-b", Effect: corev1.TaintEffectNoSchedule}}
		})
	}
	for _, policy := range []TaintPolicy{TaintIfAllowed, TaintNever} {
		story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
			o.books.learn(true)
			left(o)
			pass(time.Minute)
			o.leading.Store(false)
			o.books.learn(false)
			pass(time.Minute)
			o.expectWrites(t)
			o.leading.Store(true)
			pass(4 * taintInterval)
			o.expectTaints(t)
			o.expectWrites(t, "untaint n1")
		}, taints(policy))
	}
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		left(o)
		pass(taintInterval + afterBound/2) // it is about to be removed
		o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
		pass(time.Minute)
		o.expectWrites(t) // the existing taint is for this hold, too
		o.expectGone(t, "v1")
	}, taints(TaintIfAllowed))
}

// TestTaintRemovalIsRetried: the failure is reported and the removal retried.
func TestTaintRemovalIsRetried(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		w := deleteFor("a", "v1")
		o.books.plan(w, victimsOf("a", "v1")...)
		pass(time.Second)
		o.cluster.fail(refuses(lasting()["forbidden"]))
		o.books.queue(release(w, reservations.TimedOut, reasons.New(reasons.HoldTimedOut, "late")))
		pass(time.Minute)
		o.expectTaints(t, heldForA)
		if !strings.Contains(o.log(), "Cannot take the taint off a node") {
			t.Errorf("the log is silent\n%s", o.log())
		}
		o.cluster.fail(nil)
		pass(time.Minute)
		o.expectTaints(t)
	}, taints(TaintIfAllowed))
}

// TestAbortedPlanRemovesTheTaint: the taint is removed although the node stays held.
func TestAbortedPlanRemovesTheTaint(t *testing.T) {
	story(t, []string{"a", "v1"}, func(t *testing.T, o *office) {
		o.cluster.setNode("v1", "")
		w := deleteFor("a", "v1")
		w.Hold.NodeBound = true
		o.books.committing = func() {
			o.books.queue(output.Work{Ref: refOf("a"), Kind: output.WorkTell, Hold: deleteFor("a").Hold})
		}
		o.books.plan(w, victimsOf("a", "v1")...)
		pass(time.Minute)
		if len(o.books.calledOff) != 1 {
			t.Errorf("called off: %v", o.books.calledOff)
		}
		o.expectTaints(t)
		o.expectGone(t)
	}, taints(TaintIfAllowed))
}

// TestTaintsAreRemovedAtTheEnd: they are removed at the end of a process that leads,
// and at no other time.
func TestTaintsAreRemovedAtTheEnd(t *testing.T) {
	for _, leads := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, newCluster(t, pods("a", "v1")...))
			taints(TaintIfAllowed)(o)
			stop := o.run(t)
			o.books.plan(deleteFor("a", "v1"), victimsOf("a", "v1")...)
			pass(time.Second)
			stop()
			o.expectTaints(t, heldForA)
			o.leading.Store(leads)
			failed := false
			o.cluster.fail(func(int, call) fault {
				defer func() { failed = true }()
				return fault{err: map[bool]error{false: errors.New("reset")}[failed]}
			})
			o.RemoveTaints(t.Context())
			if leads {
				o.expectTaints(t)
			} else {
				o.expectTaints(t, heldForA)
			}
		})
	}
}

// TestANodeIsHiddenTwice: an informer may transform what it has already transformed.
func TestANodeIsHiddenTwice(t *testing.T) {
	taints := NewTaints("yunikorn", func() TaintPolicy { return TaintIfAllowed }, nil)
	hide := func(node *corev1.Node) *corev1.Node {
		shown := expect.Get(taints.Hide(node))(t)
		return shown.(*corev1.Node)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "7"}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{
		{Key: "gpu", Effect: corev1.TaintEffectNoSchedule},
		{Key: reservations.HeldTaint, Value: "yunikorn.uid-a", Effect: corev1.TaintEffectNoSchedule},
	}}}
	shown := hide(hide(node))
	if len(shown.Spec.Taints) != 1 || len(node.Spec.Taints) != 2 {
		t.Errorf("shown are %v, of %v", shown.Spec.Taints, node.Spec.Taints)
	}
	expect.Same(t, "the taint of the node", heldForA, taints.On("n1"))
	later := shown.DeepCopy()
	later.ResourceVersion = "8"
	if hide(later); taints.On("n1") != "" {
		t.Error("it is not seen that the taint is gone")
	}
}
