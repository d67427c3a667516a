package app

import (
	"github.com/paddock-scheduler/paddock/pkg/evict"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// Interceptor stands between a store and its two callers that are not plugins: the watcher,
// which passes it objects, and the executor, which carries out its decisions. By default a
// store is its own Interceptor.
type Interceptor interface {
	informer.Store
	evict.Store
}

// interceptor is called for every store before the store is shared.
var interceptor = func(s *store.Store) Interceptor { return s }

// SetInterceptor puts an interceptor between each store and its callers. It passes calls on,
// and may record them, or change them to show that a mistake is noticed. It is for
// simulations; call it before the scheduler is made.
func SetInterceptor(of func(*store.Store) Interceptor) { interceptor = of }
