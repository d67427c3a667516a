// Package plans decides when a plan is made and for which pod, and checks a plan again
// before its victims are deleted. Plans themselves are made by package planner.
//
// [Plans] has the pods that may run on many nodes, [NodeBound] those that can run on one
// node only, and [Adoption] the plans that another process has written.
//
// It calls packages model, admission and holds; see model for the order of the packages.
package plans

import (
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/holds"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// NodeBound makes room for pods that can run on one node only, such as those of DaemonSets.
type NodeBound struct {
	*model.Model
	states *admission.States
	holds  *holds.Holds
}

// NewNodeBound returns the node-bound preemptors of a model.
func NewNodeBound(m *model.Model, states *admission.States, held *holds.Holds) *NodeBound {
	return &NodeBound{m, states, held}
}

// Plans makes room for pods that may run on many nodes.
type Plans struct {
	*model.Model
	states    *admission.States
	groups    *admission.Groups
	holds     *holds.Holds
	nodeBound *NodeBound
}

// New returns the plans for the preemptors of a model.
func New(m *model.Model, states *admission.States, groups *admission.Groups, held *holds.Holds, nodeBound *NodeBound) *Plans {
	return &Plans{m, states, groups, held, nodeBound}
}

// Adoption takes up holds that are written on pods.
type Adoption struct {
	*model.Model
	states *admission.States
	slots  *admission.Slots
	holds  *holds.Holds
}

// NewAdoption returns the adoption of the holds of a model.
func NewAdoption(m *model.Model, states *admission.States, slots *admission.Slots, held *holds.Holds) *Adoption {
	return &Adoption{m, states, slots, held}
}
