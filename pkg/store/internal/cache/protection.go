package cache

import "github.com/paddock-scheduler/paddock/pkg/objects"

// Protection has what makes a disruption of a pod worse: PriorityClasses that opt their
// pods out of preemption (law 1), and PodDisruptionBudgets with how many disruptions each
// allows after those that are under way: the victims of plans in force, and deleted pods
// that the status of the budget does not include yet. Make one with NewProtection.
type Protection struct {
	optedOut map[string]bool      // PriorityClasses
	of       map[string][]*budget // by namespace
	// at has the budgets by index; nil for a free index. In planning snapshots budget i
	// is two numbers: what it allows of ready pods at 2i, and of running pods that are
	// not ready at 2i+1.
	at []*budget
	// uncounted is true while the pods of some budget must be counted again.
	uncounted bool
}

// NewProtection returns a Protection without classes and budgets.
func NewProtection() Protection {
	return Protection{optedOut: map[string]bool{}, of: map[string][]*budget{}}
}

// SetClass sets whether the pods of a PriorityClass are opted out. It tells whether this
// is a change. A class that is gone is not opted out.
func (d *Protection) SetClass(name string, optOut bool) bool {
	if d.optedOut[name] == optOut {
		return false
	}
	if d.optedOut[name] = optOut; !optOut {
		delete(d.optedOut, name)
	}
	return true
}

// OptedOut tells whether a pod should not be preempted. The pod's own setting overrides
// that of its PriorityClass in both directions, unless ignoreOwn is true.
func (d *Protection) OptedOut(pod *objects.Pod, ignoreOwn bool) bool {
	if pod.OptOut != objects.OptOutUnsaid && !ignoreOwn {
		return pod.OptOut == objects.OptOutYes
	}
	return d.optedOut[pod.Class]
}
