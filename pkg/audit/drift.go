package audit

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/objects"
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
	// firstLook is how long after the start the first round is made.
	firstLook = 5 * time.Second
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

	now map[name]difference // what the last call of Now found

	mu    locks.Mutex         // guards round
	round map[name]difference // what the last round found
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
	since   time.Time // when it was found first
	looks   int       // how many in a row have found it
}

// lasts tells whether a difference is drift. Events are often late, so the first look that
// finds it proves nothing.
func (d difference) lasts() bool { return d.looks > 1 }

// Run compares from time to time until the context ends.
func (d *Drift) Run(ctx context.Context) {
	for rest := firstLook; loop.Pause(ctx, d.Clock, rest); rest = lookInterval {
		d.Round()
	}
}

// Round compares everything, logs new drift and counts it.
func (d *Drift) Round() {
	if !d.Inventory.View().Started {
		return // the books are not made up yet
	}
	l := d.look()
	l.nodes()
	l.quotas()
	found := l.found
	d.mu.Lock()
	defer d.mu.Unlock()
	d.repeated(d.round, found)
	d.round = found
	for _, n := range sorted(found) {
		if f := found[n]; f.looks == 2 {
			d.Logger.Error(nil, "The books of the scheduler are not what the API server says; this is a mistake of the scheduler, please report it with this line. A restart corrects the books",
				"kind", n.kind, "what", f.what, "difference", f.text)
			if d.Count != nil {
				d.Count(n.kind)
			}
		}
	}
}

// repeated notes when each difference of a look was found first, and how many looks in a row have
// found it: one with the text of the look before goes on. Until it is drift, the object must have
// the same version, too: the event of a change may be late again.
func (d *Drift) repeated(before, found map[name]difference) {
	for n, f := range found {
		f.since, f.looks = d.Clock.Now(), 1
		if was := before[n]; was.text == f.text && (was.version == f.version || was.lasts()) {
			f.since, f.looks = was.since, was.looks+1
		}
		found[n] = f
	}
}

func sorted(m map[name]difference) []name {
	return slices.SortedFunc(maps.Keys(m), func(a, b name) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id)) })
}

// Check returns an error with the drift that the last round found; nil if there was none.
func (d *Drift) Check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return report(d.round)
}

// Now compares the pods, and returns an error with the drift; nil if there is none. One
// goroutine calls it, every few seconds: it takes two calls to find drift.
// It takes the store's lock only to read changes.
func (d *Drift) Now() error {
	if !d.Inventory.View().Started {
		return nil
	}
	found := d.look().found
	d.repeated(d.now, found)
	d.now = found
	return report(d.now)
}

// report returns an error with what is drift; nil for nothing.
func report(found map[name]difference) error {
	var lines []string
	for _, n := range sorted(found) {
		if f := found[n]; f.lasts() {
			lines = append(lines, fmt.Sprintf("%s %s: %s (since %s)", n.kind, f.what, f.text, f.since.UTC().Format(time.RFC3339)))
		}
	}
	return firstOf(lines)
}
