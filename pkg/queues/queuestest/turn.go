package queuestest

import (
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// Turned returns the specification with one leaf as the parent of a leaf "a". The number
// chooses which one. It is the specification itself where there is no leaf.
func Turned(spec *config.Spec, n int) *config.Spec {
	count := leaves(spec.Root)
	if count == 0 {
		return spec
	}
	out, at := *spec, n%count
	out.Root = turned(spec.Root, spec.Root.Template, &at)
	return &out
}

func leaves(q *config.Queue) int {
	count := 0
	if q.Leaf {
		count = 1
	}
	for _, c := range q.Children {
		count += leaves(c)
	}
	return count
}

// turned copies a queue and what is below it, and turns the leaf that is reached when at is 0.
func turned(q *config.Queue, template *config.Template, at *int) *config.Queue {
	out := *q
	if q.Leaf {
		if *at == 0 {
			out.Leaf, out.Template = false, template
			out.Children = []*config.Queue{{Name: "a", Path: q.Path + ".a", Leaf: true, Policies: config.DefaultPolicies()}}
		}
		*at--
		return &out
	}
	out.Children = slices.Clone(q.Children)
	for i, c := range out.Children {
		out.Children[i] = turned(c, q.Template, at)
	}
	return &out
}
