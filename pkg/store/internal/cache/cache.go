package cache

import (
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// Cache has the parts of this package. Make one with New.
type Cache struct {
	Spec        *config.Spec // the configuration
	Protection  Protection
	Types       ResourceTypes
	Capacity    Capacity
	Namespaces  Namespaces
	Empty       EmptyQueues
	Nodes       Nodes
	Originators Originators
	Books       Books

	snapshot atomic.Pointer[queues.Snapshot] // of the queues, as last published
	stale    atomic.Bool                     // the queues changed since
}

// New returns a cache without objects. The resource types that spec names count. Empty
// queues are kept for the grace. find returns the record of a pod; nil if it is not known.
func New(spec *config.Spec, grace time.Duration, find func(types.UID) *Pod) *Cache {
	c := &Cache{
		Spec:        spec,
		Protection:  NewProtection(),
		Types:       NewResourceTypes(),
		Namespaces:  Namespaces{},
		Empty:       NewEmptyQueues(grace),
		Nodes:       NewNodes(),
		Originators: NewOriginators(find),
		Books:       NewBooks(queues.NewDraftFrom(spec)),
	}
	c.Types.Add(TypesOf(spec))
	return c
}

// Tree has the queues with their usage.
func (c *Cache) Tree() *queues.Draft { return c.Books.tree }

// Path is the path of a queue.
func (c *Cache) Path(id queues.ID) string { return c.Books.tree.Queue(id).Path }

// NoteStale marks the published snapshot as out of date if the queues changed. It makes no
// snapshot: the accounting copies on write what it shares with one, and most changes pass
// without a reader.
func (c *Cache) NoteStale() {
	if c.Books.tree.Changed() {
		c.stale.Store(true)
	}
}

// Published returns the snapshot that was published last, and whether it is up to date. It may
// be called at any time.
func (c *Cache) Published() (*queues.Snapshot, bool) {
	current := !c.stale.Load()
	return c.snapshot.Load(), current
}

// Snapshot publishes and returns a snapshot of the queues.
func (c *Cache) Snapshot() *queues.Snapshot {
	snapshot := c.Books.tree.Publish(c.snapshot.Load())
	c.snapshot.Store(snapshot)
	c.stale.Store(false)
	return snapshot
}

// CheckSnapshot verifies that a snapshot that is up to date has the usage of the books.
func (c *Cache) CheckSnapshot() error {
	if got, current := c.Published(); current && !got.Root().Usage.Equal(c.Books.tree.Root().Usage) {
		return fmt.Errorf("snapshot: root has %+v, the books %+v", got.Root().Usage, c.Books.tree.Root().Usage)
	}
	return nil
}

// Take empties a list and returns what it had.
func Take[T any](list *[]T) []T {
	taken := *list
	*list = nil
	return taken
}
