package forecast

import (
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Forecast is the expected effect of one tree. Lists are sorted by path, then type, and may
// be empty.
type Forecast struct {
	OverMax  []OverMax  `json:"overMax"`
	Unmet    []Unmet    `json:"unmetGuarantees"`
	Stranded []Stranded `json:"stranded"`
	Losers   []Loser    `json:"couldLose"`
}

// OverMax is a queue that uses more of a type than its max. Nothing of it is
// stopped; nothing new is started until it is below.
type OverMax struct {
	Status    Status           `json:"status,omitempty"`
	Queue     string           `json:"queue"`
	Type      string           `json:"type"`
	Allocated resources.Amount `json:"allocated"`
	Max       resources.Amount `json:"max"`
}

// Unmet is more guaranteed below a queue than there can ever be: below root more
// than the nodes hold, below another more than its max.
type Unmet struct {
	Status Status `json:"status,omitempty"`
	Queue  string `json:"queue"`
	Type   string `json:"type"`
	// Guaranteed is what is guaranteed altogether, There what there is.
	Guaranteed resources.Amount `json:"guaranteed"`
	There      resources.Amount `json:"there"`
	// Promises are the largest guarantees in it, at most [Named]; More counts the rest.
	Promises []Promise `json:"promises"`
	More     int       `json:"more,omitempty"`
}

// Promise is what one queue is guaranteed of a type.
type Promise struct {
	Queue      string           `json:"queue"`
	Guaranteed resources.Amount `json:"guaranteed"`
}

// Cause says why pods are stranded.
type Cause string

// The causes. In a queue that was removed everything goes on, and nothing new is
// taken. In one that became a parent what runs goes on, and what waits is placed
// again.
const (
	WasRemoved   Cause = "removed"
	BecameParent Cause = "became a parent"
)

// Stranded is a queue that takes no new pods and has some. Of a tree that was
// removed only the uppermost queue is told.
type Stranded struct {
	Status Status `json:"status,omitempty"`
	Queue  string `json:"queue"`
	Cause  Cause  `json:"cause"`
	// Allocated and Pending are by type; empty for none.
	Allocated map[string]resources.Amount `json:"allocated,omitempty"`
	Pending   map[string]resources.Amount `json:"pending,omitempty"`
}

// Loser is a queue that may lose pods to others because of a type it has more
// of than it is guaranteed, and they less.
type Loser struct {
	Status Status `json:"status,omitempty"`
	Queue  string `json:"queue"`
	Type   string `json:"type"`
	// AtMost is how much it can lose before a guarantee protects it.
	AtMost resources.Amount `json:"atMost"`
	// Askers are the queues it may lose to, those with waiting pods first, then by path,
	// at most [Named]; More counts the rest. There is at least one.
	Askers []Asker `json:"askers"`
	More   int     `json:"more,omitempty"`
}

// Asker is a leaf that may take a type from others. Waits is true if pods that
// want it wait there now.
type Asker struct {
	Queue string `json:"queue"`
	Waits bool   `json:"waits"`
}

// Named is the largest number of queues that are named in one finding.
const Named = 10

// Of judges a tree. Without preemption no queue loses.
func Of(tree *queues.Snapshot, preemption bool) Forecast {
	f := Forecast{OverMax: overMax(tree), Unmet: unmet(tree), Stranded: stranded(tree)}
	if preemption {
		f.Losers = losers(tree)
	}
	return f
}
