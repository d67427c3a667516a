package preemption_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

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
