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

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// lastPatience is how long failures are tolerated once a victim has been deleted for the
// asker.
const lastPatience = 2 * time.Minute

// errHalted means that no further victim must be deleted for now.
var errHalted = errors.New("nobody else is to go")

// disruption deletes the victims of one plan.
//
// It works in rounds: each round tries all victims that are left, and is followed by one
// back-off. After a final failure, the next rounds try only the victims that failed.
type disruption struct {
	*Executor
	work   store.Work
	chosen int // victims of the claim, gone or not
	left   []*victim
	halted atomic.Bool // a failure of this round is final
	told   bool        // reported: a victim was refused after others were deleted
}

func newDisruption(e *Executor, w store.Work, going []store.Victim) *disruption {
	d := &disruption{Executor: e, work: w, chosen: max(len(w.Hold.Claim().Victims), len(going))}
	for _, v := range going {
		d.left = append(d.left, &victim{Victim: v})
	}
	return d
}

// run deletes all victims. If it fails, it clears the marks of the victims that are left,
// unless this process may not write.
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
		if err := d.impossible(d.Clock.Since(began)); err != nil {
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

// tellStuck reports, once, that a victim was refused after others were deleted. The plan
// can then be neither completed nor given up for a while.
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

// turn returns the victims to try next.
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

// try tries each victim once, in order, with as many parallel calls as may be in flight.
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

// step makes a call for a victim, unless the call is no longer wanted because a failure
// was final or the asker no longer waits.
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
			d.halted.Store(true) // before another call takes the slot of this one
		}
		return err
	})
}

// pointless reports whether the asker no longer waits for the node.
func (d *disruption) pointless() bool {
	if d.over(d.work.UID) {
		return true
	}
	_, err := d.asker(d.work.Ref)
	return errors.Is(err, errGone)
}

// impossible returns why the plan is given up; nil while it may continue.
func (d *disruption) impossible(after time.Duration) error {
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

// begun reports whether any victim has been deleted for the asker, in this run or before.
func (d *disruption) begun() bool { return len(d.left) < d.chosen }

// worst returns the victim to name in messages: the first that was refused, otherwise the
// first that failed. There is one after every round in which no call was halted.
func (d *disruption) worst() *victim {
	turn := d.turn()
	if i := slices.IndexFunc(turn, func(v *victim) bool { return v.err != nil }); i >= 0 {
		return turn[i]
	}
	return turn[0]
}

// failure returns why the plan was given up.
func (d *disruption) failure(err error) reasons.Reason {
	if errors.Is(err, errHalted) {
		return reasons.New(reasons.HoldGivenUp, "node %s: pod %s/%s, for which room was being made, is gone",
			d.work.Hold.Node, d.work.Namespace, d.work.Name)
	}
	v := d.worst()
	return reasons.New(reasons.HoldGivenUp, "node %s: pod %s/%s%s does not go: %v; of %d pods that were to go %d stay",
		d.work.Hold.Node, v.Namespace, v.Name, ofQueue(v.Victim), err, d.chosen, len(d.left))
}
