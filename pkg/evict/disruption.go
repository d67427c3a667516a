package evict

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/pkg/queues/store"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// lastPatience is how long a failure is put up with once somebody has left for
// the asker.
const lastPatience = 2 * time.Minute

// errHalted: nobody else is to go for now.
var errHalted = errors.New("nobody else is to go")

// disruption is the victims of one plan on their way out.
//
// They are tried in rounds: in each, all that are left; then one back-off. After a final failure the next rounds have the failed ones only.
type disruption struct {
	*Executor
	work   store.Work
	chosen int // victims of the claim, gone or not
	left   []*victim
	halted atomic.Bool // a failure of this round is final
	told   bool        // that a victim was refused while others have left
}

func newDisruption(e *Executor, w store.Work, going []store.Victim) *disruption {
	d := &disruption{Executor: e, work: w, chosen: max(len(w.Hold.Claim().Victims), len(going))}
	for _, v := range going {
		d.left = append(d.left, &victim{Victim: v})
	}
	return d
}

// run lets all victims go. If it fails, those that are left stay, and are not
// marked any more, unless this process may not write.
func (d *disruption) run(ctx context.Context) error {
	began := d.Clock.Now()
	for round := 0; len(d.left) > 0; round++ {
		d.try(ctx, d.turn())
		var left []*victim
		for _, v := range d.left {
			if !v.gone {
				left = append(left, v)
			}
		}
		d.left = left
		if len(left) == 0 {
			break
		}
		if d.stopped(ctx, nil) {
			return errNotLeading
		}
		if err := d.hopeless(d.Clock.Since(began)); err != nil {
			d.spare(ctx)
			return err
		}
		d.tellStuck()
		if err := d.pause(ctx, backoff(round)); err != nil {
			return err
		}
	}
	return nil
}

// tellStuck tells, once, that a victim was refused while others have left: the
// plan is neither carried out nor given up for a while.
func (d *disruption) tellStuck() {
	v := d.worst()
	if !v.refused || d.told {
		return
	}
	d.told = true
	d.Logger.Error(v.err, "A pod that is to make room does not go; trying on", "victim", ref(v.Ref), "pod", ref(d.work.Ref), "patience", lastPatience)
	if pod, err := d.asker(d.work.Ref); err == nil {
		d.Recorder(pod.Spec.SchedulerName).Eventf(pod, nil, corev1.EventTypeWarning, string(reasons.MakingRoom), "Preempting", "%s",
			d.Note(fmt.Sprintf("Pod %s/%s%s, which is to make room on node %s, does not go: %v. It is tried again for up to %v, then the plan is given up.",
				v.Namespace, v.Name, ofQueue(v.Victim), d.work.Hold.Node, v.err, lastPatience)))
	}
}

// turn is who is tried next.
func (d *disruption) turn() []*victim {
	var refused []*victim
	for _, v := range d.left {
		if v.refused {
			refused = append(refused, v)
		}
	}
	if len(refused) > 0 {
		return refused
	}
	return d.left
}

// try tries each of them once, in order, as many at the same time as calls may
// be in flight.
func (d *disruption) try(ctx context.Context, turn []*victim) {
	d.halted.Store(false)
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(len(turn), cap(d.flight)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(turn); i = int(next.Add(1)) - 1 {
				d.tryOne(ctx, turn[i])
			}
		})
	}
	all.Wait()
}

func (d *disruption) tryOne(ctx context.Context, v *victim) {
	switch err := d.letGo(ctx, v); {
	case err == nil, errors.Is(err, errGone):
		v.gone = true
	case !errors.Is(err, errHalted):
		v.err = err
		v.refused = v.refused || final(err)
	}
}

// step makes a call for a victim, unless it is not wanted any more: a failure was
// final, or nobody waits for the room.
func (d *disruption) step(ctx context.Context, do func(context.Context) error) error {
	may := func() error {
		if d.halted.Load() || d.pointless() {
			return errHalted
		}
		return nil
	}
	return d.call(ctx, may, func(ctx context.Context) error {
		err := do(ctx)
		if final(err) && !errors.Is(err, errGone) {
			d.halted.Store(true) // before somebody else's call takes the place of this one
		}
		return err
	})
}

// pointless tells whether nobody waits for the room any more.
func (d *disruption) pointless() bool {
	if d.over(d.work.UID) {
		return true
	}
	_, err := d.asker(d.work.Ref)
	return errors.Is(err, errGone)
}

// hopeless returns why the plan is not carried out; nil while it may be.
func (d *disruption) hopeless(after time.Duration) error {
	if d.pointless() {
		return errHalted
	}
	begun := d.begun()
	most := patience
	if begun {
		most = lastPatience
	}
	worst := d.worst()
	if worst.refused && !begun || after >= most {
		return worst.err
	}
	return nil
}

// begun tells whether somebody has left for the asker, now or before.
func (d *disruption) begun() bool { return len(d.left) < d.chosen }

// worst is the victim that is to be named: the first that was refused, else the
// first that failed. After a round in which nobody was halted there is one.
func (d *disruption) worst() *victim {
	turn := d.turn()
	if i := slices.IndexFunc(turn, func(v *victim) bool { return v.err != nil }); i >= 0 {
		return turn[i]
	}
	return turn[0]
}

// failure is why the plan was given up.
func (d *disruption) failure(err error) reasons.Reason {
	if errors.Is(err, errHalted) {
		return reasons.New(reasons.HoldGivenUp, "node %s: pod %s/%s, for which room was being made, is gone",
			d.work.Hold.Node, d.work.Namespace, d.work.Name)
	}
	v := d.worst()
	return reasons.New(reasons.HoldGivenUp, "node %s: pod %s/%s%s does not go: %v; of %d pods that were to go %d stay",
		d.work.Hold.Node, v.Namespace, v.Name, ofQueue(v.Victim), err, d.chosen, len(d.left))
}
