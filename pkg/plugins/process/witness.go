package process

import (
	"github.com/paddock-scheduler/paddock/pkg/evict"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// Witness stands between a store and the two around it that are not plugins: the
// watcher, which tells it what there is, and the executor, which does what it
// decided. A store is its own witness.
type Witness interface {
	informer.Store
	evict.Store
}

// witness is made for every store before the store is shared.
var witness = func(s *store.Store) Witness { return s }

// SetWitness puts an interceptor between each store and its callers. It passes calls on,
// and may record them or change them to show that a mistake is noticed. It is for
// simulations; call it before the scheduler is made.
func SetWitness(of func(*store.Store) Witness) { witness = of }
