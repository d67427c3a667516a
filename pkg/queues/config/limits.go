package config

import (
	"regexp"

	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"
)

// limits checks the limits of q and of the queues below it one by one and
// remembers, for limitTree, which limit a queue has for each name.
func (r *report) limits(q *rawQueue) {
	users := limitNames{kind: "user", pattern: userName, first: map[string]*rawLimit{}}
	groups := limitNames{kind: "group", pattern: groupName, first: map[string]*rawLimit{}}
	for _, l := range q.limits {
		if len(l.users) == 0 && len(l.groups) == 0 {
			r.errorf(l.at, l.line, "names neither users nor groups")
		}
		r.limitNames(&users, l, l.users)
		r.limitNames(&groups, l, l.groups)
		r.limitValues(q, l)
	}
	if l := groups.first[wildcard]; l != nil && len(groups.first) == 1 && !groups.broken {
		r.errorf(l.at.at("groups"), l.line,
			`"*" is the only group with a limit in %s: name at least one group in a limit before it, or remove it`, q.path)
	}
	q.users, q.groups = users.first, groups.first
	for _, child := range q.queues {
		r.limits(child)
	}
}

// limitNames are the users, or the groups, that have a limit in one queue.
type limitNames struct {
	kind    string
	pattern *regexp.Regexp
	first   map[string]*rawLimit
	broken  bool // a name could not be one
}

func (r *report) limitNames(n *limitNames, l *rawLimit, list []text) {
	for i, t := range list {
		at := l.at.at(n.kind + "s").index(i)
		switch {
		case t.broken:
			n.broken = true
			continue
		case t.value != wildcard && !n.pattern.MatchString(t.value):
			r.errorf(at, t.line, "%s is not a %s name", quote(t.value), n.kind)
			n.broken = true
			continue
		case n.first[t.value] != nil:
			r.errorf(at, t.line, "%s %s has a limit in this queue already, in line %d",
				n.kind, quote(t.value), n.first[t.value].line)
			continue
		case n.first[wildcard] != nil:
			r.errorf(at, t.line, `%s %s must come before the limit for "*", in line %d`,
				n.kind, quote(t.value), n.first[wildcard].line)
		}
		n.first[t.value] = l
	}
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
