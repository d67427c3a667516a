package audit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
)

// Kind is the kind of thing that differs.
type Kind string

// The kinds. Pod and Node: the store and the API server differ. Quota: the charge of a queue
// is not the sum of its pods.
const (
	Pod   Kind = "pod"
	Node  Kind = "node"
	Quota Kind = "quota"
)

// Kinds are all kinds.
var Kinds = []Kind{Pod, Node, Quota}

const (
	// lookInterval is the time between two rounds.
	lookInterval = time.Minute
	// secondLook is the time between the two looks of a round.
	secondLook = 15 * time.Second
	// firstLook is how long after the start the first round is made.
	firstLook = 5 * time.Second
	// slice is how many things are compared at a time, and slicePause the pause after it.
	slice      = 200
	slicePause = 5 * time.Millisecond
	// soonLook is secondLook for a health check. Events are never that late.
	soonLook = 5 * time.Second
	// namedInCheck is how many differences a health check names.
	namedInCheck = 5
)

// Truth is what the API server says, as far as the informers know.
type Truth interface {
	// Pods and Nodes return all of them. Callers must not change them.
	Pods() []*corev1.Pod
	Nodes() []*corev1.Node
	// Read returns a pod as it is reported to the store; false if it is not reported.
	Read(pod *corev1.Pod) (objects.Pod, bool)
}

// Drift compares the store with what the API server says. Fill the fields, then
// call Run once.
type Drift struct {
	Inventory *inventory.Inventory
	Truth     Truth
	Clock     clock.Clock
	Logger    klog.Logger
	// Count counts a difference that was found; nil for no count.
	Count func(kind Kind)

	mu    locks.Mutex // guards known
	known map[name]difference
}

// name is something that may differ.
type name struct {
	kind Kind
	id   string
}

// difference is how the thing differs.
type difference struct {
	what    string // the thing, for people
	version string // of the object in the API server
	text    string
	since   time.Time // when it was first found to be drift
}

// Run compares from time to time until the context ends.
func (d *Drift) Run(ctx context.Context) {
	for rest := firstLook; loop.Pause(ctx, d.Clock, rest); rest = lookInterval {
		d.Round(ctx)
	}
}

// Round compares everything, and compares again what differs.
func (d *Drift) Round(ctx context.Context) {
	if !d.Inventory.View().Started {
		return // the books are not made up yet
	}
	found := d.look(ctx, nil)
	if len(found) > 0 {
		if !loop.Pause(ctx, d.Clock, secondLook) {
			return
		}
		lasting(found, d.look(ctx, found))
	}
	if ctx.Err() == nil { // otherwise a look was cut short
		d.conclude(found)
	}
}

// lasting removes from first the differences that are not the same in second, with the same
// version of the object.
func lasting(first, second map[name]difference) {
	for n, was := range first {
		if is, still := second[n]; !still || is.text != was.text || is.version != was.version {
			delete(first, n)
		}
	}
}

// conclude makes the differences of a round the known drift. It logs and counts new ones.
func (d *Drift) conclude(found map[name]difference) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := d.Clock.Now()
	for _, n := range sorted(found) {
		f := found[n]
		if f.since = now; d.known[n].text == f.text {
			f.since = d.known[n].since
		} else {
			d.Logger.Error(nil, "The books of the scheduler are not what the API server says; this is a mistake of the scheduler, please report it with this line. A restart corrects the books",
				"kind", n.kind, "what", f.what, "difference", f.text)
			if d.Count != nil {
				d.Count(n.kind)
			}
		}
		found[n] = f
	}
	d.known = found
}

func sorted(m map[name]difference) []name {
	return slices.SortedFunc(maps.Keys(m), func(a, b name) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id)) })
}

// Check returns an error with the drift that the last round found; nil if there was none.
func (d *Drift) Check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var lines []string
	for _, n := range sorted(d.known) {
		f := d.known[n]
		lines = append(lines, fmt.Sprintf("%s %s: %s (since %s)", n.kind, f.what, f.text, f.since.UTC().Format(time.RFC3339)))
	}
	return firstOf(lines)
}

// Now compares the pods, without pauses between them, and returns an error with the
// differences; nil if there are none. Events are usually late, so Now looks again after
// soonLook and reports only differences that stay the same. It waits only by pause, which
// returns false when the caller no longer waits for the answer; then Now returns nil. It
// takes the store's lock only to read changes.
func (d *Drift) Now(pause func(time.Duration) bool) error {
	if !d.Inventory.View().Started {
		return nil
	}
	found := d.podsNow(nil)
	if len(found) == 0 || !pause(soonLook) {
		return nil
	}
	lasting(found, d.podsNow(found))
	var lines []string
	for _, n := range sorted(found) {
		lines = append(lines, fmt.Sprintf("%s %s: %s", n.kind, found[n].what, found[n].text))
	}
	return firstOf(lines)
}

// podsNow compares pods without pauses: all, or only those in only.
func (d *Drift) podsNow(only map[name]difference) map[name]difference {
	l := &look{drift: d, ctx: context.Background(), only: only, found: map[name]difference{}, hurry: true}
	l.pods()
	return l.found
}
