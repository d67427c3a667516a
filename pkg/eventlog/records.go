package eventlog

import (
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// moment makes the records of one change. Queues come before what happens in them,
// and go after it.
func (l *Log) moment(m *store.Moment, happenings []store.Happening) {
	nanos, first := m.At.UnixNano(), len(l.made)
	before := l.queues
	if m.Queues != nil {
		l.queues = m.Queues
		l.grow(before, m.Queues)
	}
	for i := range happenings {
		l.happening(&happenings[i])
	}
	if m.Queues != nil {
		l.shrink(before, m.Queues)
	}
	for i := range l.made[first:] {
		l.made[first+i].Nanos = nanos
	}
}

func (l *Log) put(r Record) { l.made = append(l.made, r) }

// happening makes the records of one happening.
func (l *Log) happening(h *store.Happening) {
	switch h.Kind {
	case store.AppAdded, store.AppRemoved, store.AppRuns, store.AppCompleted, store.AppRefused:
		l.app(h)
	case store.Asked, store.AskGone, store.Allocated, store.Released, store.Resized, store.Told, store.Chosen:
		l.pod(h)
	case store.ForeignCame, store.ForeignWent, store.HoldBegan, store.HoldEnded:
		l.onNode(h)
	case store.NodeCame, store.NodeChanged, store.NodeWent, store.NodeOpened, store.NodeClosed, store.CapacityChanged:
		l.node(h)
	}
}

func (l *Log) app(h *store.Happening) {
	a := h.App
	switch h.Kind {
	case store.AppAdded:
		l.put(Record{Type: App, Change: Add, Detail: AppNew, Object: a.ID})
		l.put(Record{Type: Queue, Change: Add, Detail: QueueApp, Object: a.Queue, Reference: a.ID})
		if a.Group != "" {
			l.put(Record{Type: UserGroup, Change: Set, Detail: AppLink, Object: a.Group, Reference: a.ID})
		}
		l.put(Record{Type: App, Change: Set, Detail: AppAccepted, Object: a.ID})
	case store.AppRuns:
		l.put(Record{Type: App, Change: Set, Detail: AppRunning, Object: a.ID})
	case store.AppCompleted:
		l.put(Record{Type: App, Change: Set, Detail: AppCompleted, Object: a.ID})
	case store.AppRemoved:
		if a.Group != "" {
			l.put(Record{Type: UserGroup, Change: Remove, Detail: AppLink, Object: a.Group, Reference: a.ID})
		}
		l.put(Record{Type: Queue, Change: Remove, Detail: QueueApp, Object: a.Queue, Reference: a.ID})
		l.put(Record{Type: App, Change: Remove, Object: a.ID})
	case store.AppRefused:
		l.put(Record{Type: App, Change: Set, Detail: AppReject, Object: a.ID, Reference: string(h.Pod), Message: short(h.Text), Amount: h.Amount})
	default:
	}
}

func (l *Log) pod(h *store.Happening) {
	uid := string(h.Pod)
	ask := Record{Type: App, Detail: AppRequest, Reference: uid, Amount: h.Amount}
	if h.App != nil {
		ask.Object = h.App.ID
	}
	switch h.Kind {
	case store.Asked:
		ask.Change = Add
		l.put(ask)
	case store.AskGone:
		ask.Change, ask.Detail = Remove, RequestCancel
		l.put(ask)
	case store.Allocated:
		l.put(Record{Type: Node, Change: Add, Detail: NodeAlloc, Object: h.Node, Reference: uid, Amount: h.Amount})
		l.owners(h, Add)
		ask.Change, ask.Detail = Add, AppAlloc
		l.put(ask)
	case store.Released:
		l.owners(h, Remove)
		ask.Change, ask.Detail = Remove, AllocCancel
		if h.Preempted {
			ask.Detail = AllocPreempt
		}
		l.put(ask)
		l.put(Record{Type: Node, Change: Remove, Detail: NodeAlloc, Object: h.Node, Reference: uid, Amount: h.Amount})
	case store.Resized:
		more := *h
		if more.Amount = h.Amount.Floor0(); !more.Amount.IsZero() {
			l.owners(&more, Add)
		}
		if more.Amount = more.Amount.Sub(h.Amount); !more.Amount.IsZero() {
			l.owners(&more, Remove)
		}
	default: // Told, Chosen
		l.put(Record{Type: Request, Object: uid, Reference: ask.Object, Message: short(h.Text), Amount: h.Amount})
	}
}

// owners are the records of the user and group that are charged.
func (l *Log) owners(h *store.Happening, c Change) {
	if h.App.User != "" {
		l.put(Record{Type: UserGroup, Change: c, Detail: UserResource, Object: h.App.User, Reference: h.App.Queue, Amount: h.Amount})
	}
	if h.App.Group != "" {
		l.put(Record{Type: UserGroup, Change: c, Detail: GroupResource, Object: h.App.Group, Reference: h.App.Queue, Amount: h.Amount})
	}
}

// onNode makes the records of foreign pods and of holds.
func (l *Log) onNode(h *store.Happening) {
	r := Record{Type: Node, Change: Add, Detail: NodeAlloc, Object: h.Node, Reference: string(h.Pod), Amount: h.Amount}
	if h.Kind == store.ForeignWent || h.Kind == store.HoldEnded {
		r.Change = Remove
	}
	if h.Kind == store.HoldBegan || h.Kind == store.HoldEnded {
		r.Detail = NodeHold
	} else {
		r.Message = "foreign allocation: " + h.Text
	}
	l.put(r)
}

func (l *Log) node(h *store.Happening) {
	r := Record{Type: Node, Object: h.Node, Change: Set}
	switch h.Kind {
	case store.NodeCame:
		r.Change, r.Message, r.Amount = Add, "the node is known to the scheduler now", h.Amount
	case store.NodeChanged:
		r.Detail, r.Amount = NodeCapacity, h.Amount
	case store.NodeWent:
		r.Change, r.Detail, r.Message = Remove, NodeGone, "the node is gone"
	case store.NodeOpened:
		r.Detail, r.Message = NodeOpen, "schedulable: true"
	case store.NodeClosed:
		r.Detail, r.Message = NodeOpen, "schedulable: false"
	default: // CapacityChanged
		r = Record{Type: Queue, Change: Set, Detail: QueueMax, Object: "root", Amount: h.Amount}
	}
	l.put(r)
}
