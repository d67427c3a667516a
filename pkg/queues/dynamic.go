package queues

import (
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// DynamicLimits bound the queues that placement rules make. Zero means no bound.
type DynamicLimits struct {
	// Total is the bound for all of them, PerNamespace for those made for pods of one
	// namespace.
	Total, PerNamespace int
}

// Admit returns why the queues that are missing on a path may not be made for a pod of the
// namespace; none if they may, or nothing is missing.
func (l DynamicLimits) Admit(d *Draft, path, namespace string) reasons.Reason {
	_, missing := d.deepest(path)
	if len(missing) == 0 {
		return reasons.Reason{}
	}
	if n := d.dynamic.by[namespace]; l.PerNamespace > 0 && n+len(missing) > l.PerNamespace {
		return reasons.New(reasons.TooManyQueues, "queue %s does not exist, "+
			"and rules have made %d queues for namespace %s of at most %d (maxDynamicQueuesPerNamespace)",
			path, n, namespace, l.PerNamespace)
	}
	if n := d.dynamic.total; l.Total > 0 && n+len(missing) > l.Total {
		return reasons.New(reasons.TooManyQueues, "queue %s does not exist, and rules have made %d queues of at most %d (maxDynamicQueues)",
			path, n, l.Total)
	}
	return reasons.Reason{}
}

// dynamicCounts has the number of dynamic queues of a draft, in all and by the namespace
// that they were made for.
type dynamicCounts struct {
	total int
	by    map[string]int
}

// add counts a queue n times more, where it is dynamic. The queue for running pods without
// one does not count: it is made once.
func (c *dynamicCounts) add(s *Settings, n int) {
	if s.Managed || s.Path == RecoveryPath || s.Parent == NoQueue {
		return
	}
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.total += n
	if c.by[s.MadeFor] += n; c.by[s.MadeFor] == 0 {
		delete(c.by, s.MadeFor)
	}
}
