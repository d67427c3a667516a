package order

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// App is an application of a leaf, with its asks.
type App struct {
	leaf    *node
	class   Class
	used    resources.Vector
	key     appKey            // without the priority, which each batch has for itself
	batches map[string]*batch // by request and hash; never an empty one
	closed  map[string]bool   // requests and hashes that are closed
}

// Class is what the verdict on an ask depends on, besides leaf and request: asks of one
// leaf and class with the same request are admitted or refused together.
type Class struct {
	// Owner is the user and group for which limits count the application; the zero value
	// without limits.
	Owner queues.Owner
	// Counted is true for applications that already count against maxapplications, so
	// that it cannot refuse them.
	Counted bool
}

// NewApp adds an application without asks to a leaf. The name must be unique in the leaf.
func (x *Index) NewApp(leaf queues.ID, name string, submitted time.Time, class Class) *App {
	return &App{
		leaf: x.nodes[leaf], class: class,
		key:     appKey{Name: name, Submitted: submitted},
		batches: map[string]*batch{},
	}
}

// SetSubmitted changes the submission time of an application.
func (x *Index) SetSubmitted(a *App, submitted time.Time) {
	a.key.Submitted = submitted
	x.moveAsks(a)
}

// SetAppUsed sets what an application uses and is about to use.
func (x *Index) SetAppUsed(a *App, used resources.Vector) {
	a.used = used
	if share := x.appShare(a); share.Compare(a.key.Share) != 0 {
		a.key.Share = share
		x.moveAsks(a)
	}
}

// SetClass moves the asks of an application to another class. They become blocked or not,
// like the other asks there.
func (x *Index) SetClass(a *App, class Class) {
	if a.class == class {
		return
	}
	a.class = class
	for _, b := range a.batches {
		if b.group != nil {
			n := b.asks.Len()
			x.leaveGroup(b, n)
			x.enterGroup(b, n)
		}
	}
}

// moveAsks updates the position of the application's asks after a change of its key.
func (x *Index) moveAsks(a *App) {
	for _, b := range a.batches {
		if b.group != nil {
			x.regroup(b, 0)
		}
	}
}

// batch is the asks of one application with the same request and hash.
type batch struct {
	app     *App
	shape   string // in app.batches
	request resources.Vector
	group   *AskGroup // nil while the batch is closed
	asks    ranking.Heap[*Ask]
	key     appKey // that of the application, with the priority of the first ask
	at      int    // in group.batches
	counted place  // what group.below counts for the batch
}

// Place returns the field for the index of the batch in the ranking of the group.
func (b *batch) Place() *int { return &b.at }

// first returns the first ask; a batch in a ranking is never empty.
func (b *batch) first() *Ask { return b.asks.Items()[0] }

// rekey updates the key from that of the application. Batches of one application have the
// same key, except while they are updated one after the other: a heap tolerates one item
// out of place, not two.
func (b *batch) rekey() {
	b.key = b.app.key
	b.key.Priority = int64(b.first().key.Priority)
}

// compareBatches orders the batches of a leaf by their first asks. The first ask is the
// same as if applications were compared by their highest priority, and then the asks of
// the first application: if a batch of an application is first, its first ask has the
// application's highest priority.
func compareBatches(a, b *batch) int {
	p := &a.app.leaf.settings.Policies
	if c := compareApps(a.key, b.key, p.ApplicationSort, p.PrioritySort); c != 0 {
		return c
	}
	return CompareAsks(a.first().key, b.first().key)
}
