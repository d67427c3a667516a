package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// Cache has the parts of this package. Make one with New.
type Cache struct {
	Protection  Protection
	Types       ResourceTypes
	Capacity    Capacity
	Namespaces  Namespaces
	Empty       EmptyQueues
	Nodes       Nodes
	Originators Originators
	Books       Books
}

// New returns a cache without objects. The resource types that spec names count. Empty
// queues are kept for the grace. find returns the record of a pod; nil if it is not known.
func New(spec *config.Spec, grace time.Duration, find func(types.UID) *Pod) *Cache {
	c := &Cache{
		Protection: NewProtection(), Types: NewResourceTypes(), Namespaces: Namespaces{}, Empty: NewEmptyQueues(grace), Nodes: NewNodes(),
		Originators: NewOriginators(find), Books: NewBooks(queues.NewDraftFrom(spec)),
	}
	c.Types.Add(TypesOf(spec))
	return c
}
