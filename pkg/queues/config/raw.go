package config

import (
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The raw types hold a document as it was written, with lines, before defaults
// and inheritance. A part that could not be read is marked broken or left out,
// so that the checks do not judge it.

type rawPartition struct {
	path string // "partitions[0]"
	name text
	line int
	// root is the queue tree, nil when there is no list of queues.
	root       *rawQueue
	rules      []*rawRule
	limits     []*rawLimit
	preemption bool
}

type rawQueue struct {
	name   string
	path   string
	line   int
	parent *rawQueue
	// isParent is what the key parent says; see leaf.
	isParent   bool
	resources  rawResources
	apps       count
	properties []rawProperty
	submit     ACL
	admin      ACL
	template   *rawTemplate
	queues     []*rawQueue
	limits     []*rawLimit
	// unnamed is set where the name could not be read.
	unnamed bool
	// duplicate is set for a queue with the name of an earlier sibling.
	duplicate bool
	// limitOf has the first limit of the queue for each user and group.
	limitOf map[owner]*rawLimit
}

// leaf tells whether the queue holds applications.
func (q *rawQueue) leaf() bool {
	return q.parent != nil && !q.isParent && len(q.queues) == 0
}

// place returns where the key of the queue is.
func (q *rawQueue) place(key string) place { return place{q.path, key} }

type rawResources struct {
	guaranteed, max rawAmounts
}

// rawAmounts is a map of quantities.
type rawAmounts struct {
	line int // of the key; 0 when it is absent
	// list has the quantities that could be read, by name; empty when all are 0.
	list []rawAmount
	// written counts all entries, also zeros and those that could not be read.
	written int
	broken  bool
}

type rawAmount struct {
	name   string
	amount resources.Amount
	line   int
}

// set tells whether the map says anything: maps of zeros only do not.
func (a rawAmounts) set() bool { return len(a.list) > 0 || a.broken }

// get returns the amount of a type.
func (a rawAmounts) get(name string) (rawAmount, bool) {
	i, found := slices.BinarySearchFunc(a.list, name, func(x rawAmount, name string) int { return strings.Compare(x.name, name) })
	if !found {
		return rawAmount{}, false
	}
	return a.list[i], true
}

func (a rawAmounts) byName() map[string]resources.Amount {
	out := map[string]resources.Amount{}
	for _, x := range a.list {
		out[x.name] = x.amount
	}
	return out
}

type rawProperty struct {
	key, value string
	at         place
	line       int
}

type rawTemplate struct {
	at         place
	line       int
	resources  rawResources
	apps       count
	properties []rawProperty
}

type rawLimit struct {
	at            place // path of the queue and "limits[i]"
	line          int
	description   string
	users, groups []text
	owners        []owner // of which this is the first limit of the queue
	max           rawAmounts
	apps          count
}

type rawRule struct {
	path   string // "placementrules[1].parent"
	line   int
	name   text
	create bool
	value  text
	filter rawFilter
	parent *rawRule
}

type rawFilter struct {
	kind          text
	users, groups []text
}

func (a rawAmounts) limit() resources.Limit { return resources.LimitFrom(a.byName()) }

func (r rawResources) quota(apps count) Quota {
	return Quota{Guaranteed: resources.GuaranteeFrom(r.guaranteed.byName()), Max: r.max.limit(), MaxApplications: apps.value}
}
