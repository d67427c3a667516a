package process

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
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

const (
	// announceEvery is how often the announcer looks for something to write.
	announceEvery = 500 * time.Millisecond
	// announceAtOnce bounds the events between two looks: 20 a second.
	announceAtOnce = 10
)

// announcer writes events on objects other than pods, while this process leads.
// What there is to say before that, such as a mistake that was there at the
// start, is kept and said then, once, unless it was settled in between.
type announcer struct {
	recorder clientevents.EventRecorder // nil for one that says nothing
	leading  func() bool
	led      bool // at the last look

	mu      sync.Mutex // guards the rest
	last    map[types.UID]*announcement
	waiting []*announcement // in the order in which they came up
}

// announcement is what is wrong with an object.
type announcement struct {
	about  object
	why    reasons.Reason
	action string
	over   bool // something else is wrong by now, or nothing
}

// object is what an event can be about.
type object interface {
	runtime.Object
	GetUID() types.UID
}

func newAnnouncer(recorder clientevents.EventRecorder, leading func() bool) *announcer {
	return &announcer{recorder: recorder, leading: leading, last: map[types.UID]*announcement{}}
}

// say has a warning written about an object, unless it is the last one that was.
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

// settle says that nothing is wrong with an object any more.
func (a *announcer) settle(about object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last := a.last[about.GetUID()]; last != nil {
		last.over = true
		delete(a.last, about.GetUID())
	}
}

// compact keeps what waits from growing on a standby: of each object at most one
// announcement is not over.
func (a *announcer) compact() {
	if len(a.waiting) > 100+2*len(a.last) {
		a.waiting = slices.DeleteFunc(a.waiting, func(w *announcement) bool { return w.over })
	}
}

// run writes what there is to write until the context ends.
func (a *announcer) run(ctx context.Context, clock clock.WithTicker) {
	ticker := clock.NewTicker(announceEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			a.look()
		}
	}
}

// look writes what waits. It does so from the second look on at which this
// process leads: without leader election it leads before the scheduler takes events.
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

// take returns at most limit announcements that are to be made.
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

// namespace has an event written on a namespace with annotations that cannot be
// understood.
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
