package required_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// fullNode is a node with 110 pods and no free capacity.
func fullNode(pods int) *required.Node {
	chance := rand.New(rand.NewPCG(1, 2))
	n := &required.Node{Name: "n1", Types: []string{"vcore", "memory", "pods"}, Allocatable: victims.Amounts{0, 0, int64(pods)}, Budgets: []int64{0, 1, 2}}
	for i := range pods {
		p := &victims.Pod{
			UID: fmt.Sprintf("pod-%08d", i), Name: "p", Request: victims.Amounts{100 + chance.Int64N(8)*100, 1000 + chance.Int64N(8)*1000, 1},
			Created: epoch.Add(time.Duration(chance.IntN(1000)) * time.Second), Priority: int32(chance.IntN(3)),
			OptedOut: chance.IntN(10) == 0, Originator: chance.IntN(10) == 0,
		}
		if chance.IntN(4) == 0 {
			p.Budgets = []int{chance.IntN(3)}
		}
		n.Allocatable[0], n.Allocatable[1] = n.Allocatable[0]+p.Request[0], n.Allocatable[1]+p.Request[1]
		n.Pods = append(n.Pods, required.Pod{Pod: p})
	}
	return n
}

func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct {
		name string
		want int64
		by   required.Selection
	}{{"one victim", 500, required.Multiple}, {"single", 500, required.Single}, {"many victims", 20_000, required.Multiple}} {
		n := fullNode(110)
		ask := &required.Ask{Ask: &victims.Ask{UID: "asker", Request: victims.Amounts{c.want, c.want, 1}, Priority: 5}}
		p := required.Params{Selection: []required.Selection{c.by}}
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if d := required.Plan(n, ask, p); d.Outcome != victims.Preempt {
					b.Fatal(d)
				}
			}
		})
		b.Run(c.name+"/judge", func(b *testing.B) {
			d := required.Plan(n, ask, p)
			b.ReportAllocs()
			for b.Loop() {
				if err := required.Judge(n, ask, p, d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
