package app

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/events"
	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

const (
	// announceEvery is how often the announcer checks for events to write.
	announceEvery = 500 * time.Millisecond
	// announceAtOnce limits the events per check; it results in 20 per second.
	announceAtOnce = 10
)

// announcer writes events on objects other than pods, while this process leads.
// Announcements from before that, such as a mistake that existed at the start, are kept
// and written then, once, unless they were settled in between.
type announcer struct {
	recorder clientevents.EventRecorder // nil: write no events
	leading  func() bool
	led      bool // at the last check

	mu      sync.Mutex // guards the rest
	last    map[types.UID]*announcement
	waiting []*announcement // in the order in which they were made
}

// announcement is what is wrong with an object.
type announcement struct {
	about  object
	why    reasons.Reason
	action string
	over   bool // it no longer applies
}

// object is what an event can be about.
type object interface {
	runtime.Object
	GetUID() types.UID
}

func newAnnouncer(recorder clientevents.EventRecorder, leading func() bool) *announcer {
	return &announcer{recorder: recorder, leading: leading, last: map[types.UID]*announcement{}}
}

// say queues a warning about an object, unless it equals the last one.
func (a *announcer) say(about object, why reasons.Reason, action string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := a.last[about.GetUID()]
	if last != nil && last.why == why {
		return
	}
	if last != nil {
		last.over = true
	}
	next := &announcement{about: about, why: why, action: action}
	a.last[about.GetUID()] = next
	a.waiting = append(a.waiting, next)
	a.compact()
}

// settle records that nothing is wrong with an object any more.
func (a *announcer) settle(about object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.last[about.GetUID()]; last != nil {
		last.over = true
		delete(a.last, about.GetUID())
	}
}

// compact limits the length of waiting on a standby: at most one announcement per object
// is not over.
func (a *announcer) compact() {
	if len(a.waiting) > 100+2*len(a.last) {
		a.waiting = slices.DeleteFunc(a.waiting, func(w *announcement) bool { return w.over })
	}
}

// run writes events until the context ends.
func (a *announcer) run(ctx context.Context, clock clock.WithTicker) {
	loop.Every(ctx, clock, announceEvery, a.look)
}

// look writes the waiting announcements. It starts at the second check at which this
// process leads, because without leader election the process leads before the scheduler
// accepts events.
func (a *announcer) look() {
	led, leads := a.led, a.leading()
	a.led = leads
	if !led || !leads {
		return
	}
	for _, w := range a.take(announceAtOnce) {
		if a.recorder != nil {
			a.recorder.Eventf(w.about, nil, corev1.EventTypeWarning, string(w.why.Code), w.action, "%s", events.Advice(w.why))
		}
	}
}

// take returns at most limit announcements that are not over.
func (a *announcer) take(limit int) []*announcement {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []*announcement
	for ; len(a.waiting) > 0 && len(out) < limit; a.waiting = a.waiting[1:] {
		if w := a.waiting[0]; !w.over {
			out = append(out, w)
		}
	}
	return out
}

// namespace queues an event about a namespace with invalid annotations.
func (a *announcer) namespace(ns *corev1.Namespace, wrong []error) {
	if len(wrong) == 0 {
		a.settle(ns)
		return
	}
	texts := make([]string, len(wrong))
	for i, err := range wrong {
		texts[i] = err.Error()
	}
	a.say(ns, reasons.New(reasons.NamespaceAnnotationInvalid, "%s", strings.Join(texts, "; ")), "Ignore")
}
