package config

// applications checks maxapplications of the queues below q against their
// parents: no child may run more than its parent, and none may be unlimited
// below a limited one. 0 and absent are unlimited.
func (r *report) applications(q *rawQueue) {
	for _, child := range q.queues {
		limit, own := q.apps.value, child.apps.value
		switch {
		case limit == 0 || q.apps.broken || child.apps.broken:
		case own == 0:
			r.errorf(child.place("maxapplications"), max(child.line, child.apps.line),
				"must be set to 1 to %d, because %s has maxapplications %d", limit, q.path, limit)
		case own > limit:
			r.errorf(child.place("maxapplications"), child.apps.line,
				"%d is more than the maxapplications %d of %s", own, limit, q.path)
		}
		r.applications(child)
	}
}
