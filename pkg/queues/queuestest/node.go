package queuestest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// Spec returns the specification, without placement rules, of queues that a test writes with
// their own settings only. It adds what depends on other queues, as package config does for a
// file: paths, what is inherited, and which queues are leaves. A queue with an empty list of
// children, not nil, is a parent. All users may submit at root if it has no submit list.
func Spec(root *config.Queue) (*config.Spec, error) {
	q, err := resolve(root, nil)
	if err != nil {
		return nil, err
	}
	if submit := q.SubmitACL; len(submit.Users)+len(submit.Groups) == 0 {
		q.SubmitACL.Everybody = true
	}
	return &config.Spec{Root: q, PreemptionEnabled: true}, nil
}

func resolve(own, parent *config.Queue) (*config.Queue, error) {
	q := *own
	q.Path, q.Properties, q.Children = own.Name, map[string]string{}, nil
	if parent != nil {
		q.Path = parent.Path + "." + own.Name
		q.Leaf = own.Children == nil
		q.Properties = config.Inherited(parent.Properties)
		q.Template = cmp.Or(own.Template, parent.Template)
	}
	maps.Copy(q.Properties, own.Properties)
	var err error
	if q.Policies, err = config.ParsePolicies(q.Properties); err != nil {
		return nil, fmt.Errorf("queue %s: %w", q.Path, err)
	}
	if t := own.Template; t != nil {
		if t.Policies, err = config.ParsePolicies(t.Properties); err != nil {
			return nil, fmt.Errorf("template of %s: %w", q.Path, err)
		}
	}
	for _, c := range own.Children {
		child, err := resolve(c, &q)
		if err != nil {
			return nil, err
		}
		q.Children = append(q.Children, child)
	}
	slices.SortFunc(q.Children, func(a, b *config.Queue) int { return cmp.Compare(a.Name, b.Name) })
	if q.Leaf {
		q.Template = nil
	}
	return &q, nil
}
