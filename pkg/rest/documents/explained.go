package documents

import (
	"fmt"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// The states of a pod, as people are shown them.
const (
	podStarting = "starting" // the scheduler is not ready
	podGated    = "gated"    // by scheduling gates of its own
	podRejected = "rejected" // it has no queue
	podWaiting  = "waiting"  // for its turn, for a quota, or for others of its PodGroup
	podTried    = "tried"    // the scheduler has it
	podStuck    = "stuck"    // no node took it
	podBacksOff = "backing off"
	podHolds    = "holds a node"
	podBinding  = "binding"
	podRuns     = "has a node"
	podLeaves   = "leaving"
)

// ExplanationOf returns the document for an explanation of the store.
func ExplanationOf(x *store.Explanation) *Explanation {
	p := x.Pod
	out := &Explanation{
		Ref: p.Ref(), State: podState(x), Reason: reasonOf(whyOf(x)),
		Created: p.Created.UTC(), Node: p.Node, RequiredNode: p.RequiredNode, Priority: p.Priority,
		Request: p.Request.Map(), Attempts: p.Attempts(), LastAttempt: p.Tried().UTC(), NextAttempt: x.Retry.UTC(),
		Limits: reasonOf(x.Limited),
	}
	if out.Foreign = foreignKind(p); !p.Foreign {
		out.Queue = queueFound(x)
	}
	if x.App != nil {
		on := queues.OnArriving
		if x.Hold != nil { // its plan counted the other holders
			on = queues.OnAllocated
		}
		out.Quota = quotaOf(x.Queues, x.Queues, x.App.Leaf, p.Request, on, p.Node == "")
		out.Window = &Window{x.Window, x.Taken}
	}
	if x.Standing != nil {
		out.Order = orderOf(x)
	}
	if h := x.Hold; h != nil {
		out.Hold = &ExplainedHold{
			Node: h.Node, Since: h.Since.UTC(), Required: h.NodeBound, Committed: h.Committed(), Decision: h.Decision,
			WaitsFor: x.Awaited, ClearSince: h.ClearSince.UTC(), Note: h.Note,
		}
	}
	if x.Room != nil && x.Hold == nil {
		out.Room = &ExplainedRoom{
			Reason: reasonOf(x.Room.Why), LastRefusal: reasonOf(x.Room.Refused), LastPlan: x.Room.Tried.UTC(),
			DelayEnds: x.Room.DelayEnds.UTC(), NextLook: x.Room.Next.UTC(),
		}
	}
	out.MakesRoomFor = x.ChosenBy
	out.Summary = summary(x, out)
	out.ToDo = toDo(out, roomMatters(out) && !x.OnlyTimeHelps)
	return out
}

// whyOf is why a pod does not run, or has to leave.
func whyOf(x *store.Explanation) reasons.Reason {
	if x.ChosenBy != nil {
		return reasons.New(reasons.Preempted, "the pod leaves node %s to make room for pod %s/%s", x.Pod.Node, x.ChosenBy.Namespace, x.ChosenBy.Name)
	}
	return x.Why
}

func podState(x *store.Explanation) string {
	p := x.Pod
	switch {
	case x.ChosenBy != nil || p.Deleting:
		return podLeaves
	case x.State == "Bound":
		return podRuns
	case x.State == "Assumed":
		return podBinding
	case x.Hold != nil:
		return podHolds
	}
	switch x.State {
	case "NoQueue":
		return unplacedState(x.Why.Code)
	case "Admitted", "Scheduling":
		return podTried
	case "Unschedulable":
		return podStuck
	case "BackingOff":
		return podBacksOff
	}
	return podWaiting
}

func unplacedState(code reasons.Code) string {
	switch code {
	case reasons.SchedulingGated:
		return podGated
	case reasons.Starting, reasons.ConfigurationInvalid, reasons.ConfigurationUnreadable:
		return podStarting
	}
	return podRejected
}

// summary says in a sentence how things are.
func summary(x *store.Explanation, out *Explanation) string {
	pod := fmt.Sprintf("Pod %s/%s", out.Namespace, out.Name)
	switch out.State {
	case podLeaves:
		if out.Reason == nil {
			return fmt.Sprintf("%s has been deleted and is still on node %s.", pod, out.Node)
		}
	case podRuns, podBinding:
		if out.Foreign != "" {
			return fmt.Sprintf("%s is on node %s and belongs to another scheduler: it is in no queue, and its request counts on the node.", pod, out.Node)
		}
		if out.State == podBinding {
			return fmt.Sprintf("%s was given node %s, which the API server does not know yet.", pod, out.Node)
		}
		return fmt.Sprintf("%s has node %s, in queue %s.", pod, out.Node, x.Pod.Queue)
	case podTried:
		return fmt.Sprintf("%s was let through, and the scheduler is looking for a node for it.", pod)
	case podHolds:
		if out.Reason == nil {
			return fmt.Sprintf("%s holds node %s and is about to be placed there.", pod, out.Hold.Node)
		}
	}
	if out.Reason == nil {
		return fmt.Sprintf("%s: %s.", pod, out.State)
	}
	said := out.Reason.Message
	if out.State == podStuck && out.Room != nil && out.Room.Reason != nil && !strings.Contains(said, out.Room.Reason.Message) {
		said += "; " + out.Room.Reason.Message // as it is by now
	}
	return fmt.Sprintf("%s: %s: %s", pod, out.State, said)
}

// toDo is what would have to change for the pod to run, or to stay; room is whether
// others might make room for it.
func toDo(out *Explanation, room bool) []string {
	list := []*Reason{out.Reason, out.Limits}
	if out.Room != nil && room {
		list = append(list, out.Room.Reason, out.Room.LastRefusal)
	}
	return remedies(list...)
}

// roomMatters tells whether others might make room for a pod: no node took it, or
// the max of a queue above its leaf is used up.
func roomMatters(out *Explanation) bool {
	switch out.State {
	case podStuck, podBacksOff:
		return true
	case podWaiting:
		overMax := out.Reason != nil && out.Reason.Code == string(reasons.OverMax)
		return overMax && len(out.Quota) > 0 && out.Quota[len(out.Quota)-1].Refuses == nil
	}
	return false
}

func queueFound(x *store.Explanation) *ExplainedQueue {
	out := &ExplainedQueue{
		Path: x.Pod.Queue, Application: x.Identity.Application, User: x.Identity.User.Name,
		Groups: x.Identity.User.Groups, Named: x.Identity.Queue,
	}
	if x.App != nil {
		out.Application, out.User, out.Groups, out.LimitedGroup = x.App.ID, x.App.User, x.App.Groups, x.App.Group
	}
	if x.Placement == nil {
		return out
	}
	out.FoundBy, out.Rules = x.Placement.Rule, stepsOf(x.Placement.Trace)
	switch {
	case out.Path == "" || out.Path == x.Placement.Path:
	case x.Placement.Path == "":
		out.Note = "the application keeps the queue of its first pod; by now the rules would refuse it: " + x.Unplaced.String()
	default:
		out.Note = fmt.Sprintf("the application keeps the queue of its first pod; by now the rules would give it %s", x.Placement.Path)
	}
	return out
}

func stepsOf(trace []placement.Step) []PlacingRule {
	var out []PlacingRule
	for _, step := range trace {
		out = append(out, PlacingRule{Rule: step.Rule, Queue: step.Queue, Code: string(step.Refusal.Code), Message: step.Refusal.Text})
	}
	return out
}

func orderOf(x *store.Explanation) *ExplainedOrder {
	s := x.Standing
	out := &ExplainedOrder{Waits: s.In}
	if s.Next.UID != "" {
		out.Next = &s.Next
	}
	if !s.In {
		return out
	}
	out.PodsBefore, out.ApplicationsBefore, out.AtLeast, out.First = s.Asks, s.Apps, s.More, s.First
	out.InLeaf, out.InAll = s.InLeaf, s.InAll
	for _, l := range s.Levels {
		place := QueuePlace{Queue: pathOf(x.Queues, l.Queue), Place: len(l.Before) + 1, Of: l.Of, AtLeast: l.More}
		for _, id := range l.Before {
			place.Before = append(place.Before, pathOf(x.Queues, id))
		}
		out.Queues = append(out.Queues, place)
	}
	return out
}

// pathOf is the path of a queue; empty for one that is gone.
func pathOf(s *queues.Snapshot, id queues.ID) string {
	if q := s.Queue(id); q != nil {
		return q.Path
	}
	return ""
}

// foreignKind returns the value of tagForeign for a pod; empty for a pod of a queue.
func foreignKind(p *output.PodRecord) string {
	switch {
	case !p.Foreign:
		return ""
	case p.Static:
		return "static"
	}
	return "default"
}
