package app

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientevents "k8s.io/client-go/tools/events"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
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

	mu   locks.Mutex                  // guards the rest
	last map[types.UID]reasons.Reason // what is wrong with each object
	// waiting has at most one announcement about an object, in the order in which they
	// were made.
	waiting []announcement
}

// announcement is what is wrong with an object.
type announcement struct {
	about  object
	why    reasons.Reason
	action string
}

// object is what an event can be about.
type object interface {
	runtime.Object
	GetUID() types.UID
}

func newAnnouncer(recorder clientevents.EventRecorder, leading func() bool) *announcer {
	return &announcer{recorder: recorder, leading: leading, last: map[types.UID]reasons.Reason{}}
}

// say queues a warning about an object, unless it equals the last one.
func (a *announcer) say(about object, why reasons.Reason, action string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last[about.GetUID()] == why {
		return
	}
	a.withdraw(about.GetUID())
	a.last[about.GetUID()] = why
	a.waiting = append(a.waiting, announcement{about: about, why: why, action: action})
}

// drop withdraws what was said about an object, because nothing is wrong with it any more.
func (a *announcer) drop(about object) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.withdraw(about.GetUID())
	delete(a.last, about.GetUID())
}

// withdraw removes the announcement about an object that waits.
func (a *announcer) withdraw(uid types.UID) {
	a.waiting = slices.DeleteFunc(a.waiting, func(w announcement) bool { return w.about.GetUID() == uid })
}

// look writes the waiting announcements. It starts at the second check at which this process
// leads, because without leader election the process leads before the scheduler accepts events.
func (a *announcer) look() {
	led, leads := a.led, a.leading()
	a.led = leads
	if !led || !leads {
		return
	}
	for _, w := range a.take(announceAtOnce) {
		if a.recorder != nil {
			a.recorder.Eventf(w.about, nil, corev1.EventTypeWarning, string(w.why.Code), w.action, "%s", w.why.Advice())
		}
	}
}

// take takes the first announcements that wait, at most limit.
func (a *announcer) take(limit int) []announcement {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := min(limit, len(a.waiting))
	taken := a.waiting[:n]
	a.waiting = a.waiting[n:]
	return taken
}

// namespace queues an event about a namespace with invalid annotations.
func (a *announcer) namespace(ns *corev1.Namespace, wrong []error) {
	if len(wrong) == 0 {
		a.drop(ns)
		return
	}
	texts := make([]string, len(wrong))
	for i, err := range wrong {
		texts[i] = err.Error()
	}
	a.say(ns, reasons.New(reasons.NamespaceAnnotationInvalid, "%s", strings.Join(texts, "; ")), "Ignore")
}
