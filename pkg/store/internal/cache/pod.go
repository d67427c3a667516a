package cache

import (
	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Pod is the record of a pod from its first event until it is gone. It has all that the
// store needs of a running pod.
type Pod struct {
	*objects.Pod // the latest event; immutable, because readers share it
	// Node and Deleting may be ahead of the latest event: Node is set when the pod is
	// assumed, and Deleting by events seen while it is assumed.
	Node     string
	Deleting bool

	in   Columns // in which it is charged; here with seat, because both fit in one word
	seat int32   // index in on.pods

	app    *App             // nil while it has no queue
	amount resources.Vector // charged in the columns; kept while these are none
	age    int              // index in app.living

	on      *Node            // where it uses resources; nil for nowhere
	uses    resources.Vector // its usage of that node
	arrival uint64
}

// NewPod returns the record of a pod after its first event.
func NewPod(event *objects.Pod) Pod {
	p := Pod{age: ranking.Outside}
	p.SetEvent(event)
	return p
}

// SetEvent takes over the content of an event.
func (p *Pod) SetEvent(event *objects.Pod) {
	p.Pod, p.Node, p.Deleting = event, event.Node, event.Deleting
}

// Amount is what the pod is charged in the columns of In.
func (p *Pod) Amount() resources.Vector { return p.amount }

// In has the columns of the books that the pod is charged in.
func (p *Pod) In() Columns { return p.in }

// Is tells whether the pod is charged in any of some columns.
func (p *Pod) Is(columns Columns) bool { return p.in&columns != 0 }

// Charged is what the pod is charged in a column.
func (p *Pod) Charged(column Columns) resources.Vector {
	if !p.Is(column) {
		return resources.Vector{}
	}
	return p.amount
}

// On is the node that the pod uses; nil for none.
func (p *Pod) On() *Node { return p.on }

// IsOn tells whether the pod uses the node of this name.
func (p *Pod) IsOn(node string) bool { return p.on != nil && p.on.name == node }

// Uses is what the pod uses of its node.
func (p *Pod) Uses() resources.Vector { return p.uses }

// Arrival is [Nodes.Arrivals] when the pod came to its node or last grew there.
func (p *Pod) Arrival() uint64 { return p.arrival }
