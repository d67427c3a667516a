package config

// MaxDepth is how many levels of queues there may be below root.
const MaxDepth = 100

// queues reads a list of sibling queues. above is their parent; nil for the
// root itself, which stands alone in its list.
func (d *decoder) queues(f field, above *rawQueue, depth int) []*rawQueue {
	if depth > MaxDepth && len(deref(f.node).Content) > 0 {
		d.errorf(f.place, f.line, "queues are nested more than %d levels deep", MaxDepth)
		return nil
	}
	var out []*rawQueue
	d.list(f, func(item field) {
		if d.made <= maxMade {
			out = append(out, d.queue(item, above, depth))
		}
	})
	return out
}

func (d *decoder) queue(f field, above *rawQueue, depth int) *rawQueue {
	q := &rawQueue{name: nameOf(f.node), line: f.line, parent: above, path: RootName}
	if above != nil {
		q.path = above.path + "." + segment(q.name)
	}
	if !d.affords(f.place, f.line, len(q.path)) {
		return q
	}
	isMapping := d.mapping(f.node, q.place(""), keys{
		"name": func(f field) {
			t := d.text(f)
			q.name, q.line, q.unnamed = t.value, f.line, t.broken
		},
		"parent":          func(f field) { q.isParent = d.boolean(f, false) },
		"resources":       func(f field) { q.resources = d.resources(f) },
		"maxapplications": func(f field) { q.apps = d.count(f) },
		"properties":      func(f field) { q.properties = d.properties(f) },
		"adminacl":        func(f field) { q.admin = d.acl(f) },
		"submitacl":       func(f field) { q.submit = d.acl(f) },
		"childtemplate":   func(f field) { q.template = d.template(f) },
		"limits":          func(f field) { q.limits = d.limits(f, q.path) },
		"queues":          func(f field) { q.queues = d.queues(f, q, depth+1) },
	})
	q.unnamed = q.unnamed || !isMapping
	return q
}

// template reads a template; nil for one that says nothing.
func (d *decoder) template(f field) *rawTemplate {
	t := &rawTemplate{at: f.place, line: f.line}
	d.mapping(f.node, f.place, keys{
		"maxapplications": func(f field) { t.apps = d.count(f) },
		"properties":      func(f field) { t.properties = d.properties(f) },
		"resources":       func(f field) { t.resources = d.resources(f) },
	})
	if !t.resources.guaranteed.set() && !t.resources.max.set() && t.apps.value == 0 && len(t.properties) == 0 {
		return nil
	}
	return t
}

func (d *decoder) limits(f field, path string) []*rawLimit {
	f.place = place{path: path, key: "limits"}
	var out []*rawLimit
	d.list(f, func(item field) {
		l := &rawLimit{at: item.place, line: item.line}
		d.mapping(item.node, item.place, keys{
			"limit":           func(f field) { l.description = d.text(f).value },
			"users":           func(f field) { l.users = d.texts(f) },
			"groups":          func(f field) { l.groups = d.texts(f) },
			"maxresources":    func(f field) { l.max = d.amounts(f) },
			"maxapplications": func(f field) { l.apps = d.count(f) },
		})
		out = append(out, l)
	})
	return out
}

// rule reads a placement rule with its parents.
func (d *decoder) rule(f field, path string) *rawRule {
	r := &rawRule{path: path, line: f.line}
	isMapping := d.mapping(f.node, place{path: path}, keys{
		"name":   func(f field) { r.name = d.text(f) },
		"create": func(f field) { r.create = d.boolean(f, false) },
		"value":  func(f field) { r.value = d.text(f) },
		"filter": func(f field) { r.filter = d.filter(f) },
		"parent": func(f field) {
			if parent := path + ".parent"; !isNull(f.node) && d.affords(f.place, f.line, len(parent)) {
				r.parent = d.rule(f, parent)
			}
		},
	})
	r.name.broken = r.name.broken || !isMapping
	return r
}

func (d *decoder) filter(f field) rawFilter {
	var out rawFilter
	d.mapping(f.node, f.place, keys{
		"type":   func(f field) { out.kind = d.text(f) },
		"users":  func(f field) { out.users = d.texts(f) },
		"groups": func(f field) { out.groups = d.texts(f) },
	})
	return out
}
