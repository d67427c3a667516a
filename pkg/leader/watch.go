package leader

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Watch returns a lock that does what the given one does and keeps the gate in step with
// its holder. Each successful write of ours opens the gate for the validity, but not
// longer than the lease duration that was written; pass the elector's renew deadline.
// Hand the result to the elector in place of the lock.
func Watch(lock resourcelock.Interface, gate *Gate, validity time.Duration) resourcelock.Interface {
	return &watched{Interface: lock, gate: gate, validity: validity}
}

// watched is a resource lock under Watch.
type watched struct {
	resourcelock.Interface
	gate     *Gate
	validity time.Duration
	led      bool // we have written our name; the elector makes one call at a time
}

// errLed ends a process that may have lost the lease to another one and could get it
// again, as after a suspension of the machine. Its state is older than what the other
// process has written.
var errLed = errors.New("another process may have led meanwhile: this one ends")

// Get closes the gate if the lease is gone or held by another process. Our own name
// proves nothing: it says which process wrote last, not when. If the lease was ours, the
// elector gets an error, and the scheduler exits after the renew deadline.
func (w *watched) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := w.Interface.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		w.gate.close()
	case err == nil && record.HolderIdentity != w.Identity():
		w.gate.close()
		if w.led {
			return nil, nil, errLed
		}
	}
	return record, raw, err
}

// Create opens the gate if the lease could be made in our name.
func (w *watched) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.write(ctx, record, w.Interface.Create)
}

// Update opens the gate, or keeps it open, if the lease could be written in our
// name. Any other name gives the lease away: the gate closes before it is sent.
func (w *watched) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return w.write(ctx, record, w.Interface.Update)
}

func (w *watched) write(
	ctx context.Context,
	record resourcelock.LeaderElectionRecord,
	send func(context.Context, resourcelock.LeaderElectionRecord) error,
) error {
	ours := record.HolderIdentity == w.Identity()
	if !ours {
		w.gate.close()
	}
	begun := w.gate.now()
	if err := send(ctx, record); err != nil {
		return err
	}
	if ours {
		w.led = true
		lease := time.Duration(record.LeaseDurationSeconds) * time.Second
		w.gate.extend(begun.add(min(w.validity, lease)))
	}
	return nil
}
