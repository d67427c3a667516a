package model

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/history"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// History has what happened and what changed, for readers: the events, the reports to
// users, the dirty sets and the counts of waiting pods.
//
// Events are what happened, in order and with times; the current state (output.Changes)
// does not have that. A method adds an event in a few fields, without text and without
// lookups, and the end of the change adds the time. A reader takes the list of its topic and
// leaves an empty one. Package eventlog turns facts into text; packages record and metrics
// follow the decisions.
//
// Readers need every pod, but must not delay the scheduling decisions. So the dirty sets
// mark what changed, one reader (TakeChanges of package store) fetches it in small
// portions, and all others read that reader's copy. Without a reader a mark costs one list
// entry per pod, however often the pod changes, and objects that were never published leave
// no entry when they go.
type History struct {
	Readers   [output.Topics][]*history.Events // a list for each reader of a topic
	Started   bool                             // objects that exist before Start cause no facts
	treeNoted uint64                           // tree generation of the last event QueuesWent
	Reports   history.Reports
	Waits     history.WaitCounts

	Pods  history.Dirty[types.UID, output.PodRecord, *Pod]
	Apps  history.Dirty[uint64, output.AppRecord, *App]
	Nodes history.Dirty[string, output.NodeRecord, *SeenNode]
	Seen  map[string]*SeenNode // the nodes that are known, by name

	Finished []*output.AppRecord // the last applications that ended, oldest first; readers share it
	Counts   output.Counts
}

func newHistory() History {
	return History{Reports: history.NewReports(), Waits: history.NewWaitCounts(), Seen: map[string]*SeenNode{}}
}

// FinishedKept is how many ended applications are remembered.
const FinishedKept = 1000

// eventsKept is how many events are kept for a reader, which comes several times a second.
const eventsKept = 1 << 16

// Follow adds a reader of a topic, and returns its list.
func (h *History) Follow(t output.Topic) *history.Events {
	l := history.NewEvents(eventsKept)
	h.Readers[t] = append(h.Readers[t], l)
	return l
}

// Wants tells whether events of a topic are kept.
func (h *History) Wants(t output.Topic) bool {
	return len(h.Readers[t]) > 0 && (t != output.Facts || h.Started)
}

// AddFact adds a fact to the current change.
func (h *History) AddFact(e output.Event) { h.add(output.Facts, e) }

func (h *History) add(t output.Topic, e output.Event) {
	if h.Wants(t) {
		for _, l := range h.Readers[t] {
			l.Add(e)
		}
	}
}

// End ends the current change. tree is the generation of the queue tree, and queues
// returns a snapshot of it.
func (h *History) End(tree uint64, queues func() *queues.Snapshot, now time.Time) {
	if tree != h.treeNoted && h.Wants(output.Facts) {
		h.treeNoted = tree
		for _, l := range h.Readers[output.Facts] {
			l.AddFirst(output.Event{Kind: output.QueuesCame, Queues: queues()})
		}
		h.AddFact(output.Event{Kind: output.QueuesWent, Queues: queues()})
	}
	for _, readers := range h.Readers {
		for _, l := range readers {
			l.EndChange(now)
		}
	}
}

// Rename updates the name of an application in the history, with the path of its queue.
func (h *History) Rename(a *App, queue string) {
	n := output.AppName{Namespace: a.Name.Namespace, ID: a.Name.ID, Queue: queue, User: a.Owner.User, Group: a.Owner.Group}
	if a.EventName == nil || *a.EventName != n {
		a.EventName = &n
	}
}

// noteApp records an event of an application.
func (h *History) noteApp(kind output.EventKind, a *App) {
	h.AddFact(output.Event{Kind: kind, App: a.EventName})
}

// NotePod records an event of a pod of a queue.
func (h *History) NotePod(kind output.EventKind, p *Pod) {
	h.AddFact(output.Event{
		Kind: kind, Pod: p.UID, App: p.App.EventName,
		Node: p.Node, Amount: p.Amount(), Preempted: p.ChosenBy != "",
	})
}

// NoteNode records an event of a node, and the new capacity of the cluster.
func (h *History) NoteNode(kind output.EventKind, n *cache.Node, capacity resources.Vector) {
	h.AddFact(output.Event{Kind: kind, Node: n.Name(), Amount: n.Allocatable()})
	h.AddFact(output.Event{Kind: output.CapacityChanged, Amount: capacity})
}

// NoteForeign records that a foreign pod came to its node or leaves it.
func (h *History) NoteForeign(kind output.EventKind, p *Pod) {
	e := output.Event{Kind: kind, Pod: p.UID, Node: p.On().Name(), Amount: p.Uses(), Text: "default"}
	if p.Static {
		e.Text = "static"
	}
	h.AddFact(e)
}

// NoteMessage records what users are told of a pod: that it is preempted, or why it waits.
func (h *History) NoteMessage(kind output.EventKind, p *Pod, text string) {
	e := output.Event{Kind: kind, Pod: p.UID, Amount: p.Request, Text: text}
	if p.App != nil {
		e.App = p.App.EventName
	}
	h.AddFact(e)
}

// NoteHold records that a hold began or ended.
func (h *History) NoteHold(kind output.EventKind, hold *reservations.Hold) {
	h.AddFact(output.Event{Kind: kind, Pod: hold.Asker, Node: hold.Node, Amount: hold.Request})
}

// SeenNode is a known node and what readers know of it.
type SeenNode struct {
	*cache.Node
	history.Mark[output.NodeRecord]
}

// Changed notes that a pod changed for readers.
func (h *History) Changed(p *Pod) {
	h.Pods.Add(p)
	if p.App != nil {
		h.Apps.Add(p.App)
	}
}

// Tally updates the counts of waiting pods after a change of a pod's state, queue or
// reason.
func (h *History) Tally(p *Pod) { h.Waits.Update(&p.Tallied, TallyOf(p)) }

// ChangedNode notes that a node, without its pods, changed for readers.
func (h *History) ChangedNode(n *cache.Node) {
	seen := h.Seen[n.Name()]
	if n.Known() {
		if seen == nil {
			seen = &SeenNode{Node: n}
			h.Seen[n.Name()] = seen
		}
		h.Nodes.Add(seen)
	} else if seen != nil {
		h.Nodes.Remove(seen, n.Name())
		delete(h.Seen, n.Name())
	}
}

// Begin notes that an application runs.
func (h *History) Begin(a *App, now time.Time) {
	if a.Begin() {
		a.began = now
		h.noteApp(output.AppRuns, a)
	}
}

// finish remembers an application after its last pod is gone.
func (h *History) finish(a *output.AppRecord, now time.Time) {
	a.Finished = now
	h.Counts.Completed++
	h.Finished = append(h.Finished, a)
	h.Finished = h.Finished[max(len(h.Finished)-FinishedKept, 0):]
}

// Empty tells whether readers have taken all changes.
func (h *History) Empty() bool { return h.Pods.Len()+h.Apps.Len()+h.Nodes.Len() == 0 }

// EnterStep adds a step about an asker to the history.
func (x *Model) EnterStep(p *Pod, step output.Step, now time.Time) {
	if !x.History.Wants(output.Decisions) {
		return
	}
	step.Ref, step.At, step.Standby = p.Ref(), now, x.Standby
	if p.App != nil {
		step.Queue = p.Queue(x.Cache.Tree())
	}
	if step.Decision != nil || step.NodeBoundDecision != nil {
		step.Types = x.Preemption.Snapshot.Names()
	}
	if step.Hold.Asker == "" {
		step.Hold, _ = x.Preemption.Ledger.Of(p.UID)
	}
	x.History.add(output.Decisions, output.Event{Kind: output.Decided, Pod: p.UID, Step: &step})
}

// Warn reports, once per application, that the gang or PodGroup of the pod is ignored. A
// changed pod may create its application again; Reports.Warn then does not warn a second time
// for the same pod.
func (h *History) Warn(p *Pod, of reasons.Code, now time.Time) {
	if !p.App.warned {
		p.App.warned = true
		h.Reports.Warn(p.Report, of, now)
	}
}

// TakeWarning returns the warning that is due for a pod.
func (h *History) TakeWarning(p *Pod, now time.Time) (warn bool, out output.Report) {
	if p.App == nil {
		return false, output.Report{}
	}
	of, what := h.Reports.TakeWarning(p.Report, p.State == state.Bound, now), "its pods"
	switch of {
	case "":
		return false, output.Report{}
	case reasons.PodGroupIgnored:
		what = "pods with label " + objects.PodGroupLabel
	}
	why := reasons.New(of, "application %s: %s run as ordinary pods, each as soon as it can", p.App.Name.ID, what)
	return true, output.Report{Ref: p.Ref(), Warning: true, Reason: why}
}

// saidGrace is how long the result of a plan stays valid after the next plan is due.
const saidGrace = 2 * time.Second

// NotePlanResult notes the result of a plan for a pod, or why none was made, and when the
// next plan is due. Only reasons that concern all pods of a queue count.
func (h *History) NotePlanResult(p *Pod, code reasons.Code, next time.Time) {
	switch code {
	case reasons.PreemptionRefused, reasons.PreemptionPaced, reasons.HoldGivenUp:
		if p.App != nil && p.RequiredNode == "" {
			h.Waits.Refuse(p.App.Leaf, code, next.Add(saidGrace))
		}
	}
}

// TallyOf returns what a pod adds to the counts of waiting pods.
func TallyOf(p *Pod) history.Tally {
	if p.Foreign || p.State.HasNode() {
		return history.Tally{}
	}
	t := history.Tally{In: true, State: p.State, Leaf: queues.NoQueue}
	switch {
	case p.State == state.NoQueue:
		t.Code = p.Reason.Code
	case p.App != nil && !p.NeverPreempts && p.RequiredNode == "":
		t.Leaf = p.App.Leaf
	}
	return t
}
