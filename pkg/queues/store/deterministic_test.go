package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// recorder notes every answer of a store.
type recorder struct {
	*Store
	answers []string
}

func (r *recorder) note(what string, answer any) {
	r.answers = append(r.answers, fmt.Sprintf("%s: %+v", what, answer))
}

func (r *recorder) Gate(uid types.UID, now time.Time) reasons.Reason {
	why := r.Store.Gate(uid, now)
	r.note("gate "+string(uid), why)
	return why
}

func (r *recorder) Judge(uid types.UID) (Ask, queues.Verdict, bool) {
	ask, v, ok := r.Store.Judge(uid)
	r.note("judge "+string(uid), v)
	return ask, v, ok
}

func (r *recorder) Assume(uid types.UID, node string, now time.Time) queues.Verdict {
	v := r.Store.Assume(uid, node, now)
	r.note("assume "+string(uid), v)
	return v
}

func (r *recorder) TakeActivations() []Ref {
	refs := r.Store.TakeActivations()
	r.note("admitted", refs)
	return refs
}

func (r *recorder) Tick(now time.Time) {
	r.Store.Tick(now)
	r.note("reports", r.NextReports(now, 5))
	r.note("settings", queuestest.ShowSettings(r.Snapshot()))
	r.note("usage", queuestest.ShowUsage(r.Snapshot()))
}

func record(l life) (answers []string, err error) {
	var recorders []*recorder
	err = l.run(func(s *Store) live {
		r := &recorder{Store: s}
		recorders = append(recorders, r)
		return r
	})
	for _, r := range recorders {
		answers = append(answers, r.answers...)
	}
	return answers, err
}

// The same life twice gives the same answers: no order of a map is in them.
func TestWorldIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := lives().Draw(t, "life")
		once, err := record(l)
		if err != nil {
			t.Fatal(err)
		}
		again, err := record(l)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(once, again); diff != "" {
			t.Fatalf("two answers (-once +again):\n%s", diff)
		}
	})
}

// Admitting the pods of a map as they come is found at once.
func TestWorldIsDeterministicFindsMapOrder(t *testing.T) {
	random := func(l life) []string {
		var answers []string
		_ = l.run(func(s *Store) live { return &shuffled{s, &answers} })
		return answers
	}
	for seed := range 200 {
		if l := lives().Example(seed); !cmp.Equal(random(l), random(l)) {
			return
		}
	}
	t.Error("nobody noticed")
}

// shuffled gives activations in the order of a map.
type shuffled struct {
	*Store
	answers *[]string
}

func (s *shuffled) TakeActivations() []Ref {
	set := map[Ref]bool{}
	for _, r := range s.Store.TakeActivations() {
		set[r] = true
	}
	var refs []Ref
	for r := range set {
		refs = append(refs, r)
	}
	*s.answers = append(*s.answers, fmt.Sprint(refs))
	return refs
}
