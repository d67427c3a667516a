package model

import (
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// PlacementOf returns what placement needs to know of a pod.
func PlacementOf(p *objects.Pod) placement.Pod {
	return placement.Pod{
		Namespace: p.Namespace, Name: p.Name, UID: string(p.UID),
		Labels: p.Labels, Annotations: p.Annotations,
	}
}

// Tree adapts the draft to package placement.
type Tree struct{ *queues.Draft }

// Queue returns what placement needs to know about a queue.
func (t Tree) Queue(path string) (placement.QueueInfo, bool) {
	q, ok := t.Find(path)
	if !ok {
		return placement.QueueInfo{}, false
	}
	return placement.QueueInfo{Leaf: q.Leaf, Draining: q.State == queues.Draining}, true
}

// MaySubmit tells whether the user may submit to an existing queue.
func (t Tree) MaySubmit(path, user string, groups []string) bool {
	q, ok := t.Find(path)
	return ok && queues.MaySubmit(t.Draft, q.ID, user, groups)
}
