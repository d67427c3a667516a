package config

import (
	"regexp"

	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"
)

// owner is a user or a group with a limit.
type owner struct {
	kind, name string // the kind is "user" or "group"
}

// limits checks the limits of q and of the queues below it one by one and
// remembers, for limitTree, which limit a queue has for each owner.
func (r *report) limits(q *rawQueue) {
	q.limitOf = map[owner]*rawLimit{}
	onlyStar := true // no other group has a limit, and all could be read
	for _, l := range q.limits {
		if len(l.users) == 0 && len(l.groups) == 0 {
			r.errorf(l.at, l.line, "names neither users nor groups: list at least one")
		}
		r.limitNames(q, l, "user", l.users, userName)
		onlyStar = r.limitNames(q, l, "group", l.groups, groupName) && onlyStar
		r.limitValues(q, l)
	}
	for o := range q.limitOf {
		onlyStar = onlyStar && (o.kind != "group" || o.name == wildcard)
	}
	if l := q.limitOf[owner{"group", wildcard}]; l != nil && onlyStar {
		r.errorf(l.at.at("groups"), l.line,
			`"*" is the only group with a limit in %s: name at least one group in a limit before it, or remove it`, q.path)
	}
	for _, child := range q.queues {
		r.limits(child)
	}
}

// limitNames checks the users, or the groups, of a limit, and tells whether all could be
// names.
func (r *report) limitNames(q *rawQueue, l *rawLimit, kind string, list []text, pattern *regexp.Regexp) (good bool) {
	good = true
	for i, t := range list {
		at, o := l.at.at(kind+"s").index(i), owner{kind, t.value}
		first, star := q.limitOf[o], q.limitOf[owner{kind, wildcard}]
		switch {
		case t.broken:
			good = false
			continue
		case t.value != wildcard && !pattern.MatchString(t.value):
			r.errorf(at, t.line, "%s is not a %s name: begin with a letter or _, and use letters, digits and %s",
				quote(t.value), kind, nameChars[kind])
			good = false
			continue
		case first != nil:
			r.errorf(at, t.line, "%s %s has a limit in this queue already, in line %d", kind, quote(t.value), first.line)
			continue
		case star != nil:
			r.errorf(at, t.line, `%s %s must come before the limit for "*", in line %d`, kind, quote(t.value), star.line)
		}
		q.limitOf[o] = l
		l.owners = append(l.owners, o)
	}
	return good
}

func (r *report) limitValues(q *rawQueue, l *rawLimit) {
	switch {
	case l.max.broken || l.apps.broken:
	case l.max.written > 0 && !l.max.set():
		r.errorf(l.at.at("maxresources"), l.max.line, "must have at least one amount above 0")
	case l.max.written == 0 && l.apps.value == 0:
		r.errorf(l.at, l.line, "limits nothing: set maxresources or maxapplications")
	}
	if q.apps.value != 0 && l.apps.value > q.apps.value {
		r.errorf(l.at.at("maxapplications"), l.apps.line,
			"%d is more than the maxapplications %d of the queue", l.apps.value, q.apps.value)
	}
	for _, own := range l.max.list {
		if m, limited := q.resources.max.get(own.name); limited && own.amount > m.amount {
			r.errorf(l.at.at("maxresources."+label(own.name)), own.line, "%s is more than the max %s of the queue",
				quantity.Format(own.name, own.amount), quantity.Format(own.name, m.amount))
		}
	}
}
