package config

import (
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// limitTree compares the limits of the queues below q with those of
// their ancestors: a user or group may not have more below than above. At an
// ancestor the limit of the name counts; where it has none, the one of "*".
func (r *report) limitTree(q *rawQueue) {
	for _, child := range q.queues {
		for _, l := range child.limits {
			for _, o := range l.owners {
				r.limitWithin(child, l, o)
			}
		}
		r.limitTree(child)
	}
}

// covering returns the limit that a queue has for an owner, its own or that of the wildcard, and
// the name that has it.
func (q *rawQueue) covering(o owner) (l *rawLimit, name string) {
	if l = q.limitOf[o]; l != nil {
		return l, o.name
	}
	return q.limitOf[owner{o.kind, wildcard}], wildcard
}

// tightest is the smallest limit found above for one number.
type tightest struct {
	amount uint64
	path   string // of the queue; empty where nothing limits
	name   string // of the owner; "*" for the wildcard
}

func (t *tightest) lower(amount uint64, path, name string) {
	if t.path == "" || amount < t.amount {
		*t = tightest{amount, path, name}
	}
}

func (r *report) limitWithin(q *rawQueue, l *rawLimit, o owner) {
	// A look-up counts as a byte, and an amount that is found above as four.
	if !r.affords(l.at, l.line, (4+strings.Count(q.path, "."))*(1+len(l.max.list))) {
		return
	}
	amounts, apps := l.tightestAbove(q, o)
	for i, own := range l.max.list {
		if t := amounts[i]; t.path != "" && uint64(own.amount) > t.amount {
			r.errorf(l.at.at("maxresources."+label(own.name)), own.line, "%s %s gets %s here, more than the %s %s has in %s",
				o.kind, quote(o.name), quantity.Format(own.name, own.amount),
				quantity.Format(own.name, resources.Amount(t.amount)), quote(t.name), t.path)
		}
	}
	r.limitAppsWithin(l, o, apps)
}

// tightestAbove returns the smallest limits above a queue for an owner: one for each amount of l, and
// that of applications.
func (l *rawLimit) tightestAbove(q *rawQueue, o owner) (amounts []tightest, apps tightest) {
	amounts = make([]tightest, len(l.max.list))
	for a := q.parent; a != nil; a = a.parent {
		above, name := a.covering(o)
		if above == nil {
			continue
		}
		for i, own := range l.max.list {
			if m, limited := above.max.get(own.name); limited {
				amounts[i].lower(uint64(m.amount), a.path, name)
			}
		}
		if above.apps.value != 0 && !above.apps.broken {
			apps.lower(above.apps.value, a.path, name)
		}
	}
	return amounts, apps
}

func (r *report) limitAppsWithin(l *rawLimit, o owner, above tightest) {
	switch own := l.apps.value; {
	case above.path == "" || l.apps.broken:
	case own == 0:
		r.errorf(l.at.at("maxapplications"), max(l.line, l.apps.line),
			"%s %s must have maxapplications 1 to %d here, because %s has %d in %s",
			o.kind, quote(o.name), above.amount, quote(above.name), above.amount, above.path)
	case own > above.amount:
		r.errorf(l.at.at("maxapplications"), l.apps.line,
			"%s %s gets %d here, more than the %d %s has in %s",
			o.kind, quote(o.name), own, above.amount, quote(above.name), above.path)
	}
}
