package evict

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	expect.Same(t, "the taints of node n1", want, o.cluster.nodes.taints())
}

func (o *office) expectTaintsAfter(t *testing.T, d time.Duration, want ...string) {
	t.Helper()
	pass(d)
	o.expectTaints(t, want...)
}

// writes returns the calls that changed a node or failed to.
func (o *office) writes() (out []string) {
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

func TestTaints(t *testing.T) {
	stories(t, map[string]func(*testing.T, *office){
		"a node is tainted before the commit": func(t *testing.T, o *office) {
			committed := false
			o.books.committing = func() {
				committed = true
				o.expectTaints(t, heldForA)
				o.expectGone(t)
			}
			w := o.planAndPass(time.Second, "a", "v1")
			expect.Same(t, "the plan was committed", true, committed)
			o.expectCalls(t, "patch a paddock.io/NodeHeld=True MakingRoom", "taint yunikorn.uid-a n1",
				"patch v1 DisruptionTarget=True PreemptionByScheduler", "delete v1")
			expect.Same(t, "what the filters of this process see", 0, len(o.cluster.nodes.shown()))
			o.end(w, reservations.Bound)
			o.expectTaintsAfter(t, afterBound-10*time.Millisecond, heldForA)
			o.expectTaintsAfter(t, time.Second)
		},
		"the taint stays for a hold that comes before its removal": func(t *testing.T, o *office) {
			a := o.planAndPass(time.Second, "a", "v1")
			var b output.Work
			o.Taints.nodes = lateNodes{o.Taints.nodes, sync.OnceFunc(func() {
				b = o.plan("b", "v2")
				time.Sleep(10 * time.Millisecond)
			})}
			o.end(a, reservations.Bound)
			o.expectTaintsAfter(t, 2*time.Second, heldForA)
			o.expectWrites(t, "taint yunikorn.uid-a n1")
			o.end(b, reservations.Bound)
			o.expectTaintsAfter(t, 2*time.Second)
			o.cluster.forget() // two askers
		},
		"other taints stay, which another controller writes at the same time": func(t *testing.T, o *office) {
			disk := corev1.Taint{Key: corev1.TaintNodeDiskPressure, Effect: corev1.TaintEffectNoSchedule}
			gpu := corev1.Taint{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoExecute}
			nodes := o.cluster.nodes
			nodes.update(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{gpu} })
			nodes.blind = true
			nodes.update(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{gpu, disk} })
			w := o.plan("a", "v1")
			o.expectTaintsAfter(t, time.Second, "gpu=yes:NoExecute", "node.kubernetes.io/disk-pressure:NoSchedule", heldForA)
			nodes.update(func(n *corev1.Node) { n.Spec.Taints = n.Spec.Taints[1:] })
			o.end(w, reservations.TimedOut)
			o.expectTaintsAfter(t, time.Second, "node.kubernetes.io/disk-pressure:NoSchedule")
		},
		"no victim goes on a node with the taint of another scheduler, which stays": func(t *testing.T, o *office) {
			other := heldTaint("batch.uid-x")
			o.cluster.nodes.update(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{other} })
			expect.Same(t, "the filters see", []corev1.Taint{other}, o.cluster.nodes.shown())
			o.plan("a", "v1")
			o.expectAfter(t, time.Minute, neverBegun)
			o.expectTaints(t, other.ToString())
			o.expectWhy(t, "another scheduler")
		},
		"a removal that fails is reported and tried again": func(t *testing.T, o *office) {
			w := o.planAndPass(time.Second, "a", "v1")
			o.cluster.fail(refuses(lasting()["forbidden"]))
			o.end(w, reservations.TimedOut)
			o.expectTaintsAfter(t, time.Minute, heldForA)
			expect.Says(t, o.log(), "Cannot take the taint off a node")
			o.cluster.fail(nil)
			o.expectTaintsAfter(t, time.Minute)
		},
		"the taint of a plan that is off is removed, although the node stays held": func(t *testing.T, o *office) {
			o.cluster.setNode("v1", "")
			w := deleteFor("a", "v1")
			w.Hold.NodeBound = true
			o.books.committing = func() {
				o.books.queue(output.Work{Ref: refOf("a"), Kind: output.WorkTell, Hold: deleteFor("a").Hold})
			}
			o.books.plan(w, victimsOf("a", "v1")...)
			pass(time.Minute)
			expect.Same(t, "plans that are off", 1, len(o.books.calledOff))
			o.expectTaints(t)
			o.expectGone(t)
		},
	}, taints(TaintIfAllowed))
}

func TestTaintsAlways(t *testing.T) {
	stories(t, map[string]func(*testing.T, *office){
		"there is none without victims": func(t *testing.T, o *office) {
			w := o.plan("a")
			o.expectAfter(t, time.Second, done)
			o.end(w, reservations.Bound)
			pass(time.Minute)
			o.expectWrites(t)
		},
		"no victim goes on a node that is gone, and no data of it is kept": func(t *testing.T, o *office) {
			w := o.planAndPass(time.Second, "a", "v1")
			o.cluster.nodes.remove()
			o.end(w, reservations.NodeGone)
			pass(time.Minute)
			expect.Same(t, "nodes that it knows of", 0, len(o.Taints.taintedNodes()))
			o.planAndPass(time.Minute, "a", "v2")
			o.expectGone(t, "v1")
			expect.Same(t, "why", []string{"node n1 is gone"}, o.books.failed)
		},
	}, taints(TaintAlways))
}

// TestTheTaintGoesWithTheHold: whatever the reason for which the hold ends, before and
// after its victims are deleted.
func TestTheTaintGoesWithTheHold(t *testing.T) {
	for _, end := range []reservations.End{
		reservations.Bound, reservations.Deleted, reservations.Superseded, reservations.NodeGone,
		reservations.NodeUnschedulable, reservations.TimedOut, reservations.GivenUp,
	} {
		storyOf(t, string(end), func(t *testing.T, o *office) {
			w := o.plan("a", "v1")
			o.expectTaintsAfter(t, time.Second, heldForA)
			if end == reservations.Deleted {
				o.cluster.remove("a")
			}
			o.end(w, end)
			o.expectTaintsAfter(t, 2*time.Second)
			o.expectWrites(t, "taint yunikorn.uid-a n1", "untaint n1")
		}, taints(TaintIfAllowed))
	}
	for name, fails := range map[string]func(*office){
		"the laws refuse": func(o *office) { o.books.off = reasons.New(reasons.HoldGivenUp, "no") },
		"a victim stays":  func(o *office) { o.cluster.fail(on("delete", "v1", lasting()["forbidden"])) },
	} {
		storyOf(t, name, func(t *testing.T, o *office) {
			fails(o)
			w := o.planAndPass(time.Second, "a", "v1")
			if !o.books.off.None() { // a store ends the hold itself
				o.books.queue(release(w, reservations.GivenUp, o.books.off))
			}
			o.expectTaintsAfter(t, time.Second)
			o.expectWrites(t, "taint yunikorn.uid-a n1", "untaint n1")
		}, taints(TaintIfAllowed))
	}
}

// TestHoldsShareATaint: it is written once, and removed with the last hold.
func TestHoldsShareATaint(t *testing.T) {
	for _, blind := range []bool{false, true} {
		storyOf(t, fmt.Sprintf("blind=%t", blind), func(t *testing.T, o *office) {
			o.cluster.nodes.blind = blind // the informer is late
			a := o.planAndPass(10*time.Millisecond, "a", "v1")
			b := o.planAndPass(time.Second, "b", "v2")
			o.end(a, reservations.Bound)
			pass(afterBound / 2)
			c := o.plan("c", "v3")
			o.expectTaintsAfter(t, 2*time.Second, heldForA)
			o.end(c, reservations.TimedOut)
			o.expectTaintsAfter(t, 2*time.Second, heldForA)
			o.end(b, reservations.Bound)
			o.expectTaintsAfter(t, 2*time.Second)
			expect.Holds(t, keptOff(o.cluster.made()))
			most := map[bool]int{false: 2, true: 4}[blind] // a conflict for each write that is based on late data
			expect.That(t, len(o.writes()) >= 2 && len(o.writes()) <= most, "writes %q", o.writes())
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

// writesNode tells whether a call changes a node or tries to.
func writesNode(c call) bool { return c.node != "" && c.verb != "get" }

// refuses makes writes of nodes fail.
func refuses(err error) func(int, call) fault { return when(fault{err: err}, writesNode) }

func TestATaintThatIsRefused(t *testing.T) {
	for name, err := range lasting() {
		t.Run(name, func(t *testing.T) {
			story(t, func(t *testing.T, o *office) {
				o.cluster.fail(refuses(err))
				w := o.plan("a", "v1")
				o.expectAfter(t, time.Second, done, "v1")
				o.end(w, reservations.Bound)
				pass(time.Minute)
				o.expectWrites(t, "taint yunikorn.uid-a n1 failed")
				expect.Same(t, "told in the log", 1, strings.Count(o.log(), "Cannot taint a node that is held"))
			}, taints(TaintIfAllowed))
			story(t, func(t *testing.T, o *office) {
				o.cluster.fail(refuses(err))
				o.plan("a", "v1")
				o.expectAfter(t, time.Second, neverBegun)
				o.expectWhy(t, "node n1: it cannot be tainted as held", err.Error())
			}, taints(TaintAlways))
		})
	}
}

// TestATaintThatFailsForAWhile: the write is retried, whether it took effect or not. The
// taint is written once and removed in the end.
func TestATaintThatFailsForAWhile(t *testing.T) {
	forTransient(t, func(t *testing.T, f fault) {
		story(t, func(t *testing.T, o *office) {
			o.cluster.fail(first(3, f, writesNode))
			w := o.plan("a", "v1")
			o.expectAfter(t, 10*time.Second, done, "v1")
			o.expectTaints(t, heldForA)
			o.cluster.fail(first(3, f, writesNode))
			o.end(w, reservations.TimedOut)
			o.expectTaintsAfter(t, 10*time.Second)
			expect.Holds(t, keptOff(o.cluster.made()))
		}, taints(TaintIfAllowed))
	})
	story(t, func(t *testing.T, o *office) {
		o.cluster.fail(refuses(errors.New("reset")))
		o.plan("a", "v1")
		o.expectAfter(t, 29*time.Second, untouched)
		o.expectAfter(t, 10*time.Second, neverBegun)
	}, taints(TaintIfAllowed))
}

// TestTheLeaseIsLostBeforeTheTaint: the first write of the taint fails, and the lease is
// lost during it or before the next one. The plan goes on when the lease is back.
func TestTheLeaseIsLostBeforeTheTaint(t *testing.T) {
	for _, during := range []bool{true, false} {
		storyOf(t, fmt.Sprintf("during=%t", during), func(t *testing.T, o *office) {
			o.cluster.fail(func(n int, c call) fault {
				if c.node == "" {
					return fault{}
				}
				o.leading.Store(!during)
				return fault{err: errors.New("reset")}
			})
			o.plan("a", "v1")
			pass(50 * time.Millisecond) // before the next write
			o.leading.Store(false)
			o.cluster.fail(nil)
			pass(10 * time.Second)
			o.expectWrites(t, "taint yunikorn.uid-a n1 failed")
			o.leading.Store(true)
			o.expectAfter(t, 10*time.Second, done, "v1")
			o.expectTaints(t, heldForA)
			o.expectWrites(t, "taint yunikorn.uid-a n1 failed", "taint yunikorn.uid-a n1")
		}, taints(TaintIfAllowed))
	}
}

// TestTimeWithoutTheLeaseDoesNotCount: the first write after the lease is back fails, too.
// The plan is not given up for it, however long the lease was lost.
func TestTimeWithoutTheLeaseDoesNotCount(t *testing.T) {
	for _, of := range []string{"a", "n1"} { // the claim, the taint
		storyOf(t, of, func(t *testing.T, o *office) {
			failed := 0
			o.cluster.fail(func(_ int, c call) fault {
				if c.pod+c.node != of || failed == 2 {
					return fault{}
				}
				failed++
				o.leading.Store(failed == 2)
				return fault{err: errors.New("reset")}
			})
			o.planAndPass(time.Minute, "a", "v1")
			o.leading.Store(true)
			o.expectAfter(t, 10*time.Second, done, "v1")
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
	taints.begin("n1")
	taints.wrote(version("12"), "a")
	taints.begin("n1")
	taints.observed(version("9"), "")
	taints.observed(version("12"), "a")
	_, sure := taints.on("n1")
	expect.Same(t, "the taint is sure while it is removed", false, sure)
	taints.wrote(version("13"), "")
	taints.observed(version("12"), "a")
	expect.Same(t, "the removed taint is gone", true, taints.isTainted("n1", false))
	taints.observed(version("13"), "")
	expect.Same(t, "nodes that it knows of", 0, len(taints.taintedNodes()))
}

// TestTaintsThatAreLeft: taints of an earlier process are removed once this one leads and
// knows the holds, and not before.
func TestTaintsThatAreLeft(t *testing.T) {
	left := func(o *office) {
		o.cluster.nodes.update(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{heldTaint("yunikorn.uid-b")} })
	}
	for _, policy := range []TaintPolicy{TaintIfAllowed, TaintNever} {
		story(t, func(t *testing.T, o *office) {
			o.books.learning.Store(true)
			left(o)
			pass(time.Minute)
			o.leading.Store(false)
			o.books.learning.Store(false)
			pass(time.Minute)
			o.expectWrites(t)
			o.leading.Store(true)
			o.expectTaintsAfter(t, 4*taintInterval)
			o.expectWrites(t, "untaint n1")
		}, taints(policy))
	}
	story(t, func(t *testing.T, o *office) {
		left(o)
		pass(taintInterval + afterBound/2) // it is about to be removed
		o.planAndPass(time.Minute, "a", "v1")
		o.expectWrites(t) // the existing taint is for this hold, too
		o.expectGone(t, "v1")
	}, taints(TaintIfAllowed))
}

// TestTaintsAreRemovedAtTheEnd: they are removed at the end of a process that leads,
// and at no other time.
func TestTaintsAreRemovedAtTheEnd(t *testing.T) {
	for leads, left := range map[bool][]string{true: nil, false: {heldForA}} {
		synctest.Test(t, func(t *testing.T) {
			o := newOffice(t, newCluster(t, "a", "v1"))
			taints(TaintIfAllowed)(o)
			stop := o.run(t)
			o.planAndPass(time.Second, "a", "v1")
			stop()
			o.expectTaints(t, heldForA)
			o.leading.Store(leads)
			o.cluster.fail(first(1, fault{err: errors.New("reset")}, func(call) bool { return true }))
			o.RemoveTaints(t.Context())
			o.expectTaints(t, left...)
		})
	}
}

// TestANodeIsHiddenTwice: an informer may transform what it has already transformed.
func TestANodeIsHiddenTwice(t *testing.T) {
	taints := NewTaints("yunikorn", func() TaintPolicy { return TaintIfAllowed }, nil)
	hide := func(node *corev1.Node) *corev1.Node { return expect.Get(taints.Hide(node))(t).(*corev1.Node) }
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", ResourceVersion: "7"}}
	node.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}, heldTaint("yunikorn.uid-a")}
	shown := hide(hide(node))
	expect.Same(t, "shown", node.Spec.Taints[:1], shown.Spec.Taints)
	expect.Same(t, "taints of the node", 2, len(node.Spec.Taints))
	expect.Same(t, "the taint of the node", heldForA, taints.On("n1"))
	later := shown.DeepCopy()
	later.ResourceVersion = "8"
	hide(later)
	expect.Same(t, "the taint that is gone", "", taints.On("n1"))
}
