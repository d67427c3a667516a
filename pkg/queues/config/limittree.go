package config

import (
	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// limitTree compares the limits of q and the queues below it with those of
// their ancestors: a user or group may not have more below than above. At an
// ancestor the limit of the name counts; where it has none, the one of "*".
func (r *report) limitTree(q *rawQueue) {
	for _, l := range q.limits {
		for _, t := range l.users {
			if q.users[t.value] == l {
				r.limitWithin(q, l, name{"user", t.value}, usersOf)
			}
		}
		for _, t := range l.groups {
			if q.groups[t.value] == l {
				r.limitWithin(q, l, name{"group", t.value}, groupsOf)
			}
		}
	}
	for _, child := range q.queues {
		r.limitTree(child)
	}
}

// name is a user or a group.
type name struct {
	kind, value string
}

func usersOf(q *rawQueue) map[string]*rawLimit  { return q.users }
func groupsOf(q *rawQueue) map[string]*rawLimit { return q.groups }

// covering returns the limit a queue has for a name, its own or the wildcard's.
func covering(limits map[string]*rawLimit, name string) (l *rawLimit, whose string) {
	if l = limits[name]; l != nil || name == wildcard {
		return l, name
	}
	return limits[wildcard], wildcard
}

// tightest is the smallest limit found above for one number.
type tightest struct {
	amount uint64
	path   string // of the queue; empty where nothing limits
	whose  string // the name, or "*"
}

func (t *tightest) lower(amount uint64, path, whose string) {
	if t.path == "" || amount < t.amount {
		*t = tightest{amount, path, whose}
	}
}

func (r *report) limitWithin(q *rawQueue, l *rawLimit, n name, of func(*rawQueue) map[string]*rawLimit) {
	amounts := make([]tightest, len(l.max.list))
	var apps tightest
	for a := q.parent; a != nil; a = a.parent {
		above, whose := covering(of(a), n.value)
		if above == nil {
			continue
		}
		for i, own := range l.max.list {
			if m, limited := above.max.get(own.name); limited {
				amounts[i].lower(uint64(m.amount), a.path, whose)
			}
		}
		if above.apps.value != 0 && !above.apps.broken {
			apps.lower(above.apps.value, a.path, whose)
		}
	}
	for i, own := range l.max.list {
		if t := amounts[i]; t.path != "" && uint64(own.amount) > t.amount {
			r.errorf(l.at.at("maxresources."+label(own.name)), own.line, "%s %s gets %s here, more than the %s %s has in %s",
				n.kind, quote(n.value), quantity.Format(own.name, own.amount),
				quantity.Format(own.name, resources.Amount(t.amount)), quote(t.whose), t.path)
		}
	}
	r.limitAppsWithin(l, n, apps)
}

func (r *report) limitAppsWithin(l *rawLimit, n name, above tightest) {
	switch own := l.apps.value; {
	case above.path == "" || l.apps.broken:
	case own == 0:
		r.errorf(l.at.at("maxapplications"), max(l.line, l.apps.line),
			"%s %s must have maxapplications 1 to %d here, because %s has %d in %s",
			n.kind, quote(n.value), above.amount, quote(above.whose), above.amount, above.path)
	case own > above.amount:
		r.errorf(l.at.at("maxapplications"), l.apps.line,
			"%s %s gets %d here, more than the %d %s has in %s",
			n.kind, quote(n.value), own, above.amount, quote(above.whose), above.path)
	}
}
