package integration

import (
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// queueTree is the queues of a state, as package config reads them.
type queueTree map[string]any

// queuesOf returns the tree of a state under the name of its root on the stage. Every leaf
// has the delay. It is an error if root itself has settings and is not root on the stage,
// because the settings would have an effect there.
func queuesOf(state *scenario.State, name string, delay time.Duration) (queueTree, error) {
	root := state.Root
	if len(quotas(root)) > 0 || len(root.Properties) > 0 {
		return nil, fmt.Errorf("root has settings")
	}
	return tree(root, name, delay), nil
}

// queuesDocument is a queues.yaml with these queues below root.
func queuesDocument(below ...queueTree) (string, error) {
	text, err := yaml.Marshal(map[string]any{"partitions": []any{map[string]any{
		"name": "default", "placementrules": []any{map[string]any{"name": "provided"}},
		"queues": []any{map[string]any{"name": "root", "submitacl": "*", "queues": below}},
	}}})
	return string(text), err
}

func tree(q *config.Queue, name string, delay time.Duration) queueTree {
	t := queueTree{"name": name}
	if settings := quotas(q); len(settings) > 0 {
		t["resources"] = settings
	}
	properties := maps.Clone(q.Properties)
	if q.Leaf {
		properties["preemption.delay"] = delay.String()
	}
	if len(properties) > 0 {
		t["properties"] = properties
	}
	var children []queueTree
	for _, c := range q.Children {
		children = append(children, tree(c, c.Name, delay))
	}
	if len(children) > 0 {
		t["queues"] = children
	}
	return t
}

// quotas are the resources of a queue: guaranteed and max, by type.
func quotas(q *config.Queue) map[string]any {
	out := map[string]any{}
	add := func(kind string, all func(func(string, resources.Amount) bool)) {
		amounts := map[string]string{}
		for name, a := range all {
			amounts[typeName(name)] = quantity(name, a)
		}
		if len(amounts) > 0 {
			out[kind] = amounts
		}
	}
	add("guaranteed", q.Guaranteed.All())
	add("max", q.Max.All())
	return out
}

func quantity(name string, a resources.Amount) string {
	if name == resources.CPU {
		return fmt.Sprintf("%dm", a)
	}
	return fmt.Sprint(int64(a))
}
