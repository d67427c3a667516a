package app

import (
	"time"

	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/pkg/audit"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/rest"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// auditors verify that the scheduler does what it reports.
type auditors struct {
	books *audit.Books
	drift *audit.Drift
}

// audit makes the auditors. The caller starts drift.
func (p *Process) audit(s *store.Store, w *informer.Watcher, books *inventory.Inventory, decided *record.Record, logger klog.Logger) auditors {
	logger = logger.WithName("audit")
	decided.Missing(metrics.StepsLost)
	drift := &audit.Drift{Inventory: books, Truth: w, Clock: p.Clock, Logger: logger, Count: metrics.Drifted[audit.Kind]}
	metrics.Audited(audit.Kinds)
	return auditors{&audit.Books{Inventory: books, Owners: s.OwnersUse}, drift}
}

// checks are run by the health check. None holds the lock of the store for longer than a
// reader of pages does.
func (a auditors) checks() []rest.HealthCheck {
	return []rest.HealthCheck{
		{Name: "Books", Description: "every queue, user and group is charged with the sum of its pods", Run: a.books.Check},
		{Name: "Pods", Description: "the pods in the books are those of the API server now", Run: a.drift.Now},
		{Name: "Drift", Description: "every minute: pods and nodes in the books equal the API server's, and each queue is charged with the sum of its pods", Run: func(func(time.Duration) bool) error { return a.drift.Check() }},
	}
}
