package store

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// minutes notes every answer about making room, too.
type minutes struct {
	recorder
	shuffle bool // the work comes in the order of a map
}

func (r *minutes) Attempt(uid types.UID, kind string, inPermit []types.UID, now time.Time) (*Attempt, reasons.Reason) {
	a, why := r.Store.Attempt(uid, kind, inPermit, now)
	r.note("attempt "+string(uid), why)
	if a != nil {
		r.note("world of "+string(uid), fmt.Sprint(a.World.Types, a.Strict, show(a.World, a.Ask)))
	}
	return a, why
}

func (r *minutes) Claim(uid types.UID, d *victims.Decision, now time.Time) reasons.Reason {
	why := r.Store.Claim(uid, d, now)
	r.note("claim "+d.String(), why)
	return why
}

func (r *minutes) Decline(uid types.UID, d *victims.Decision, now time.Time) reasons.Reason {
	why := r.Store.Decline(uid, d, now)
	r.note("decline "+string(uid), why)
	return why
}

func (r *minutes) Commit(asker types.UID, inPermit []types.UID, now time.Time) ([]Victim, reasons.Reason) {
	going, why := r.Store.Commit(asker, inPermit, now)
	r.note("commit "+string(asker), fmt.Sprint(going, why))
	return going, why
}

func (r *minutes) TakeWork() []Work {
	work := r.Store.TakeWork()
	if r.shuffle {
		set := map[int]Work{}
		for i, w := range work {
			set[i] = w
		}
		work = work[:0]
		for _, w := range set {
			work = append(work, w)
		}
	}
	for _, w := range work {
		r.note("work", fmt.Sprint(w.Name, w.Kind, w.Hold, w.Ended, w.Reason))
	}
	return work
}

func protocol(l strife, shuffle bool) (answers []string, err error) {
	var all []*minutes
	err = l.run(func(s *Store) live {
		r := &minutes{recorder{Store: s}, shuffle}
		all = append(all, r)
		return r
	})
	for _, r := range all {
		answers = append(answers, r.answers...)
	}
	return answers, err
}

// The same history twice gives the same decisions.
func TestClusterIsDeterministic(t *testing.T) {
	for seed := range 25 {
		once, err := protocol(newStrife(seed), false)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if again, _ := protocol(newStrife(seed), false); !slices.Equal(once, again) {
			t.Fatalf("seed %d: two answers (-once +again):\n%s", seed, cmp.Diff(once, again))
		}
	}
}

// Work in the order of a map is found.
func TestClusterIsDeterministicFindsMapOrder(t *testing.T) {
	for seed := range 300 {
		once, _ := protocol(newStrife(seed), true)
		if again, _ := protocol(newStrife(seed), true); !slices.Equal(once, again) {
			return
		}
	}
	t.Error("nobody noticed")
}
