package daemonset_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
)

// fullNode is a node with 110 pods and no free capacity.
func fullNode(pods int) *daemonset.Node {
	chance := rand.New(rand.NewPCG(1, 2))
	n := &daemonset.Node{Name: "n1", Types: []string{"vcore", "memory", "pods"}, Allocatable: planner.Amounts{0, 0, int64(pods)}, Budgets: []int64{0, 1, 2}}
	for i := range pods {
		p := &planner.Pod{
			UID: fmt.Sprintf("pod-%08d", i), Name: "p", Request: planner.Amounts{100 + chance.Int64N(8)*100, 1000 + chance.Int64N(8)*1000, 1},
			Created: epoch.Add(time.Duration(chance.IntN(1000)) * time.Second), Priority: int32(chance.IntN(3)),
			OptedOut: chance.IntN(10) == 0, Originator: chance.IntN(10) == 0,
		}
		if chance.IntN(4) == 0 {
			p.Budgets = []int{chance.IntN(3)}
		}
		n.Allocatable[0], n.Allocatable[1] = n.Allocatable[0]+p.Request[0], n.Allocatable[1]+p.Request[1]
		n.Pods = append(n.Pods, daemonset.Pod{Pod: p})
	}
	return n
}

func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		name string
		want int64
		by   daemonset.Selection
	}{{"one victim", 500, daemonset.Multiple}, {"single", 500, daemonset.Single}, {"many victims", 20_000, daemonset.Multiple}} {
		n := fullNode(110)
		ask := &daemonset.Ask{Ask: &planner.Ask{UID: "asker", Request: planner.Amounts{c.want, c.want, 1}, Priority: 5}}
		p := daemonset.Params{Selection: []daemonset.Selection{c.by}}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := daemonset.Plan(n, ask, p); d.Outcome != planner.Preempt {
					b.Fatal(d)
				}
			}
		})
		b.Run(c.name+"/judge", func(b *testing.B) {
			d := daemonset.Plan(n, ask, p)
			b.ReportAllocs()
			for b.Loop() {
				expect.OK(b, daemonset.Judge(n, ask, p, d))
			}
		})
	}
}
