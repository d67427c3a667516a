package eventlog

import (
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// record makes the records of one event. The record that adds a queue comes before the
// records of its content, the one that removes it after them.
func (l *Log) record(e *output.Event) {
	switch e.Kind {
	case output.QueuesCame:
		l.grow(e.Queues)
	case output.QueuesWent:
		l.shrink(e.Queues)
		l.queues = e.Queues
	case output.AppAdded, output.AppRemoved, output.AppRuns, output.AppCompleted, output.AppRefused:
		l.app(e)
	case output.Asked, output.AskGone, output.Allocated, output.Released, output.Resized, output.Told, output.Chosen:
		l.pod(e)
	case output.ForeignCame, output.ForeignWent, output.HoldBegan, output.HoldEnded:
		l.onNode(e)
	case output.NodeCame, output.NodeChanged, output.NodeWent, output.NodeOpened, output.NodeClosed, output.CapacityChanged:
		l.node(e)
	case output.Decided: // a decision is no fact
	}
}

func (l *Log) app(e *output.Event) {
	a := e.App
	switch e.Kind {
	case output.AppAdded:
		l.put(Record{Type: App, Change: Add, Detail: AppNew, Object: a.ID})
		l.put(Record{Type: Queue, Change: Add, Detail: QueueApp, Object: a.Queue, Reference: a.ID})
		if a.Group != "" {
			l.put(Record{Type: UserGroup, Change: Set, Detail: AppLink, Object: a.Group, Reference: a.ID})
		}
		l.put(Record{Type: App, Change: Set, Detail: AppAccepted, Object: a.ID})
	case output.AppRuns:
		l.put(Record{Type: App, Change: Set, Detail: AppRunning, Object: a.ID})
	case output.AppCompleted:
		l.put(Record{Type: App, Change: Set, Detail: AppCompleted, Object: a.ID})
	case output.AppRemoved:
		if a.Group != "" {
			l.put(Record{Type: UserGroup, Change: Remove, Detail: AppLink, Object: a.Group, Reference: a.ID})
		}
		l.put(Record{Type: Queue, Change: Remove, Detail: QueueApp, Object: a.Queue, Reference: a.ID})
		l.put(Record{Type: App, Change: Remove, Object: a.ID})
	case output.AppRefused:
		l.put(Record{Type: App, Change: Set, Detail: AppReject, Object: a.ID, Reference: string(e.Pod), Message: short(e.Text), Amount: e.Amount})
	default:
	}
}

func (l *Log) pod(e *output.Event) {
	uid := string(e.Pod)
	ask := Record{Type: App, Detail: AppRequest, Reference: uid, Amount: e.Amount}
	if e.App != nil {
		ask.Object = e.App.ID
	}
	switch e.Kind {
	case output.Asked:
		ask.Change = Add
		l.put(ask)
	case output.AskGone:
		ask.Change, ask.Detail = Remove, RequestCancel
		l.put(ask)
	case output.Allocated:
		l.put(Record{Type: Node, Change: Add, Detail: NodeAlloc, Object: e.Node, Reference: uid, Amount: e.Amount})
		l.owners(e, Add)
		ask.Change, ask.Detail = Add, AppAlloc
		l.put(ask)
	case output.Released:
		l.owners(e, Remove)
		ask.Change, ask.Detail = Remove, AllocCancel
		if e.Preempted {
			ask.Detail = AllocPreempt
		}
		l.put(ask)
		l.put(Record{Type: Node, Change: Remove, Detail: NodeAlloc, Object: e.Node, Reference: uid, Amount: e.Amount})
	case output.Resized:
		more := *e
		if more.Amount = e.Amount.Floor0(); !more.Amount.IsZero() {
			l.owners(&more, Add)
		}
		if more.Amount = more.Amount.Sub(e.Amount); !more.Amount.IsZero() {
			l.owners(&more, Remove)
		}
	default: // Told, Chosen
		l.put(Record{Type: Request, Object: uid, Reference: ask.Object, Message: short(e.Text), Amount: e.Amount})
	}
}

// owners are the records of the user and group that are charged.
func (l *Log) owners(e *output.Event, c Change) {
	if e.App.User != "" {
		l.put(Record{Type: UserGroup, Change: c, Detail: UserResource, Object: e.App.User, Reference: e.App.Queue, Amount: e.Amount})
	}
	if e.App.Group != "" {
		l.put(Record{Type: UserGroup, Change: c, Detail: GroupResource, Object: e.App.Group, Reference: e.App.Queue, Amount: e.Amount})
	}
}

// onNode makes the records of foreign pods and of holds.
func (l *Log) onNode(e *output.Event) {
	r := Record{Type: Node, Change: Add, Detail: NodeAlloc, Object: e.Node, Reference: string(e.Pod), Amount: e.Amount}
	if e.Kind == output.ForeignWent || e.Kind == output.HoldEnded {
		r.Change = Remove
	}
	if e.Kind == output.HoldBegan || e.Kind == output.HoldEnded {
		r.Detail = NodeHold
	} else {
		r.Message = "foreign allocation: " + e.Text
	}
	l.put(r)
}

func (l *Log) node(e *output.Event) {
	r := Record{Type: Node, Object: e.Node, Change: Set}
	switch e.Kind {
	case output.NodeCame:
		r.Change, r.Message, r.Amount = Add, "the node is known to the scheduler now", e.Amount
	case output.NodeChanged:
		r.Detail, r.Amount = NodeCapacity, e.Amount
	case output.NodeWent:
		r.Change, r.Detail, r.Message = Remove, NodeGone, "the node is gone"
	case output.NodeOpened:
		r.Detail, r.Message = NodeOpen, "schedulable: true"
	case output.NodeClosed:
		r.Detail, r.Message = NodeOpen, "schedulable: false"
	default: // CapacityChanged
		r = Record{Type: Queue, Change: Set, Detail: QueueMax, Object: "root", Amount: e.Amount}
	}
	l.put(r)
}
