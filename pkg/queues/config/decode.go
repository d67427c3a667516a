package config

import (
	"math"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"

	"go.yaml.in/yaml/v3"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// document reads the partitions. The key checksum is written by tools; its
// value is not looked at.
func (d *decoder) document(root *yaml.Node) []*rawPartition {
	var out []*rawPartition
	d.mapping(root, place{}, keys{
		"partitions": func(f field) {
			d.list(f, func(item field) {
				item.place = place{path: item.place.key}
				out = append(out, d.partition(item))
			})
		},
		"checksum": func(f field) { d.text(f) },
	})
	return out
}

func (d *decoder) partition(f field) *rawPartition {
	p := &rawPartition{path: f.path, line: f.line, preemption: true}
	var queues field
	d.mapping(f.node, f.place, keys{
		"name":   func(f field) { p.name = d.text(f) },
		"queues": func(f field) { queues = f },
		"placementrules": func(f field) {
			d.list(f, func(item field) { p.rules = append(p.rules, d.rule(item, item.place.key)) })
		},
		"limits":            func(f field) { p.limits = d.limits(f, RootName) },
		"nodesortpolicy":    func(f field) { d.nodeSortPolicy(f) },
		"preemption":        func(f field) { p.preemption = d.preemption(f) },
		"usergroupresolver": func(f field) { d.userGroupResolver(f) },
	})
	if queues.node == nil || isNull(queues.node) {
		return p
	}
	queues.place = place{path: RootName, key: "queues"}
	if onlyRoot(queues.node) {
		p.root = d.queues(queues, nil, 0)[0]
		return p
	}
	p.root = &rawQueue{name: RootName, path: RootName, line: queues.line}
	p.root.queues = d.queues(queues, p.root, 1)
	return p
}

// onlyRoot tells whether the list of top queues is the root queue alone.
func onlyRoot(n *yaml.Node) bool {
	n = deref(n)
	return n.Kind == yaml.SequenceNode && len(n.Content) == 1 && strings.EqualFold(nameOf(n.Content[0]), RootName)
}

// nameOf returns what the key name of a mapping says, without reporting anything.
func nameOf(n *yaml.Node) string {
	silent := decoder{report: new(report)}
	for _, f := range silent.fields(n, place{}) {
		if f.key == "name" {
			return silent.text(f).value
		}
	}
	return ""
}

func (d *decoder) nodeSortPolicy(f field) {
	if isNull(f.node) {
		return
	}
	at := place{path: "nodesortpolicy"}
	d.mapping(f.node, at, keys{
		"type": func(f field) {
			switch t := d.text(f); t.value {
			case "", "fair", "binpacking":
			default:
				d.errorf(f.place, t.line, "%s is not a node sort policy: use fair or binpacking", quote(t.value))
			}
		},
		"resourceweights": func(f field) {
			for _, weight := range d.fields(f.node, f.place) {
				d.weight(weight)
			}
		},
	})
	d.warnf(at, f.line, "has no effect: nodes are scored by the plugins of the scheduler profile, see NodeResourcesFit")
}

func (d *decoder) weight(f field) {
	var value float64
	n := deref(f.node)
	switch {
	case n.Kind != yaml.ScalarNode || isNull(n) || n.Decode(&value) != nil || math.IsNaN(value) || math.IsInf(value, 1):
		d.errorf(f.place, n.Line, "must be a number, not %s", kindOf(n))
	case value < 0:
		d.errorf(f.place, n.Line, "must not be negative, is %s", kindOf(n))
	}
}

func (d *decoder) preemption(f field) bool {
	enabled := true
	d.mapping(f.node, place{path: "preemption"}, keys{
		"enabled": func(f field) { enabled = d.boolean(f, true) },
		"quotapreemptionenabled": func(f field) {
			if d.boolean(f, false) {
				d.warnf(f.place, f.line, "has no effect: pods over a lowered max are not preempted")
			}
		},
	})
	return enabled
}

func (d *decoder) userGroupResolver(f field) {
	at := place{path: "usergroupresolver"}
	d.mapping(f.node, at, keys{"type": func(f field) {
		if t := d.text(f); t.value != "" {
			d.warnf(f.place, f.line, "has no effect: groups come from the annotation yunikorn.apache.org/user.info only")
		}
	}})
}

func (d *decoder) resources(f field) (out rawResources) {
	d.mapping(f.node, f.place, keys{
		"guaranteed": func(f field) { out.guaranteed = d.amounts(f) },
		"max":        func(f field) { out.max = d.amounts(f) },
	})
	return out
}

// amounts reads a map of quantities. Where all amounts are 0 the map says nothing.
func (d *decoder) amounts(f field) rawAmounts {
	out := rawAmounts{line: f.line}
	positive := false
	for _, entry := range d.fields(f.node, f.place) {
		out.written++
		amount, ok := d.amount(entry)
		if !ok {
			out.broken = true
			continue
		}
		positive = positive || amount > 0
		out.list = append(out.list, rawAmount{entry.key, amount, entry.line})
	}
	if !positive {
		out.list = nil
	}
	slices.SortFunc(out.list, func(a, b rawAmount) int { return strings.Compare(a.name, b.name) })
	if n := deref(f.node); n.Kind != yaml.MappingNode && !isNull(n) {
		out.broken = true
	}
	return out
}

func (d *decoder) amount(f field) (resources.Amount, bool) {
	n := deref(f.node)
	if n.Kind != yaml.ScalarNode || isNull(n) {
		d.errorf(f.place, f.line, "must be a quantity, not %s", kindOf(n))
		return 0, false
	}
	if strings.TrimSpace(f.key) == "" {
		d.errorf(f.place, f.line, "the name of the resource type is empty")
		return 0, false
	}
	amount, err := quantity.Parse(f.key, n.Value)
	if err != nil {
		d.errorf(f.place, n.Line, "%v", err)
		return 0, false
	}
	if f.key == "cpu" {
		d.warnf(f.place, f.line, "no pod uses a resource type cpu: CPU is called %s here", resources.CPU)
	}
	return amount, true
}

func (d *decoder) properties(f field) []rawProperty {
	var out []rawProperty
	for _, entry := range d.fields(f.node, f.place) {
		value := d.text(entry)
		out = append(out, rawProperty{entry.key, value.value, entry.place, entry.line})
	}
	return out
}

func (d *decoder) acl(f field) ACL {
	t := d.text(f)
	acl, ignored, err := parseACL(t.value)
	if err != nil {
		d.errorf(f.place, t.line, "%s %v", quote(t.value), err)
	}
	for _, name := range ignored {
		d.warnf(f.place, t.line, "%s cannot be a name and is left out", quote(name))
	}
	return acl
}
