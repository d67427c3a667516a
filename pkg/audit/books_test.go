package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// office is a store with pods of users, in queues that limit them.
func office(t *testing.T) *store.Store {
	s := store.New(queuestest.MustTree(t, "root limit=*;max.vcore=90\n  a\n  b"), store.Options{})
	s.Start(began)
	for i := range 9 {
		p := objects.Pod{
			Identity: objects.Identity{
				UID: types.UID(fmt.Sprint(i)), Namespace: "ns", Name: fmt.Sprint("p", i), Created: began,
				Labels: map[string]string{placement.KeyQueue: []string{"root.a", "root.b"}[i%2], placement.KeyApplicationID: fmt.Sprint("app", i%4)},
			},
			Request: queuestest.Vector("vcore=1 pods=1"),
		}
		if i < 4 {
			p.Node = "n1"
		}
		s.Upsert(p, began)
	}
	s.UpsertNode("n1", queuestest.Vector("vcore=4 pods=9"), began)
	return s
}

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestBooksThatAreRight(t *testing.T) {
	s := office(t)
	if _, all := s.OwnersUse(nil); all == 0 {
		t.Fatal("no user is charged: nothing is shown")
	}
	books := &Books{Inventory: inventory.New(s), Owners: s.OwnersUse}
	for _, change := range []func(){
		func() {},
		func() {
			s.Assume("5", "n1", store.NoSnapshot, began)
			s.NoNode("4", "", reasons.Brief(reasons.NoNodeFits), began)
		},
		func() { s.Delete("0", began); s.Delete("8", began.Add(time.Second)) },
	} {
		change()
		expect.Holds(t, books.Check(nil))
	}
}

// bent is a store that says something else than what it has.
type bent struct {
	*store.Store
	bend func(*output.Changes)
}

func (b bent) TakeChanges(limit int) output.Changes {
	c := b.Store.TakeChanges(limit)
	b.bend(&c)
	return c
}

// miscounted changes the charge of root.a and of the queues above it.
func miscounted(change func(*queues.Usage)) func(*output.Changes) {
	return func(c *output.Changes) {
		if c.Rest == nil {
			return
		}
		draft := queues.NewDraftFrom(c.Rest.Spec)
		for q := range c.Rest.Queues.All() {
			mine, _ := draft.Find(q.Path)
			draft.Update(mine.ID, func(u *queues.Usage) {
				own := q.Usage
				for _, below := range q.Children { // Update adds to the queues above, too
					own = own.Sub(c.Rest.Queues.Queue(below).Usage)
				}
				*u = u.Add(own)
				if q.Path == "root.a" {
					change(u)
				}
			})
		}
		rest := *c.Rest
		rest.Queues = draft.Publish(nil)
		c.Rest = &rest
	}
}

// TestBooksThatAreWrong: the planted bugs, of each thing that is added up.
func TestBooksThatAreWrong(t *testing.T) {
	one := queuestest.Vector("vcore=1")
	application := func(change func(*output.AppRecord)) func(c *output.Changes) {
		return func(c *output.Changes) {
			for i, a := range c.Apps {
				if a.ID == "app0" {
					other := *a
					change(&other)
					c.Apps[i] = &other
				}
			}
		}
	}
	for _, c := range []struct {
		name string
		bend func(*output.Changes)
		says string
	}{
		{"nothing", miscounted(func(*queues.Usage) {}), "<nil>"},
		{"allocated", miscounted(func(u *queues.Usage) { u.Allocated = u.Allocated.Add(one) }), "queue root.a: it is charged pods=2 vcore=3000 as allocated, its pods make pods=2 vcore=2000"},
		{"admitted", miscounted(func(u *queues.Usage) { u.Admitted = u.Admitted.Add(one) }), "as admitted"},
		{"pending", miscounted(func(u *queues.Usage) { u.Pending = u.Pending.Add(one) }), "as pending"},
		{"preempted", miscounted(func(u *queues.Usage) { u.Preempted = u.Preempted.Add(one) }), "as preempted"},
		{"leaving", miscounted(func(u *queues.Usage) { u.Leaving = u.Leaving.Add(one) }), "as leaving"},
		{"arriving", miscounted(func(u *queues.Usage) { u.Arriving = u.Arriving.Add(one) }), "as arriving"},
		{"applications", miscounted(func(u *queues.Usage) { u.Applications++ }), "queue root.a: it is charged 3 applications, 2 of them running, and has 2 and 2"},
		{"running", miscounted(func(u *queues.Usage) { u.Running-- }), "1 of them running, and has 2 and 2"},
		{"an application", application(func(a *output.AppRecord) { a.Usage.Allocated = a.Usage.Allocated.Add(one) }), "application app0 of queue root.a: it is charged"},
		{"an application that waits", application(func(a *output.AppRecord) { a.Usage.Pending = a.Usage.Pending.Add(one) }), "as pending"},
		{"a pod that is not shown", func(c *output.Changes) { c.Pods = c.Pods[1:] }, "application app"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := office(t)
			err := (&Books{Inventory: inventory.New(bent{s, c.bend}), Owners: s.OwnersUse}).Check(func(time.Duration) bool { return true })
			expect.That(t, strings.Contains(fmt.Sprint(err), c.says), "%v, not %q", err, c.says)
		})
	}
}

// TestOwnersDifferInEveryLook: only a difference that is the same in every look is
// reported; any other one was late.
func TestOwnersDifferInEveryLook(t *testing.T) {
	for _, c := range []struct {
		name  string
		wrong func(look int, usage []queues.OwnerUsage, all *int)
		says  string
	}{
		{"never", func(int, []queues.OwnerUsage, *int) {}, "<nil>"},
		{"running", func(_ int, usage []queues.OwnerUsage, _ *int) { usage[0].Running++ }, "user nobody in queue root: it is charged 5 running applications, and has 4"},
		{"used", func(_ int, usage []queues.OwnerUsage, _ *int) { usage[0].Allocated = queuestest.Vector("vcore=1") }, "user nobody in queue root: it is charged vcore=1000 as allocated, its pods make"},
		{"on the way", func(_ int, usage []queues.OwnerUsage, _ *int) { usage[0].Admitted = queuestest.Vector("vcore=1") }, "as admitted"},
		{"a user that uses nothing", func(_ int, _ []queues.OwnerUsage, all *int) { *all++ }, "2 users and groups are charged, each counted for each queue, and 1 use something"},
		{"but once", func(look int, usage []queues.OwnerUsage, _ *int) {
			if look != ownerLooks-1 {
				usage[0].Running++
			}
		}, "<nil>"},
		{"in another way each time", func(look int, usage []queues.OwnerUsage, _ *int) { usage[0].Running += 1 + look%2 }, "<nil>"},
		{"first one, then another", func(look int, usage []queues.OwnerUsage, all *int) {
			if look < 2 {
				usage[0].Running++
			} else {
				*all++
			}
		}, "<nil>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, look, pauses := office(t), -1, 0
			err := (&Books{Inventory: inventory.New(s), Owners: func(of []queues.Charged) ([]queues.OwnerUsage, int) {
				usage, all := s.OwnersUse(of)
				if of != nil {
					look++
					c.wrong(look, usage, &all)
				}
				return usage, all
			}}).Check(func(time.Duration) bool { pauses++; return true })
			expect.That(t, pauses == look, "%d pauses between %d looks", pauses, look+1)
			expect.That(t, strings.Contains(fmt.Sprint(err), c.says), "%v, not %q", err, c.says)
		})
	}
}
