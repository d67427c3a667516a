package forecast

import (
	"fmt"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// BenchmarkOf judges 5,000 leaves, half of which wait and half of which have too much.
func BenchmarkOf(b *testing.B) {
	root := &queuestest.Node{Name: "root", Parent: true}
	for i := range 50 {
		team := &queuestest.Node{Name: fmt.Sprintf("team%d", i)}
		for j := range 100 {
			team.Children = append(team.Children, &queuestest.Node{
				Name: fmt.Sprintf("q%d", j), Guaranteed: map[string]resources.Amount{"vcore": 10, "memory": 10},
			})
		}
		root.Children = append(root.Children, team)
	}
	spec, err := queuestest.Spec(root)
	if err != nil {
		b.Fatal(err)
	}
	d := queues.NewDraftFrom(spec)
	for i := range 50 {
		for j := range 100 {
			q, _ := d.Find(fmt.Sprintf("root.team%d.q%d", i, j))
			used := resources.VectorFrom(map[string]resources.Amount{"vcore": resources.Amount(5 + 10*(j%2)), "memory": 7})
			d.Update(q.ID, func(u *queues.Usage) { u.Allocated, u.Pending = u.Allocated.Add(used), u.Pending.Add(used) })
		}
	}
	tree := d.Publish(nil)
	for b.Loop() {
		if f := Of(tree, true); len(f.Losers) != 2500 {
			b.Fatalf("%d could lose", len(f.Losers))
		}
	}
}
