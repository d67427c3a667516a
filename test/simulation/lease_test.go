package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

const leaseName = "paddock-scheduler"

// lease is the object by which schedulers elect a leader.
type lease struct {
	mu      sync.Mutex
	version int
	record  *resourcelock.LeaderElectionRecord
	written time.Time
}

// leaseLock is one scheduler's access to the lease.
type leaseLock struct {
	lease *lease
	in    *instance
	seen  int // version that was last read
}

// Get reads the lease.
func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	var found *resourcelock.LeaderElectionRecord
	version := 0
	err := l.call(ctx, "get", func() error {
		if l.lease.record == nil {
			return apierrors.NewNotFound(leases, leaseName)
		}
		record := *l.lease.record
		found, version = &record, l.lease.version
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	l.seen = version
	raw, err := json.Marshal(found)
	return found, raw, err
}

// Create makes the lease.
func (l *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "create", record, func() bool { return l.lease.record == nil })
}

// Update writes the lease if it has not changed since it was read.
func (l *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	seen := l.seen
	return l.write(ctx, "update", record, func() bool { return l.lease.version == seen })
}

// The write may take effect although the client gets an error or no answer. Then the
// version that it saw is not the current one.
func (l *leaseLock) write(ctx context.Context, verb string, record resourcelock.LeaderElectionRecord, may func() bool) error {
	version := 0
	err := l.call(ctx, verb, func() error {
		if !may() || l.in.sim.bug == bugVacant && record.LeaderTransitions > 0 {
			return apierrors.NewConflict(leases, leaseName, errors.New("another process has written it"))
		}
		l.lease.version++
		l.lease.record, version, l.lease.written = &record, l.lease.version, time.Now()
		return nil
	})
	if err == nil {
		l.seen = version
	}
	return err
}

// call accesses the lease, unless the call fails before.
func (l *leaseLock) call(ctx context.Context, verb string, do func() error) error {
	return l.in.call(ctx, verb, leaseName, func() error {
		if err := l.in.cutOff(); err != nil {
			return err
		}
		l.lease.mu.Lock()
		defer l.lease.mu.Unlock()
		return do()
	})
}

func (*leaseLock) RecordEvent(string) {}
func (l *leaseLock) Identity() string { return l.in.name }
func (*leaseLock) Describe() string   { return "lease" }
