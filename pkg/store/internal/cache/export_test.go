package cache

import "github.com/paddock-scheduler/paddock/pkg/queues"

// Tree has the queues with their usage.
func (b *Books) Tree() *queues.Draft { return b.tree }
