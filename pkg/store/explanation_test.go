package store_test

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/state"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// explainAll gets the explanation and a dry run of every pod, and prints where they
// contradict the store.
func (s *script) explainAll(w io.Writer) {
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		uid := s.pods[name].UID
		if r := s.store.DryRun(*s.pods[name], s.now); r.Unplaced.None() && (r.Plan.Ask == nil || r.Queues.Queue(r.Leaf).Path != r.Placement.Path) {
			fmt.Fprintf(w, "!! %s: no dry run in queue %s\n", name, r.Placement.Path)
		}
		x, known := s.store.Explanation(uid, s.now)
		if known != (s.store.Model().Pods[uid] != nil) {
			fmt.Fprintf(w, "!! %s is known: %t\n", name, known)
			continue
		}
		if known {
			for _, problem := range contradictions(s.store.Model().Pods[uid], x) {
				fmt.Fprintf(w, "!! %s: %s\n", name, problem)
			}
		}
	}
}

// comparePreview prints where a pod was refused, and its dry run said something else, and where its
// queue has another quota. isNew is true for the first event of the pod.
func (s *script) comparePreview(w io.Writer, uid types.UID, r *store.DryRun, isNew bool) {
	x, known := s.store.Explanation(uid, s.now)
	if !known || x.Pod.Foreign || x.Pod.Gated || x.Pod.Node != "" {
		return
	}
	if refused := x.App == nil; isNew && (refused && r.Unplaced.Code != x.Why.Code || !refused && !r.Unplaced.None()) {
		fmt.Fprintf(w, "!! %s: the dry run said %q, and so it is: %q\n", x.Pod.Name, r.Unplaced, x.Why)
	}
	if !r.Unplaced.None() || x.App == nil {
		return
	}
	said, is := r.Queues.Queue(r.Leaf), x.Queues.Queue(x.App.Leaf)
	if said.Path != is.Path {
		return // a later event of a pod that has a queue
	}
	if !said.Guaranteed.Equal(is.Guaranteed) || !said.Max.Equal(is.Max) || said.MaxApplications != is.MaxApplications {
		fmt.Fprintf(w, "!! %s: the dry run said: queue %s has guaranteed %v, max %v, not %v, %v\n", x.Pod.Name, is.Path, said.Guaranteed, said.Max, is.Guaranteed, is.Max)
	}
}

func contradictions(p *model.Pod, x *store.Explanation) []string {
	var out []string
	wrong := func(is bool, format string, args ...any) {
		if is {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	pending := p.App != nil && !p.State.HasNode()
	wrong(x.State != p.State.String(), "state %s, not %s", x.State, p.State)
	wrong((x.Room != nil) != pending, "making room is explained: %t", x.Room != nil)
	wrong((x.Hold != nil) != p.Asker.HoldsNode(), "a hold is explained: %t", x.Hold != nil)
	wrong((x.App != nil) != (p.App != nil), "an application is explained: %t", x.App != nil)
	wrong((x.Standing != nil) != (p.State == state.Queued), "a place in the order is explained: %t", x.Standing != nil)
	wrong(x.Standing != nil && x.Standing.In && x.Why.Code != reasons.InOrder, "it is in the order, and waits for %s", x.Why)
	wrong(p.State == state.Queued && x.Why.None(), "it waits and nothing says why")
	wrong(p.Foreign && x.Placement != nil, "a foreign pod was placed")
	wrong((x.ChosenBy != nil) != (p.ChosenBy != ""), "it is to go: %t", x.ChosenBy != nil)
	if x.Room != nil && !p.Asker.HoldsNode() && p.RequiredNode == "" {
		early := p.Created.Add(time.Second).After(x.Room.DelayEnds)
		wrong(early && x.Room.Why.Code == reasons.PreemptionDelayed, "delayed, and the delay is over at %v", x.Room.DelayEnds)
	}
	return out
}

func TestContradictionsAreFound(t *testing.T) {
	p := &model.Pod{CachePod: model.CachePod{Pod: &objects.Pod{Identity: objects.Identity{UID: "p"}}}, WaitState: model.NewWaitState(nil, ""), State: state.Queued, App: &model.App{}, Asker: &preemption.Asker{}}
	right := func() *store.Explanation {
		return &store.Explanation{
			State: "Queued", Why: reasons.Brief(reasons.InOrder), App: &output.AppRecord{}, Room: &store.Room{},
			Standing: &store.Standing{Standing: order.Standing{In: true}},
		}
	}
	expect.Same(t, "contradictions", []string(nil), contradictions(p, right()))
	for name, plant := range map[string]func(x *store.Explanation){
		"state": func(x *store.Explanation) { x.State = "bound" }, "room": func(x *store.Explanation) { x.Room = nil },
		"app": func(x *store.Explanation) { x.App = nil }, "order": func(x *store.Explanation) { x.Standing = nil },
		"why": func(x *store.Explanation) { x.Why = reasons.Reason{} }, "chosen": func(x *store.Explanation) { x.ChosenBy = &objects.Ref{} },
	} {
		x := right()
		plant(x)
		expect.That(t, len(contradictions(p, x)) != 0, "%s: not found", name)
	}
}

// TestExplanationNamesLaw4: the explanation says that law 4 stops a pod from preempting, both
// before and after its queue's delay.
func TestExplanationNamesLaw4(t *testing.T) {
	s := store.New(queuestest.MustTree(t, "root\n  a"), store.Options{})
	s.Start(epoch)
	p := askingPod("p")
	s.Upsert(p, epoch)
	s.NoNode(p.UID, "", reasons.New(reasons.NoNodeFits, "0 of 3 nodes fit"), epoch)
	for _, after := range []time.Duration{0, time.Hour} {
		x, known := s.Explanation(p.UID, epoch.Add(after))
		expect.That(t, known && x.Room != nil && x.Room.Why.Code == reasons.PreemptionRefused,
			"after %v: %+v", after, x.Room)
		over := !x.Room.DelayEnds.After(epoch.Add(after))
		expect.Same(t, fmt.Sprintf("the delay is over after %v", after), after > 0, over)
	}
}

// TestPreviewCountsHolders: a pod that holds a node uses the max in previews, as in a cycle.
func TestPreviewCountsHolders(t *testing.T) {
	s := store.New(queuestest.MustTree(t, "root\n  a guaranteed.vcore=1 max.vcore=1 props=preemption.delay:1s\n  lab"), store.Options{})
	s.UpsertNode("n1", queuestest.Vector("vcore=1 pods=10"), epoch)
	s.Start(epoch)
	victim := newPod("victim", "root.lab", "lab", queuestest.Vector("vcore=1 pods=1"))
	victim.Node = "n1"
	s.Upsert(victim, epoch)
	s.Upsert(askingPod("holder"), epoch)
	later := epoch.Add(time.Hour) // after the delay of the queue
	expect.Same(t, "before the hold", reasons.Reason{}, s.DryRun(askingPod("next"), later).OverMax)
	d, held := planFor(s, "holder", "", nil, later)
	expect.That(t, held, "no hold: %v", d)
	expect.Same(t, "what refuses a further pod", reasons.OverMax, s.DryRun(askingPod("next"), later).OverMax.Code)
}

// TestPreviewCountsPodsThatWaitForRoom: the preview of a pod counts them as placed, as its plan does.
func TestPreviewCountsPodsThatWaitForRoom(t *testing.T) {
	s := store.New(queuestest.MustTree(t, "root\n  a guaranteed.vcore=4 props=preemption.delay:1s\n  lab"), store.Options{})
	s.UpsertNode("n1", queuestest.Vector("vcore=2 pods=10"), epoch)
	s.Start(epoch)
	later := epoch.Add(time.Hour) // after the delay of the queue
	for _, name := range []string{"leaving", "victim"} {
		p := newPod(name, "root.lab", name, queuestest.Vector("vcore=1 pods=1"))
		p.Node = "n1"
		p.Deleting = name == "leaving"
		s.Upsert(p, later)
	}
	next := askingPod("next")
	previewed := func() planner.Outcome {
		r := s.DryRun(next, later)
		return search.Plan(r.Plan.Snapshot, r.Plan.Ask, r.Plan.Params).Outcome
	}
	waiting := askingPod("waiting")
	s.Upsert(waiting, epoch)
	expect.Same(t, "before", planner.Wait, previewed())
	in, why := s.BeginPlan(waiting.UID, "", nil, later)
	if in == nil {
		t.Fatal(why)
	}
	d := search.Plan(in.Snapshot, in.Ask, planner.Params{})
	expect.Same(t, "the first one", reasons.WaitingForRoom, s.RejectPlan(waiting.UID, &d, later).Code)
	expect.Same(t, "while the first one waits", planner.Preempt, previewed())
}
