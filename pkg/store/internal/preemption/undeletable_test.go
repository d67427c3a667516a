package preemption_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

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
	expect := func(want time.Time) {
		t.Helper()
		if due := u.Due(); !due.Equal(want) {
			t.Errorf("due %v, want %v", due, want)
		}
	}
	u.Refuse("b", "no", &o, at(2))
	u.Refuse("a", "no", &o, at(1))
	u.Refuse("c", "no", &o, at(3))
	expect(at(1).Add(o.RetryInterval))
	u.Forget("a")
	expect(at(2).Add(o.RetryInterval))
	u.Refuse("b", "no", &o, at(3))
	expect(at(3).Add(o.RetryInterval))
	u.Refuse("c", "no", &o, at(9))
	if got := u.Expire(at(4).Add(o.RetryInterval)); !slices.Equal(got, []types.UID{"b"}) {
		t.Errorf("%v may be victims again", got)
	}
	expect(at(9).Add(o.RetryInterval))
	u.Forget("c")
	expect(time.Time{})
	u.Refuse("b", "no", &o, at(20))
	expect(at(20).Add(2 * o.RetryInterval))
	u.Forget("b")
	expect(time.Time{})
}
