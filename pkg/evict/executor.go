package evict

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// Store is the source of the work, and receives the results.
type Store interface {
	// Work is signalled when there may be work to take.
	Work() <-chan struct{}
	// TakeWork returns the pending writes, each once, in order.
	TakeWork() []store.Work
	// Commit returns the victims still to be deleted for the asker, all of which are in
	// its claim. If the plan is not lawful any more, it ends the hold and returns the
	// reason. InPermit are the pods that wait for a Permit plugin.
	Commit(asker types.UID, inPermit []types.UID, now time.Time) ([]store.Victim, reasons.Reason)
	// Disrupted reports that all victims are deleted or terminating.
	Disrupted(asker types.UID, now time.Time)
	// GiveUp reports that not all victims can be deleted.
	GiveUp(asker types.UID, why reasons.Reason, now time.Time)
	// CallOff reports the same for a node-bound asker if no victim was deleted, because
	// one of them is being bound right now. Its node stays held.
	AbortPlan(asker types.UID, why reasons.Reason, now time.Time)
	// KubeletRefused reports the reason why the kubelet had no capacity for an asker that
	// is gone; empty if it ended in another way. It returns the text for people.
	KubeletRefused(asker types.UID, reason string, now time.Time) reasons.Reason
	// KeepsOff returns the asker for which other schedulers must be kept off a node,
	// because victims are chosen for it; empty for none. It returns false while, as far
	// as the store knows, this process does not lead.
	KeepsOff(node string) (asker types.UID, ready bool)
}

// Executor carries out the work of a store. Fill in the fields, then call Run once.
type Executor struct {
	Store  Store
	Client kubernetes.Interface
	Pods   corelisters.PodLister
	// Recorder returns the recorder of a profile.
	Recorder func(profile string) events.EventRecorder
	// Leading reports whether this process may write.
	Leading func() bool
	// Reject rejects a pod that waits in Permit, with a message. It returns false and
	// does nothing if the pod does not wait there. Nil means that no pod does.
	Reject func(pod types.UID, message string) bool
	// InPermit lists the pods that wait in Permit. Nil means that no pod does.
	InPermit func() []types.UID
	// Note makes a text fit for an event. Advice renders a reason with what to do about
	// it.
	Note   func(text string) string
	Advice func(why reasons.Reason) string
	// Taints keeps other schedulers off held nodes; nil for no taints.
	Taints *Taints
	Clock  clock.WithTicker
	// Parallel is the maximal number of API calls in flight; 0 means 16.
	Parallel int
	Logger   klog.Logger

	flight chan struct{} // has one element for each call in flight
	lanes  lanes
}

const (
	defaultParallel = 16
	// lookInterval is how often the executor checks for work without a signal. A signal
	// that came while this process did not lead is not repeated.
	lookInterval = time.Second
)

// Run carries out work until the context ends. When it returns, all its goroutines have
// ended.
func (e *Executor) Run(ctx context.Context) {
	e.prepare()
	defer e.lanes.running.Wait()
	ticker := e.Clock.NewTicker(lookInterval)
	defer ticker.Stop()
	looked := e.Clock.Now()
	for ctx.Err() == nil {
		if e.Leading() {
			e.dispatch(ctx, e.Store.TakeWork())
			if now := e.Clock.Now(); now.Sub(looked) >= taintInterval {
				looked = now
				e.lookAtTaints(ctx)
			}
		}
		select {
		case <-ctx.Done():
		case <-e.Store.Work():
		case <-ticker.C():
		}
	}
}

func (e *Executor) prepare() {
	parallel := e.Parallel
	if parallel <= 0 {
		parallel = defaultParallel
	}
	e.flight = make(chan struct{}, parallel)
	e.lanes.of = map[types.UID]*lane{}
}

// carryOut does one piece of work. What was not finished because this process may not
// write any more is left as it is.
func (e *Executor) carryOut(ctx context.Context, w store.Work) {
	switch w.Kind {
	case store.WorkDisrupt:
		e.disrupt(ctx, w)
	case store.WorkRecord:
		if err := e.record(ctx, w); err != nil && !errors.Is(err, errGone) && !e.stopped(ctx, err) {
			e.Logger.Error(err, "Cannot write when the node became clear; after a restart the hold lasts longer",
				"pod", ref(w.Ref), "node", w.Hold.Node)
		}
	case store.WorkRelease:
		e.release(ctx, w)
	case store.WorkTell:
		e.tellAsker(w, nil)
	case store.WorkInquire:
		e.inquire(ctx, w)
	}
}

// disrupt writes the claim of a hold, taints the node, then deletes the victims.
func (e *Executor) disrupt(ctx context.Context, w store.Work) {
	if err := e.record(ctx, w); err != nil {
		if !e.stopped(ctx, err) {
			e.giveUp(w, reasons.New(reasons.HoldGivenUp, "node %s: the claim of pod %s/%s cannot be written: %v",
				w.Hold.Node, w.Namespace, w.Name, err))
		}
		return
	}
	if err := e.keepOthersOff(ctx, w); err != nil {
		if !e.stopped(ctx, err) {
			e.giveUp(w, cannotTaint(w, err))
		}
		return
	}
	if e.over(w.UID) || e.stopped(ctx, nil) {
		return
	}
	going, why := e.Store.Commit(w.UID, e.inPermit(), e.Clock.Now())
	if !why.None() {
		e.Logger.V(2).Info("The plan is off", "pod", ref(w.Ref), "node", w.Hold.Node, "why", why.String())
		return
	}
	if !claims(w, going) {
		return // decided anew meanwhile: the work of that decision writes its claim and the taint first
	}
	d := newDisruption(e, w, going)
	switch err := d.run(ctx); {
	case e.stopped(ctx, err):
	case err == nil:
		e.made(w, going)
	case e.over(w.UID):
	case errors.Is(err, errBinding) && w.Hold.Required && !d.begun():
		why := d.failure(err)
		e.Logger.V(2).Info("The plan is off", "pod", ref(w.Ref), "node", w.Hold.Node, "why", why.Text)
		e.Store.AbortPlan(w.UID, why, e.Clock.Now())
		e.letOthersOn(ctx, w.Hold.Node, 0)
	default:
		e.giveUp(w, d.failure(err))
	}
}

// claims reports whether the claim that a piece of work wrote contains all pods to be
// deleted.
func claims(w store.Work, going []store.Victim) bool {
	return !slices.ContainsFunc(going, func(v store.Victim) bool { return !slices.Contains(w.Hold.Chosen, v.UID) })
}

// made reports to the store and in an event that all victims of a plan were deleted. If a
// victim stops at once, the asker may be bound, and its hold over, before that. The event
// names the victims all the same.
func (e *Executor) made(w store.Work, going []store.Victim) {
	over := e.over(w.UID)
	if !over {
		e.Logger.V(2).Info("Room is made", "pod", ref(w.Ref), "node", w.Hold.Node, "victims", len(going))
		e.Store.Disrupted(w.UID, e.Clock.Now())
	}
	if !over || len(going) > 0 {
		e.tellAsker(w, going)
	}
}

func (e *Executor) inPermit() []types.UID {
	if e.InPermit == nil {
		return nil
	}
	return e.InPermit()
}

// giveUp reports to the store that the plan cannot be completed, unless its hold is
// already over: the asker may have another hold by now.
func (e *Executor) giveUp(w store.Work, why reasons.Reason) {
	if e.over(w.UID) {
		return
	}
	e.Logger.Info("Making room is given up", "pod", ref(w.Ref), "node", w.Hold.Node, "why", why.Text)
	e.Store.GiveUp(w.UID, why, e.Clock.Now())
}

// tellAsker writes an event on the asker that names its victims, or says why there are
// none.
func (e *Executor) tellAsker(w store.Work, going []store.Victim) {
	pod, err := e.asker(w.Ref)
	if err != nil {
		return
	}
	if !w.Reason.None() {
		e.warn(pod, w.Reason)
		return
	}
	reason := reasons.MakingRoom
	switch d := w.Required; {
	case len(going) > 0:
	case d != nil && d.Stopped != "":
		reason = reasons.RoomAwaited
	default:
		reason = reasons.WaitingForRoom
	}
	e.Recorder(pod.Spec.SchedulerName).Eventf(pod, nil, corev1.EventTypeNormal, string(reason), "Preempting", "%s",
		e.Note(askerNote(w, going)))
}

func ref(r objects.Ref) klog.ObjectRef { return klog.KRef(r.Namespace, r.Name) }
