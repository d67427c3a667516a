package order_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// BenchmarkNext measures the next of 100,000 asks in 5,125 queues, six levels deep: the
// ask is found and removed, the usage of its queues grows, and another ask is added.
func BenchmarkNext(b *testing.B) {
	for _, policy := range []config.SortPolicy{config.SortFIFO, config.SortFair} {
		b.Run(string(policy), func(b *testing.B) { benchmarkNext(b, policy) })
	}
}

func benchmarkNext(b *testing.B, policy config.SortPolicy) {
	policies := config.DefaultPolicies()
	policies.ApplicationSort = policy
	d := queues.NewDraft(queues.Settings{Name: "root", Path: "root", Policies: policies})
	var leaves []queues.ID
	var grow func(parent queues.ID, path string, fanouts []int)
	grow = func(parent queues.ID, path string, fanouts []int) {
		if len(fanouts) == 0 {
			leaves = append(leaves, parent)
			return
		}
		for i := range fanouts[0] {
			name := fmt.Sprintf("q%d", i)
			id := d.Add(queues.Settings{
				Name: name, Path: path + "." + name, Parent: parent, Policies: policies,
				Guaranteed: resources.GuaranteeFrom(map[string]resources.Amount{resources.CPU: resources.Amount(1000 * (1 + i))}),
			})
			grow(id, path+"."+name, fanouts[1:])
		}
	}
	grow(queues.RootID, "root", []int{4, 5, 5, 5, 9})
	x := order.NewIndex()
	for q := range d.All() {
		x.SetQueue(q.ID, q.Settings)
	}
	type running struct {
		app  *order.App
		leaf queues.ID
		used resources.Vector
	}
	request := queuestest.Vector("vcore=500m memory=1Gi pods=1")
	owners := map[string]*running{}
	used := map[queues.ID]resources.Vector{}
	key := func(i int) order.AskKey {
		return order.AskKey{Priority: int32(i % 3), Created: epoch.Add(time.Duration(i)), UID: fmt.Sprintf("%07d", i)}
	}
	for i := range 100_000 {
		leaf := leaves[i%len(leaves)]
		r := &running{leaf: leaf}
		if i < 3*len(leaves) {
			r.app = x.NewApp(leaf, fmt.Sprintf("app%d", i), epoch, order.Class{})
		} else {
			r = owners[fmt.Sprintf("%07d", i-3*len(leaves))]
		}
		owners[fmt.Sprintf("%07d", i)] = r
		x.Push(r.app, key(i), request, "")
	}
	b.ReportAllocs()
	for i := 100_000; b.Loop(); i++ {
		a, _ := x.Next()
		r := owners[a.UID()]
		x.Remove(a)
		r.used = r.used.Add(request)
		x.SetAppUsed(r.app, r.used)
		for q := range d.Ancestors(r.leaf) {
			used[q.ID] = used[q.ID].Add(request)
			x.SetUsed(q.ID, used[q.ID], used[q.ID])
		}
		k := key(i)
		owners[k.UID] = r
		x.Push(r.app, k, request, "")
	}
}
