package config

import (
	"cmp"
	"slices"
	"strings"
)

// defaultPartition is the name of the only partition there can be.
const defaultPartition = "default"

// RecoveryName is the queue below root that takes running pods when their queue is gone.
// Only the scheduler makes it, when it is needed.
const RecoveryName = "@recovery@"

// onePartition returns the partition to be checked further; nil when there is none.
func (r *report) onePartition(partitions []*rawPartition) *rawPartition {
	if len(partitions) == 0 {
		if !r.invalid() {
			r.errorf(place{}, 0, "the configuration is not set: partitions is missing or empty")
		}
		return nil
	}
	var chosen *rawPartition
	for _, p := range partitions {
		name := cmp.Or(strings.ToLower(p.name.value), defaultPartition)
		at := place{path: p.path, key: "name"}
		line := max(p.line, p.name.line)
		switch {
		case name != defaultPartition:
			r.errorf(at, line, "partition %s is not supported: there is only one, called %s", quote(name), defaultPartition)
		case chosen != nil:
			r.errorf(at, line, "partition %s is there already; names are compared without case", quote(name))
		default:
			chosen = p
		}
	}
	if chosen == nil {
		return partitions[0]
	}
	return chosen
}

// partitionLimits makes the limits of the partition those of root. Both may be
// there only when they say the same.
func (r *report) partitionLimits(p *rawPartition, root *rawQueue) {
	switch {
	case len(p.limits) == 0:
	case len(root.limits) == 0:
		root.limits = p.limits
	case !slices.EqualFunc(p.limits, root.limits, sameLimit):
		r.errorf(root.place("limits"), root.limits[0].line,
			"differ from the limits of the partition in line %d: remove one of the two", p.limits[0].line)
	}
}

// sameLimit tells whether two limits say the same, wherever they stand.
func sameLimit(a, b *rawLimit) bool {
	return a.description == b.description &&
		slices.Equal(values(a.users), values(b.users)) &&
		slices.Equal(values(a.groups), values(b.groups)) &&
		a.max.limit().Equal(b.max.limit()) &&
		a.apps.value == b.apps.value
}

// names checks the names of all queues below q and marks duplicates. It tells
// whether all of them are good, so that a queue that is not found is missing.
func (r *report) names(q *rawQueue) bool {
	good := true
	lines := make(map[string]int, len(q.queues))
	for _, child := range q.queues {
		name := strings.ToLower(child.name)
		switch first := lines[name]; {
		case child.unnamed:
			good = false
		case !ValidQueueName(child.name):
			r.errorf(child.place("name"), child.line, "%s is not a queue name: %s", quote(child.name), queueNameAdvice)
			good = false
		case name == RecoveryName && q.path == RootName:
			r.errorf(child.place("name"), child.line,
				"is reserved: the scheduler makes it for running pods whose queue is gone; use another name")
			good = false
		case first != 0:
			r.errorf(child.place("name"), child.line,
				"%s has a queue %s already, in line %d; names are compared without case", q.path, name, first)
			child.duplicate = true
		default:
			lines[name] = child.line
		}
		if child.path == RootName+"."+RootName {
			r.warnf(child.place("name"), child.line,
				"is a queue below the root queue, because it does not stand alone at the top")
		}
		good = r.names(child) && good
	}
	return good
}
