package store

import (
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// BenchmarkAhead measures how the store finds the pods that go before a pod that found a
// node: 32 pods of other leaves are admitted, below their guarantees, and do not fit
// beside it.
func BenchmarkAhead(b *testing.B) {
	spec, leaves := wide(b)
	s := New(spec, model.Options{Window: 64, MaxWindow: 64})
	s.UpsertNode("n1", queuestest.Vector("vcore=700m memory=4Gi pods=10"), epoch)
	for i := range 33 {
		p := benchPod(3*i, leaves[i*7])
		s.Upsert(p, epoch)
	}
	s.Start(epoch)
	var p *model.Pod
	for w := range s.model.Pending.Window.Pods() {
		if p == nil || w.UID < p.UID {
			p = w
		}
	}
	found := len(s.slots.Ahead(p, s.model.Cache.Nodes.Get("n1")))
	for b.Loop() {
		s.slots.Ahead(p, s.model.Cache.Nodes.Get("n1"))
	}
	b.ReportMetric(float64(found), "ahead")
}
