// Package lifecycle takes up what informers tell: pods, nodes, namespaces, disruption
// budgets, PriorityClasses and configurations that come, change and go.
//
// It calls packages model, admission, holds and plans; see model for the order of the
// packages.
package lifecycle

import (
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/holds"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/plans"
)

// Lifecycle takes up what informers tell. Make one with New.
type Lifecycle struct {
	*model.Model
	states   *admission.States
	slots    *admission.Slots
	holds    *holds.Holds
	adoption *plans.Adoption
}

// New returns the lifecycle of the objects of a model.
func New(m *model.Model, states *admission.States, slots *admission.Slots, held *holds.Holds, adoption *plans.Adoption) *Lifecycle {
	return &Lifecycle{m, states, slots, held, adoption}
}
