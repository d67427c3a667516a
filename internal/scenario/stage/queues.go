package stage

import (
	"fmt"
	"maps"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Tree is the queues of a world, as package config reads them.
type Tree map[string]any

// Queues returns the tree of a world under the name of its root on the stage. Every leaf
// has the delay. It is an error if root itself has settings and is not root on the stage,
// because the settings would have an effect there.
func Queues(w *scenario.World, name string, delay time.Duration) (Tree, error) {
	root := w.Root
	if len(quotas(root)) > 0 || len(root.Properties) > 0 {
		return nil, fmt.Errorf("root has settings")
	}
	return tree(root, name, delay), nil
}

// Document is a queues.yaml with these queues below root.
func Document(below ...Tree) (string, error) {
	text, err := yaml.Marshal(map[string]any{"partitions": []any{map[string]any{
		"name": "default", "placementrules": []any{map[string]any{"name": "provided"}},
		"queues": []any{map[string]any{"name": "root", "submitacl": "*", "queues": below}},
	}}})
	return string(text), err
}

// Children are the queues of a tree.
func (t Tree) Children() []Tree {
	children, _ := t["queues"].([]Tree)
	return children
}

func tree(q *config.Queue, name string, delay time.Duration) Tree {
	t := Tree{"name": name}
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
	var children []Tree
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
