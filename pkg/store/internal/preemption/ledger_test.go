package preemption_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

func claimed(uid, node string) *objects.Pod {
	return &objects.Pod{
		Identity: objects.Identity{UID: types.UID(uid), Namespace: "ns", Name: uid},
		Status:   objects.Status{Claim: &reservations.Claim{Node: node, Since: epoch, Victims: []types.UID{"v"}}},
	}
}

func hold(uid, node string) reservations.Hold {
	return reservations.Hold{
		Asker: types.UID(uid), Namespace: "ns", Name: uid, Node: node, Since: epoch,
		Chosen: []types.UID{"v"}, Awaited: []types.UID{"v"},
	}
}

// TestClaimsOfPodsThatWaitNoMore: before EndRestore the claim on a pending pod holds a node, and
// no longer once the pod is bound or being deleted.
func TestClaimsOfPodsThatWaitNoMore(t *testing.T) {
	for name, changed := range map[string]func(p *objects.Pod){
		"bound":         func(p *objects.Pod) { p.Node = "n1" },
		"being deleted": func(p *objects.Pod) { p.Deleting = true },
	} {
		l, p := preemption.New().Ledger, claimed("a", "n1")
		l.Claimed(claimed("a", "n1"))
		l.Publish()
		held := len(l.View().All())
		changed(p)
		freed := l.Claimed(p)
		l.Publish()
		expect.Same(t, name+": nodes that are held before and after, and the free one",
			[]any{1, 0, "n1"}, []any{held, len(l.View().All()), freed})
		expect.Holds(t, l.Check())
	}
}

// TestLedgerTimesOut: the next time-out follows the holds, and what the store says of times.
func TestLedgerTimesOut(t *testing.T) {
	h, asked, late := preemption.New().Ledger, 0, time.Duration(0)
	from := func(_ types.UID, own time.Time) (time.Time, bool) {
		asked++
		return own.Add(late), true
	}
	due := func(what string, want time.Duration) {
		t.Helper()
		expect.Same(t, what+": due after", want, h.Due(time.Minute, from).Sub(epoch))
	}
	expect.Same(t, "without holds it is due at", time.Time{}, h.Due(time.Minute, from))
	expect.OK(t, h.Place(hold("a", "n1")))
	due("one hold", time.Minute)
	late = time.Second
	due("nothing was said", time.Minute)
	expect.Same(t, "computations", 1, asked)
	h.TimesChange()
	due("times changed", time.Minute+time.Second)
	h.VictimGone("v", epoch.Add(time.Hour))
	due("clear", time.Hour+time.Minute+time.Second)
	h.Publish()
	expect.Holds(t, h.Check())
}

// TestLedgerCheck: a change that was not published is noticed.
func TestLedgerCheck(t *testing.T) {
	h := preemption.New().Ledger
	h.EndRestore()
	h.Publish()
	expect.OK(t, h.Place(hold("a", "n1")))
	expect.That(t, h.Check() != nil, "a published copy that is behind is not noticed")
}

// TestOwnTime: the holds of a namespace on a node share one time-out in each six, and a hold
// keeps what was left when it began to wait.
func TestOwnTime(t *testing.T) {
	const timeout = 10 * time.Minute
	var o preemption.OwnTime
	at := func(minutes int) time.Time { return epoch.Add(time.Duration(minutes) * time.Minute) }
	left := func(uid, namespace string, minutes int, want time.Duration) {
		t.Helper()
		got := o.Left(types.UID(uid), "n", namespace, timeout, at(minutes))
		expect.Same(t, fmt.Sprintf("left to %s of %s in minute %d", uid, namespace, minutes), want, got)
	}
	begin := func(uid string, minutes int, want time.Duration, begins bool) {
		t.Helper()
		got, began := o.Begin(types.UID(uid), "n", "ns", timeout, at(minutes))
		expect.Same(t, fmt.Sprintf("left to %s in minute %d", uid, minutes), want, got)
		expect.Same(t, fmt.Sprintf("%s begins in minute %d", uid, minutes), begins, began)
	}
	left("a", "ns", 0, timeout)
	o.End("a", at(0))
	begin("a", 0, timeout, true)
	begin("a", 2, timeout, false)
	left("a", "ns", 4, timeout)
	left("b", "ns", 4, 6*time.Minute)
	left("b", "other", 4, timeout)
	begin("b", 4, 6*time.Minute, true)
	o.End("a", at(7))
	left("c", "ns", 8, 2*time.Minute)
	o.End("b", at(9))
	left("c", "ns", 59, time.Minute)
	begin("c", 59, time.Minute, true)
	left("d", "ns", 59, time.Minute)
	left("d", "ns", 90, 0) // a period in use does not end
	holds := func(types.UID) bool { return true }
	expect.Holds(t, o.Check(holds))
	expect.That(t, o.Check(func(types.UID) bool { return false }) != nil, "a hold that is none is missed")
	o.End("c", at(60))
	left("d", "ns", 60, timeout)
	begin("d", 61, timeout, true)
	left("e", "ns", 62, 9*time.Minute)
	o.End("d", at(62))
	expect.Holds(t, o.Check(holds))
}

func suspect(uid string) preemption.KubeletRejection {
	return preemption.KubeletRejection{Ref: objects.Ref{UID: types.UID(uid), Namespace: "ns", Name: uid}, Controller: "rs", Took: "others took the room"}
}

// TestRefusalsPassOn: the losses of a refused pod pass to one pod of its controller,
// whichever is known first.
func TestRefusalsPassOn(t *testing.T) {
	var r preemption.KubeletRejections
	o := preemption.DefaultOptions()
	heir := &objects.Pod{Identity: objects.Identity{UID: "heir", Controller: "rs"}}
	r.Suspect(suspect("a"), epoch)
	expect.That(t, r.Replace(heir, epoch) == nil, "it is refused before that is known")
	x := r.Answer("a", "OutOfcpu", &o, epoch)
	if x == nil || x.Heir != "heir" || x.Losses.Count != 1 {
		t.Fatalf("the first loss: %+v", x)
	}
	expect.That(t, r.Answer("a", "OutOfcpu", &o, epoch) == nil && r.Replace(heir, epoch) == nil,
		"a loss counts twice")
	expect.Holds(t, r.Check())
	r.Done(x)

	r.Suspect(suspect("b"), epoch)
	if x = r.Answer("b", "OutOfcpu", &o, epoch); x == nil || x.Heir != "" {
		t.Fatalf("the second loss: %+v", x)
	}
	for name, p := range map[string]*objects.Pod{
		"another controller": {Identity: objects.Identity{UID: "p", Controller: "other"}}, "no controller": {Identity: objects.Identity{UID: "p"}},
		"another node": {Identity: objects.Identity{UID: "p", Controller: "rs"}, Spec: objects.Spec{RequiredNode: "n1"}}, "a pod with a node": {Identity: objects.Identity{UID: "p", Controller: "rs"}, Status: objects.Status{Node: "n1"}},
	} {
		expect.That(t, r.Replace(p, epoch) == nil, "%s replaces it", name)
	}
	expect.That(t, r.Replace(heir, epoch) == x, "the losses do not pass on")
	r.Done(x)
	r.Suspect(suspect("c"), epoch)
	expect.That(t, r.Answer("c", "", &o, epoch) == nil && r.Len() == 0,
		"%d are remembered that were not refused", r.Len())
	expect.Holds(t, r.Check())
}

// TestRefusalsAreForgotten: a pod is remembered for a minute, or until its pause ends, and
// only the latest ones are.
func TestRefusalsAreForgotten(t *testing.T) {
	if preemption.MayBeRefused(time.Time{}, epoch) || !preemption.MayBeRefused(epoch, epoch.Add(time.Minute)) || preemption.MayBeRefused(epoch, epoch.Add(time.Minute+1)) {
		t.Error("the wrong pods are suspected")
	}
	var r preemption.KubeletRejections
	for range preemption.MostRefusals + 1 {
		r.Suspect(suspect("a"), epoch)
	}
	expect.Holds(t, r.Check())
	expect.Same(t, "remembered", preemption.MostRefusals, r.Len())
	r.Suspect(suspect("late"), epoch.Add(time.Minute))
	expect.That(t, r.Len() == 1, "%d are remembered after their time", r.Len())
	o, late := preemption.DefaultOptions(), epoch.Add(time.Minute)
	if r.Answer("late", "OutOfcpu", &o, late); r.Replace(&objects.Pod{Identity: objects.Identity{UID: "heir", Controller: "rs"}}, late.Add(o.RetryInterval)) != nil {
		t.Error("the losses pass on after the pause")
	}
	r.Suspect(preemption.KubeletRejection{}, epoch.Add(time.Minute))
	expect.That(t, r.Check() != nil, "a refusal of no pod is not noticed")
}

// TestUndeletableWhy: an answer is shown as one line. A long one is cut between characters.
func TestUndeletableWhy(t *testing.T) {
	var u preemption.Undeletable
	o := preemption.DefaultOptions()
	u.Refuse("a", "denied\nby"+strings.Repeat("é", 500), &o, epoch)
	why := u.Why("a")
	expect.Says(t, why, "denied; by")
	expect.That(t, utf8.ValidString(why) && len(why) <= 400, "why %q", why)
}

// TestUndeletableDue: it is the earliest time of all pods that are there. A refusal before it
// is over prolongs the time, and does not double it.
func TestUndeletableDue(t *testing.T) {
	var u preemption.Undeletable
	o := preemption.DefaultOptions()
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	due := func(want time.Time) {
		t.Helper()
		expect.Same(t, "due", want, u.Due())
	}
	u.Refuse("b", "no", &o, at(2))
	u.Refuse("a", "no", &o, at(1))
	u.Refuse("c", "no", &o, at(3))
	due(at(1).Add(o.RetryInterval))
	u.Forget("a")
	due(at(2).Add(o.RetryInterval))
	u.Refuse("b", "no", &o, at(3))
	due(at(3).Add(o.RetryInterval))
	u.Refuse("c", "no", &o, at(9))
	expect.Same(t, "may be victims again", []types.UID{"b"}, u.Expire(at(4).Add(o.RetryInterval)))
	due(at(9).Add(o.RetryInterval))
	u.Forget("c")
	due(time.Time{})
	u.Refuse("b", "no", &o, at(20))
	due(at(20).Add(2 * o.RetryInterval))
	u.Forget("b")
	due(time.Time{})
}
