package preemption

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Preemption has all state of the component. Most parts have a Check.
type Preemption struct {
	Options
	Limiter           Limiter
	Watches           Watches
	Snapshot          Snapshot
	NodeBound         *NodeBound
	OwnTime           OwnTime
	KubeletRejections KubeletRejections
	// Undeletable are victims that the API server refused to delete.
	Undeletable Undeletable
	Ledger      *Ledger
	// Waiting has the askers that wait for room which becomes free without victims, each until the
	// next plan for it has a result, or it needs no plan any more.
	Waiting map[types.UID]Waiting
	// InPermit has the pods that wait in a Permit plugin and may be victims of the last
	// asker that was planned for.
	InPermit map[types.UID]bool
}

// Waiting is a wait for room of a node, without a break since a time.
type Waiting struct {
	Node  string
	Since time.Time
}

// New returns the component with default options and without pods.
func New() *Preemption {
	return &Preemption{
		Options:   DefaultOptions(),
		Limiter:   NewLimiter(perNode, Turns),
		Watches:   NewWatches(),
		NodeBound: NewNodeBound(),
		Ledger:    newLedger(),
		Waiting:   map[types.UID]Waiting{},
	}
}

// Check verifies all parts.
func (p *Preemption) Check() error {
	return errors.Join(
		p.Limiter.Check(), p.Watches.Check(), p.Snapshot.Check(),
		p.NodeBound.Check(), p.KubeletRejections.Check(), p.Ledger.Check(), p.OwnTime.Check(func(uid types.UID) bool { _, holds := p.Ledger.Of(uid); return holds }),
	)
}
