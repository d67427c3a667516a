// Package cycle takes up the steps of scheduling cycles: a pod passes the gate, is checked
// against its quotas, gets a node or finds none.
//
// It calls all packages below it; see package model for their order.
package cycle

import (
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/holds"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/lifecycle"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/plans"
)

// Cycle takes up the steps of scheduling cycles. Make one with New.
type Cycle struct {
	*model.Model
	states    *admission.States
	groups    *admission.Groups
	slots     *admission.Slots
	demand    *admission.Demand
	holds     *holds.Holds
	nodeBound *plans.NodeBound
	life      *lifecycle.Lifecycle
}

// Parts are what a Cycle calls.
type Parts struct {
	States    *admission.States
	Groups    *admission.Groups
	Slots     *admission.Slots
	Demand    *admission.Demand
	Holds     *holds.Holds
	NodeBound *plans.NodeBound
	Life      *lifecycle.Lifecycle
}

// New returns the cycles of the pods of a model.
func New(m *model.Model, p Parts) *Cycle {
	return &Cycle{m, p.States, p.Groups, p.Slots, p.Demand, p.Holds, p.NodeBound, p.Life}
}
