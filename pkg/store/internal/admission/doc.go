// Package admission decides which waiting pod gets a slot next. It has every transition of
// a pod without a node ([States]), the choice of the next pod ([Slots]), PodGroups that
// start together ([Groups]), and which pods more nodes would help ([Demand]).
//
// It calls package model and nothing above; see there for the order of the packages.
package admission

import "github.com/paddock-scheduler/paddock/pkg/store/internal/model"

// States moves pods from one state to another and keeps the books right.
type States struct{ *model.Model }

// NewStates returns the transitions of the pods of a model.
func NewStates(m *model.Model) *States { return &States{m} }

// Groups starts the members of PodGroups together, or none of them.
type Groups struct {
	*model.Model
	states *States
}

// NewGroups returns the PodGroups of a model.
func NewGroups(m *model.Model, states *States) *Groups { return &Groups{m, states} }

// Slots gives the slots of the window to the first pods of the order, and keeps room for
// the pod that could preempt for it.
type Slots struct {
	*model.Model
	states *States
	groups *Groups
}

// NewSlots returns the slots of a model.
func NewSlots(m *model.Model, states *States, groups *Groups) *Slots {
	return &Slots{m, states, groups}
}

// Demand tells which pods without a node would run if nodes came.
type Demand struct{ *model.Model }

// NewDemand returns the demand of the pods of a model.
func NewDemand(m *model.Model) *Demand { return &Demand{m} }
