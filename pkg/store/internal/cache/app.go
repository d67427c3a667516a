package cache

import (
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// App is what an application has: pods, a queue, and a user that is charged. Make one with
// NewApp.
type App struct {
	Name      AppName
	Serial    uint64 // unique among all applications of this process
	Leaf      queues.ID
	Owner     queues.Owner
	Groups    []string  // of the user, from the first pod
	Submitted time.Time // when its oldest pod was created

	aliases  []AppName          // other names of it in Apps
	living   ranking.Heap[*Pod] // pods that are not being deleted, those of the first rank first
	owned    map[types.UID]int  // number of its living pods that a pod owns
	pods     int                // with this application
	slots    int                // pods with a slot of the window
	used     queues.Usage       // by its pods; Applications and Running are not set
	mostUsed resources.Vector   // peak use of each type
	// running is set when its first pod is bound and stays until the last pod is gone.
	running bool
	// counted is true while the application counts against maxapplications: it is
	// running, or one of its pods has a slot, holds a node or is allocated.
	counted bool
}

// NewApp returns an application without pods.
func NewApp(name AppName, leaf queues.ID, owner queues.Owner, groups []string, submitted time.Time) App {
	return App{Name: name, Leaf: leaf, Owner: owner, Groups: groups, Submitted: submitted, living: ranking.New(rankedFirst)}
}

// Pods is the number of its pods.
func (a *App) Pods() int { return a.pods }

// Living yields its pods that are not being deleted, in no particular order.
func (a *App) Living() iter.Seq[*Pod] {
	return slices.Values(a.living.Items())
}

// Used is the usage by its pods.
func (a *App) Used() queues.Usage { return a.used }

// Committed is what its pods use or are about to use.
func (a *App) Committed() resources.Vector {
	return a.used.Allocated.Add(a.used.Admitted).Add(a.used.Arriving)
}

// MostUsed is its peak use of each type.
func (a *App) MostUsed() resources.Vector { return a.mostUsed }

// Counted tells whether it counts against maxapplications; see [Books.UpdateCounted].
func (a *App) Counted() bool { return a.counted }

// Begin notes that a pod of it is bound. It tells whether this is the first one.
func (a *App) Begin() bool {
	first := !a.running
	a.running = true
	return first
}

// AddSlots adds to the number of its pods that have a slot of the window.
func (a *App) AddSlots(n int) { a.slots += n }

// Join makes a pod without an application one of this one. It tells whether the pod is
// its oldest.
func (a *App) Join(p *Pod) (oldest bool) {
	p.app = a
	a.pods++
	if p.Created.Before(a.Submitted) {
		a.Submitted, oldest = p.Created, true
	}
	return oldest
}

// Leave takes a pod that is neither charged nor living out of its application. It tells
// whether it was the last one.
func (a *App) Leave(p *Pod) (last bool) {
	p.app = nil
	a.pods--
	if a.pods == 0 {
		a.running = false
	}
	return a.pods == 0
}
