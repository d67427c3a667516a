package queues_test

import (
	"fmt"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
)

// An event in a tree of 5,125 queues, six levels deep: a change from leaf to
// root and its publication.
func BenchmarkPublish(b *testing.B) {
	d := queues.NewDraft(queues.Settings{Name: "root", Path: "root"})
	var leaves []queues.ID
	var grow func(parent queues.ID, path string, fanouts []int)
	grow = func(parent queues.ID, path string, fanouts []int) {
		if len(fanouts) == 0 {
			leaves = append(leaves, parent)
			return
		}
		for i := range fanouts[0] {
			name := fmt.Sprintf("q%d", i)
			id, err := d.Add(queues.Settings{Name: name, Path: path + "." + name, Parent: parent})
			if err != nil {
				b.Fatal(err)
			}
			grow(id, path+"."+name, fanouts[1:])
		}
	}
	grow(queues.RootID, "root", []int{4, 5, 5, 5, 9})
	s := d.Publish(nil)
	v := queuestest.Vector("vcore=1 memory=1Gi pods=1")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Update(leaves[i*7%len(leaves)], func(u *queues.Usage) { u.Allocated = v })
		s = d.Publish(s)
	}
}
