package queuestest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Node is a queue as a test writes it, before inheritance.
type Node struct {
	Name string
	// Parent makes a queue without children a parent.
	Parent          bool
	Guaranteed, Max map[string]resources.Amount
	MaxApplications uint64
	Properties      map[string]string
	SubmitACL       config.ACL
	AdminACL        config.ACL
	Template        *Node // its name and children are not looked at
	Limits          []config.Limit
	Children        []*Node
	closed          bool // SubmitACL was given
}

// Spec resolves what queues inherit, as package config does for a file, and returns the
// specification without placement rules. All users may submit at root unless a text said
// otherwise.
func Spec(root *Node) (*config.Spec, error) {
	if !root.closed {
		root.SubmitACL = config.ACL{Everybody: true}
	}
	root.Parent = true
	q, err := resolve(root, nil)
	if err != nil {
		return nil, err
	}
	return &config.Spec{Root: q, PreemptionEnabled: true}, nil
}

func resolve(n *Node, parent *config.Queue) (*config.Queue, error) {
	q := &config.Queue{
		Name: n.Name, Path: n.Name, Leaf: !n.Parent && len(n.Children) == 0,
		Guaranteed: resources.GuaranteeFrom(n.Guaranteed), Max: resources.LimitFrom(n.Max),
		MaxApplications: n.MaxApplications, Properties: map[string]string{},
		SubmitACL: n.SubmitACL, AdminACL: n.AdminACL, Limits: n.Limits,
	}
	if parent != nil {
		q.Path = parent.Path + "." + n.Name
		q.Properties = config.Inherited(parent.Properties)
		q.Template = parent.Template
	}
	maps.Copy(q.Properties, n.Properties)
	var err error
	if q.Policies, err = config.ParsePolicies(q.Properties); err != nil {
		return nil, fmt.Errorf("queue %s: %w", q.Path, err)
	}
	if n.Template != nil {
		if q.Template, err = template(n.Template); err != nil {
			return nil, fmt.Errorf("template of %s: %w", q.Path, err)
		}
	}
	for _, c := range n.Children {
		child, err := resolve(c, q)
		if err != nil {
			return nil, err
		}
		q.Children = append(q.Children, child)
	}
	slices.SortFunc(q.Children, func(a, b *config.Queue) int { return cmp.Compare(a.Name, b.Name) })
	if q.Leaf {
		q.Template = nil
	}
	return q, nil
}

func template(n *Node) (*config.Template, error) {
	policies, err := config.ParsePolicies(n.Properties)
	return &config.Template{
		Guaranteed: resources.GuaranteeFrom(n.Guaranteed), Max: resources.LimitFrom(n.Max),
		MaxApplications: n.MaxApplications, Properties: n.Properties, Policies: policies,
	}, err
}
