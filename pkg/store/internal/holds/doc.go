// Package holds begins and ends the holds of nodes for preemptors, and lets a preemptor
// through when its node has room.
//
// It calls packages model and admission; see model for the order of the packages. The
// ledger of the holds is in package preemption.
package holds

import (
	"github.com/paddock-scheduler/paddock/pkg/store/internal/admission"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// Holds begins and ends holds. Make one with New.
type Holds struct {
	*model.Model
	states *admission.States
}

// New returns the holds of the preemptors of a model.
func New(m *model.Model, states *admission.States) *Holds { return &Holds{m, states} }
