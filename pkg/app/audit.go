package app

import (
	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/pkg/audit"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/rest"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// audit makes the auditors: the one of drift, which the caller starts, and what the health check
// runs. No check holds the lock of the store for longer than a reader of pages does.
func (p *Process) audit(
	s *store.Store, w *informer.Watcher, books *inventory.Inventory, logger klog.Logger,
) (*audit.Drift, []rest.HealthCheck) {
	sums := &audit.Books{Inventory: books, Owners: s.OwnersUse}
	drift := &audit.Drift{
		Inventory: books, Truth: w, Clock: p.Clock, Logger: logger.WithName("audit"), Count: metrics.Drifted[audit.Kind],
	}
	metrics.Audited(audit.Kinds)
	return drift, []rest.HealthCheck{
		{Name: "Books", Description: "every queue, user and group is charged with the sum of its pods", Run: sums.Check},
		{Name: "Pods", Description: "the pods in the books are those of the API server now", Run: drift.Now},
		{Name: "Drift", Description: "every minute: pods and nodes in the books equal the API server's, and each queue is charged with the sum of its pods", Run: drift.Check},
	}
}
