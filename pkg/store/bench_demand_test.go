package store

import (
	"fmt"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// BenchmarkDemand measures one computation of the demand over pods that found no node.
func BenchmarkDemand(b *testing.B) {
	for _, pods := range []int{100, 1_000, 10_000} {
		b.Run(fmt.Sprint(pods), func(b *testing.B) {
			s, all := benchStore(b, pods, pods, "")
			for i := range all {
				s.Gate(all[i].UID, epoch)
				s.NoNode(all[i].UID, "", reasons.New(reasons.NoNodeFits, "0 of 1 nodes fit"), epoch)
			}
			now := epoch
			b.ReportAllocs()
			for b.Loop() {
				now = now.Add(time.Second)
				s.model.Pending.Demand.Changed()
				s.demand.Take(0, now)
			}
		})
	}
}
