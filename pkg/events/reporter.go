package events

import (
	"context"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/output"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/internal/apianswer"
	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Admitted is the pod condition that says whether the pod was let through to
// be scheduled; its reason is a code of package reasons while it was not.
const Admitted corev1.PodConditionType = reasons.AdmittedCondition

// admittedReason is the condition's reason once the pod was let through.
const admittedReason = "Admitted"

// Reports is where the reporter gets what there is to tell.
type Reports interface {
	NextReports(now time.Time, limit int) []output.Report
}

// Reporter writes conditions and events on waiting pods. Fill the fields, then
// call Run.
type Reporter struct {
	Reports Reports
	Client  kubernetes.Interface
	Pods    corelisters.PodLister
	// Recorder returns the recorder that speaks for a profile.
	Recorder func(profile string) events.EventRecorder
	// Leading tells whether this process may write.
	Leading func() bool
	Clock   clock.WithTicker
	// Limiter bounds the writes; nil means 20 pods a second, 50 at once.
	Limiter flowcontrol.RateLimiter
	Logger  klog.Logger

	left []pending // taken and not told yet: those that were not tried come first
}

// pending is a report that was taken and not told yet.
type pending struct {
	output.Report
	failed bool
}

const (
	// batch is how many reports are taken from the store at a time, and the burst of the
	// limiter.
	batch = 50
	// atOnce is how many reports about the demand are written at a time. One write after
	// another is some 200 in a second.
	atOnce = 16
)

// Run tells what there is to tell until the context ends.
func (r *Reporter) Run(ctx context.Context) {
	if r.Limiter == nil {
		r.Limiter = flowcontrol.NewTokenBucketRateLimiter(20, batch)
	}
	loop.Every(ctx, r.Clock, 100*time.Millisecond, func() {
		if r.Leading() {
			r.tell(ctx)
		}
	})
}

// tell takes the next reports and writes them. What cannot be written now is
// kept for the next time, because the store counts a report that was taken as told. New reports
// come before each that failed, so neither a pod with a status that cannot be written nor
// the reports of an outage delay other pods.
// The first report that fails again ends the attempt.
func (r *Reporter) tell(ctx context.Context) {
	for r.Leading() && ctx.Err() == nil {
		if len(r.left) == 0 || r.left[0].failed {
			r.take()
		}
		if len(r.left) == 0 || !r.tellNext(ctx) {
			return
		}
	}
}

// tellNext writes the first report, or up to atOnce that come first and are about the demand,
// and keeps as the last ones those that fail. It is false where the attempt ends.
func (r *Reporter) tellNext(ctx context.Context) bool {
	n := min(len(r.left), atOnce)
	if other := slices.IndexFunc(r.left[1:n], func(p pending) bool { return p.Demand == objects.DemandUnsaid || p.failed }); other >= 0 {
		n = other + 1
	}
	if r.left[0].Demand == objects.DemandUnsaid { // the others are not delayed: autoscalers add nodes by them
		n = 1
		if err := r.Limiter.Wait(ctx); err != nil || !r.Leading() {
			return false
		}
	}
	next, errs := slices.Clone(r.left[:n]), make([]error, n)
	workqueue.ParallelizeUntil(ctx, atOnce, n, func(i int) { errs[i] = r.Tell(ctx, next[i].Report) })
	r.left = r.left[n:]
	for i, err := range errs {
		report := next[i]
		if err != nil && !report.failed && !apierrors.IsConflict(err) { // a pod changes at any time
			r.Logger.Error(err, "Cannot write on a pod why it waits. If rights are missing, let the scheduler patch pods/status", "pod", klog.KRef(report.Namespace, report.Name))
		}
		if err == nil || apianswer.Final(err) {
			continue
		}
		r.left = append(r.left, pending{report.Report, true})
		if report.failed {
			return false // it was the only one
		}
	}
	return true
}

// take puts the next reports before those that failed, in the place of older ones that
// say the same kind of thing about the same pod.
func (r *Reporter) take() {
	type subject struct {
		pod             types.UID
		warning, demand bool
	}
	of := func(o output.Report) subject { return subject{o.UID, o.Warning, o.Demand != objects.DemandUnsaid} }
	var next []pending
	newer := map[subject]bool{}
	for _, report := range r.Reports.NextReports(r.Clock.Now(), batch) {
		next = append(next, pending{Report: report})
		newer[of(report)] = true
	}
	r.left = append(next, slices.DeleteFunc(r.left, func(p pending) bool { return newer[of(p.Report)] })...)
}

// Tell writes one report: the condition first, then the event. A warning is an
// event only. A pod that is gone, or another one of the same name, is left alone.
func (r *Reporter) Tell(ctx context.Context, report output.Report) error {
	pod := informer.Find(r.Pods, report.Ref)
	if pod == nil {
		return nil
	}
	if report.Warning {
		r.event(pod, string(report.Reason.Code), report.Reason.Advice())
		return nil
	}
	if report.Demand != objects.DemandUnsaid {
		return r.tellDemand(ctx, pod, report)
	}
	return r.tellAdmitted(ctx, pod, report)
}

func (r *Reporter) event(pod *corev1.Pod, reason, note string) {
	r.Recorder(pod.Spec.SchedulerName).Eventf(pod, nil, corev1.EventTypeWarning, reason, "Scheduling", "%s", note)
}

// tellAdmitted writes the condition, and an event that says the same if the pod waits.
func (r *Reporter) tellAdmitted(ctx context.Context, pod *corev1.Pod, report output.Report) error {
	status, reason, message := corev1.ConditionTrue, admittedReason, "the pod was let through to be scheduled"
	waits := !report.Reason.None()
	if waits {
		status, reason, message = corev1.ConditionFalse, string(report.Reason.Code), report.Reason.Advice()
	}
	written, err := r.patch(ctx, pod, map[string]any{"uid": pod.UID}, map[string]any{
		"type": Admitted, "status": status, "reason": reason, "message": message,
		"lastTransitionTime": r.since(pod, status),
	})
	if written && waits {
		r.event(pod, reason, message)
	}
	return err
}

// since is when the condition of the pod got the status: now, unless it has it.
func (r *Reporter) since(pod *corev1.Pod, status corev1.ConditionStatus) metav1.Time {
	if c := informer.Condition(pod, Admitted); c != nil && c.Status == status && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime
	}
	return metav1.NewTime(r.Clock.Now())
}
