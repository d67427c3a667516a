package metrics

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/unmet"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// lookInterval is how often it is looked which queues have lawful unmet demand.
const lookInterval = time.Second

// Guarantees measures for how long queues have lawful unmet demand. Fill the
// fields, then call Run once.
type Guarantees struct {
	Store *store.Readers
	// Leading tells whether this process is the one that makes room: one that stands
	// by measures nothing, or the time would be counted twice.
	Leading func() bool
	Clock   clock.WithTicker

	meter unmet.Meter
}

// Run looks once a second until the context ends.
func (g *Guarantees) Run(ctx context.Context) {
	loop.Every(ctx, g.Clock, lookInterval, func() { g.look(g.Clock.Now()) })
}

func (g *Guarantees) look(now time.Time) {
	if !g.Leading() {
		g.meter.Pause()
		return
	}
	s := g.Store.Snapshot()
	found := unmet.Find(s, func(leaves []*queues.Queue) []reasons.Code { return g.Store.WaitsFor(leaves, now) })
	before, passed, ended := g.meter.Look(now, found)
	for _, d := range before {
		unmetTime.add(countKey{d.Queue, string(d.Reason)}, int64(passed))
	}
	for _, took := range ended {
		timeToGuaranteeSeconds.Observe(took.Seconds())
	}
}
