package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// lease is the object by which schedulers agree on who leads.
type lease struct {
	mu      sync.Mutex
	version int
	record  *resourcelock.LeaderElectionRecord
}

// leaseLock is how one scheduler gets at the lease.
type leaseLock struct {
	lease *lease
	in    *instance
	seen  int // version that was read last
}

// Get reads the lease.
func (l *leaseLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.in.cutOff(); err != nil {
		return nil, nil, err
	}
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if l.lease.record == nil {
		return nil, nil, apierrors.NewNotFound(leases, "paddock-scheduler")
	}
	l.seen = l.lease.version
	record := *l.lease.record
	raw, err := json.Marshal(record)
	return &record, raw, err
}

// Create makes the lease.
func (l *leaseLock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() bool { return l.lease.record == nil })
}

// Update writes the lease as it was read.
func (l *leaseLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(record, func() bool { return l.lease.version == l.seen })
}

func (l *leaseLock) write(record resourcelock.LeaderElectionRecord, may func() bool) error {
	if err := l.in.cutOff(); err != nil {
		return err
	}
	l.lease.mu.Lock()
	defer l.lease.mu.Unlock()
	if !may() {
		return apierrors.NewConflict(leases, "paddock-scheduler", errors.New("somebody else has written it"))
	}
	l.lease.version++
	l.lease.record, l.seen = &record, l.lease.version
	return nil
}

func (*leaseLock) RecordEvent(string) {}
func (l *leaseLock) Identity() string { return l.in.name }
func (*leaseLock) Describe() string   { return "lease" }
