package preemption

import (
	"errors"
	"slices"
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
	// Waiting has the askers that wait for room of a node that becomes free without victims, and
	// that node. An asker is in it until the next plan for it begins.
	Waiting map[types.UID]string
	// InPermit has the pods that wait in a Permit plugin and may be victims of the last
	// asker that was planned for.
	InPermit map[types.UID]bool
}

// New returns the component with default options and without pods.
func New() *Preemption {
	return &Preemption{
		Options:   DefaultOptions(),
		Limiter:   NewLimiter(perNode, Turns),
		Watches:   NewWatches(),
		NodeBound: NewNodeBound(),
		Ledger:    newLedger(),
		Waiting:   map[types.UID]string{},
	}
}

// Check verifies all parts.
func (p *Preemption) Check() error {
	return errors.Join(
		p.Limiter.Check(), p.Watches.Check(), p.Snapshot.Check(),
		p.NodeBound.Check(), p.KubeletRejections.Check(), p.Ledger.Check(), p.OwnTime.Check(func(uid types.UID) bool { _, holds := p.Ledger.Of(uid); return holds }),
	)
}

// Latest returns the last of at least one time.
func Latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }
