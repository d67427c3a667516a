package cache

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// Cache has the parts of this package. Make one with New.
type Cache struct {
	Protection Protection
	Types      ResourceTypes
	Capacity   Capacity
	Namespaces Namespaces
	Empty      EmptyQueues
	Nodes      Nodes
}

// New returns a cache without objects. The resource types that spec names count. Empty
// queues are kept for the grace.
func New(spec *config.Spec, grace time.Duration) *Cache {
	c := &Cache{
		Protection: NewProtection(), Types: NewResourceTypes(), Namespaces: Namespaces{}, Empty: NewEmptyQueues(grace), Nodes: NewNodes(),
	}
	c.Types.Add(TypesOf(spec))
	return c
}
