package metrics

import (
	"iter"
	"slices"

	"k8s.io/component-base/metrics"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// choose returns the queues with series of their own: all, or the first most in
// breadth-first order from root, siblings by name. The order is fixed, so each scrape shows
// the same queues, and a hidden queue is included in a shown ancestor. hidden counts the
// others. A queue has about a dozen series, which cost the scheduler what
// docs/performance.md says, and Prometheus more.
func choose(s *queues.Snapshot, most int) (shown []*queues.Queue, hidden int) {
	if most > 0 {
		shown = append(shown, s.Root())
	}
	for i := 0; i < len(shown) && len(shown) < most; i++ {
		children := shown[i].Children
		for _, id := range children[:min(len(children), most-len(shown))] {
			shown = append(shown, s.Queue(id))
		}
	}
	return shown, s.Len() - len(shown)
}

// everyType are the types for which every queue says what it uses.
var everyType = []string{resources.CPU, resources.Memory, resources.Pods}

// typesOf are the types that a queue says something about: those of every queue,
// those it has a quota for, and those that are used or waited for in it.
func typesOf(q *queues.Queue) []string {
	types := slices.Clone(everyType)
	for _, amounts := range []iter.Seq2[string, resources.Amount]{q.Guaranteed.All(), q.Max.All(), q.Allocated.All(), q.Pending.All()} {
		for name := range amounts {
			if !slices.Contains(types, name) {
				types = append(types, name)
			}
		}
	}
	return types
}

// collectQueue shows a queue. A limit that it does not have, and leaving and
// arriving pods where there are none, have no series.
func collectQueue(ch chan<- metrics.Metric, s *queues.Snapshot, q *queues.Queue) {
	limit := s.ShownMax(q)
	for _, name := range typesOf(q) {
		show := func(amount resources.Amount, state string) {
			gauge(ch, resourceDesc, inUnits(name, amount), q.Path, name, state)
		}
		show(q.Allocated.Get(name), "allocated")
		show(q.Pending.Get(name), "pending")
		if g, ok := q.Guaranteed.Get(name); ok {
			show(g, "guaranteed")
		}
		if most, ok := limit.Get(name); ok {
			show(most, "max")
		}
		if amount := q.Leaving.Get(name); amount != 0 {
			show(amount, "leaving")
		}
		if amount := q.Arriving.Get(name); amount != 0 {
			show(amount, "arriving")
		}
	}
	gauge(ch, applicationsDesc, float64(q.Applications), q.Path, "all")
	gauge(ch, applicationsDesc, float64(q.Running), q.Path, "running")
	if q.MaxApplications > 0 {
		gauge(ch, applicationsDesc, float64(q.MaxApplications), q.Path, "max")
	}
}

// inUnits converts an amount to the unit of Prometheus: cores, bytes or a count.
func inUnits(name string, amount resources.Amount) float64 {
	if name == resources.CPU {
		return float64(amount) / 1000
	}
	return float64(amount)
}
