package preemption_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

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
	checked(t, &r)
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
	checked(t, &r)
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
	checked(t, &r)
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
	if why := u.Why("a"); !utf8.ValidString(why) || !strings.Contains(why, "denied; by") || len(why) > 400 {
		t.Errorf("why %q", why)
	}
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
