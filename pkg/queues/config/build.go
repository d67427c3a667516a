package config

import (
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"
)

// build makes the queue and those below it, with what they inherit. It is
// called for trees without problems only.
func (r *report) build(raw *rawQueue, parent *Queue) *Queue {
	q := &Queue{Settings: Settings{
		Name:      strings.ToLower(raw.name),
		Path:      raw.path,
		Leaf:      raw.leaf(),
		Quota:     raw.resources.quota(raw.apps),
		SubmitACL: raw.submit,
		AdminACL:  raw.admin,
		Limits:    buildLimits(raw.limits),
	}}
	var above map[string]string
	if parent != nil {
		above = parent.Properties
	}
	q.Properties = inherit(above, raw.properties)
	q.Policies, _ = ParsePolicies(q.Properties) // checkProperties reports bad values, with their lines
	r.checkProperties(raw.properties)
	if parent == nil && q.Policies.Preemption == PreemptionFence {
		r.warnf(raw.place("properties."+propPreemption), raw.line, "has no effect on root: there is nothing above it")
	}
	q.Template = r.template(raw, q.Leaf, parent)
	for _, child := range raw.queues {
		q.Children = append(q.Children, r.build(child, q))
	}
	slices.SortFunc(q.Children, func(a, b *Queue) int { return strings.Compare(a.Name, b.Name) })
	return q
}

func buildLimits(raw []*rawLimit) []Limit {
	var out []Limit
	for _, l := range raw {
		out = append(out, Limit{
			Description:     l.description,
			Users:           values(l.users),
			Groups:          values(l.groups),
			MaxResources:    l.max.limit(),
			MaxApplications: l.apps.value,
		})
	}
	return out
}

func values(list []text) []string {
	var out []string
	for _, t := range list {
		out = append(out, t.value)
	}
	return out
}

// template gives the template for dynamic leaves below the queue: its own, or
// else its parent's. A leaf has none, since nothing is made below it.
func (r *report) template(raw *rawQueue, leaf bool, parent *Queue) *Template {
	switch own := raw.template; {
	case own != nil && leaf:
		r.warnf(own.at, own.line, "has no effect: nothing is created below a leaf; set parent: true if that is meant")
	case own != nil:
		return r.ownTemplate(own)
	case !leaf && parent != nil:
		return parent.Template
	}
	return nil
}

func (r *report) ownTemplate(raw *rawTemplate) *Template {
	r.checkProperties(raw.properties)
	for _, g := range raw.resources.guaranteed.list {
		if m, limited := raw.resources.max.get(g.name); limited && g.amount > m.amount {
			r.warnf(raw.at.at("resources.guaranteed."+label(g.name)), g.line,
				"%s is more than the max %s of the same template", quantity.Format(g.name, g.amount), quantity.Format(g.name, m.amount))
		}
	}
	properties := inherit(nil, raw.properties)
	policies, _ := ParsePolicies(properties) // checkProperties reports bad values
	return &Template{Quota: raw.resources.quota(raw.apps), Properties: properties, Policies: policies}
}
