package config

import (
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// bound is the smallest max of a resource type on the way up from a queue.
type bound struct {
	amount resources.Amount
	path   string // of the queue that sets it
}

// ceiling is the effective max of a queue by resource type; a type that is not
// there is unlimited. It is never written after it was made.
type ceiling map[string]bound

// lowered returns the ceiling of a queue with that max below c.
func (r *report) lowered(c ceiling, q *rawQueue) ceiling {
	if len(q.resources.max.list) == 0 || !r.affords(q.place("resources.max"), q.resources.max.line, len(c)*bytesOfEntry) {
		return c
	}
	out := make(ceiling, len(c)+len(q.resources.max.list))
	maps.Copy(out, c)
	for _, own := range q.resources.max.list {
		if above, limited := c[own.name]; !limited || own.amount < above.amount {
			out[own.name] = bound{own.amount, q.path}
		}
	}
	return out
}

// rootQuotas refuses numbers on root and takes them out of the tree.
func (r *report) rootQuotas(root *rawQueue) {
	for _, set := range []struct {
		key     string
		amounts *rawAmounts
	}{{"guaranteed", &root.resources.guaranteed}, {"max", &root.resources.max}} {
		if set.amounts.written > 0 {
			r.errorf(root.place("resources."+set.key), set.amounts.line,
				"must not be set on root: the whole cluster is its size")
		}
		*set.amounts = rawAmounts{}
	}
}

// quotas checks guaranteed and max of q and the queues below it, and returns
// what q wants guaranteed by its parent: its own guarantee, or, where it has
// none, the sum over its children.
func (r *report) quotas(q *rawQueue, above ceiling) map[string]resources.Amount {
	r.within(q, "max", q.resources.max, above)
	effective := r.lowered(above, q)
	r.within(q, "guaranteed", q.resources.guaranteed, effective)
	wanted := map[string]resources.Amount{}
	for _, child := range q.queues {
		asked := r.quotas(child, effective)
		if child.duplicate {
			continue
		}
		for name, amount := range asked {
			wanted[name] = wanted[name].Add(amount)
		}
	}
	if !r.affords(q.place("resources"), q.line, len(wanted)*bytesOfEntry) {
		return nil
	}
	r.sumWithinGuaranteed(q, wanted)
	r.sumWithinMax(q, wanted, effective)
	if own := q.resources.guaranteed; own.set() {
		return own.byName()
	}
	return wanted
}

// within compares amounts of a queue with the smallest max of the way up.
func (r *report) within(q *rawQueue, key string, amounts rawAmounts, most ceiling) {
	for _, own := range amounts.list {
		if b, limited := most[own.name]; limited && own.amount > b.amount {
			r.errorf(q.place("resources."+key+"."+label(own.name)), own.line,
				"%s is more than the max %s of %s", quantity.Format(own.name, own.amount), quantity.Format(own.name, b.amount), b.path)
		}
	}
}

func (r *report) sumWithinGuaranteed(q *rawQueue, wanted map[string]resources.Amount) {
	for _, own := range q.resources.guaranteed.list {
		if all := wanted[own.name]; all > own.amount {
			r.errorf(q.place("resources.guaranteed."+label(own.name)), own.line,
				"%s is less than what the queues below it are guaranteed together: %s",
				quantity.Format(own.name, own.amount), quantity.Format(own.name, all))
		}
	}
}

// sumWithinMax compares with the max of q or of the queue above it that has the
// smallest. A queue without a max of the type is passed over where another
// check judges the same numbers: the one of its own guarantee of the type, or,
// where it guarantees nothing, the one of the queue above its sum goes up to.
func (r *report) sumWithinMax(q *rawQueue, wanted map[string]resources.Amount, effective ceiling) {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		b, limited := effective[name]
		if !limited || wanted[name] <= b.amount {
			continue
		}
		own, has := q.resources.max.get(name)
		_, promised := q.resources.guaranteed.get(name)
		if !has && (promised || !q.resources.guaranteed.set()) {
			continue
		}
		at, line := q.place("resources.max."+label(name)), own.line
		if !has {
			at, line = q.place("queues"), q.line
		}
		r.errorf(at, line, "the max %s of %s is less than what the queues below are guaranteed together: %s %s",
			quantity.Format(name, b.amount), b.path, label(name), quantity.Format(name, wanted[name]))
	}
}
