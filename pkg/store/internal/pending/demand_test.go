package pending_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/pending"
)

// TestDemandSum: the sum holds what was counted since it was emptied, and an application
// starts once.
func TestDemandSum(t *testing.T) {
	tree := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a max.vcore=3 maxapps=1"))
	leaf, _ := tree.Find("root.a")
	d := pending.NewDemand[string]()
	fits := func(request string) bool {
		return queues.Admit(tree, leaf.ID, queuestest.Vector(request), queues.OnDemand(d.Sum())).OK()
	}
	count := func(app string, counted bool) {
		d.Count(tree, leaf.ID, queues.Owner{}, queuestest.Vector("vcore=1"), app, counted)
	}
	starts := func() bool { return queues.AdmitApplication(tree, leaf.ID, queues.OnDemand(d.Sum())).OK() }
	d.Add("x")
	count("runs", true)
	expect.That(t, starts() && !d.Starts("runs"),
		"an application that counts already starts in the demand")
	count("x", false)
	count("x", false)
	g := pending.PodGroupName{Namespace: "ns", Name: "g"}
	if _, decided := d.Decided(g); decided || d.HasMember("m") {
		t.Error("there is a verdict on a PodGroup before one is made")
	}
	d.Decide(g, queues.Granted)
	d.CountMember("m")
	if v, decided := d.Decided(g); !decided || !v.OK() || !d.HasMember("m") {
		t.Errorf("the verdict on the PodGroup is %v (%v), and its member counts: %v", v, decided, d.HasMember("m"))
	}
	expect.That(t, !fits("vcore=1") && !starts() && d.Starts("x"),
		"one more fits: %v, another application starts: %v", fits("vcore=1"), starts())
	expect.That(t, d.Restart(epoch) && fits("vcore=3") && starts() && !d.Starts("x"),
		"the sum is not empty after a restart")
	if _, decided := d.Decided(g); decided || d.HasMember("m") {
		t.Error("the verdict on a PodGroup outlives a restart")
	}
	expect.Holds(t, d.Check(func(types.UID) bool { return true }))
	expect.Fails(t, d.Check(func(types.UID) bool { return false }), "pod x does not wait in a queue")
	empty := pending.NewDemand[string]()
	empty.Count(tree, leaf.ID, queues.Owner{}, queuestest.Vector("vcore=1"), "x", false)
	expect.Fails(t, empty.Check(func(types.UID) bool { return true }), "applications start, and no pod is in it")
}

// TestDemandRestarts: after an interval that grows with the pods, and only after a change;
// then each pod may need an update of PodScheduled.
func TestDemandRestarts(t *testing.T) {
	d := pending.NewDemand[string]()
	restarts := func(at time.Duration, want bool) {
		t.Helper()
		expect.That(t, d.Restart(epoch.Add(at)) == want, "after %v: restarted %v", at, !want)
	}
	restarts(0, false)
	d.Add("b")
	d.Add("a")
	restarts(0, true)
	if got := d.ToCheck(); !slices.Equal(got, []types.UID{"a", "b"}) || !slices.Equal(d.Pods(), got) {
		t.Errorf("%v to check, %v in the demand", got, d.Pods())
	}
	restarts(time.Hour, false)
	d.Changed()
	restarts(99*time.Millisecond, false)
	restarts(100*time.Millisecond, true)
	d.Checked("a")
	d.Recheck("c") // a pod that an earlier process wrote to
	expect.That(t, d.Remove("b") && !d.Remove("b") && !d.Has("b") && d.Has("a"),
		"b is there, or a is not")
	expect.Same(t, "to check", []types.UID{"c"}, d.ToCheck())
	expect.That(t, !d.Remove("c") && len(d.ToCheck()) == 0,
		"a pod that is gone is to be checked: %v", d.ToCheck())
	restarts(200*time.Millisecond, true)
	add := func(from, to int) {
		for i := range to - from {
			d.Add(types.UID(fmt.Sprint(from + i)))
		}
	}
	add(1, 1000) // and a
	restarts(599*time.Millisecond, false)
	restarts(600*time.Millisecond, true)
	add(1000, 50_000)
	restarts(4599*time.Millisecond, false)
	restarts(4600*time.Millisecond, true)
}
