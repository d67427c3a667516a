package model

import (
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// Outside is a pod as the order knows those that are not in it.
func (p *Pod) Outside() order.Outside {
	return order.Outside{Leaf: p.App.Leaf, Priority: p.Priority, Request: p.Request, Own: p.Charged(cache.Admitted)}
}
