package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

type source struct {
	ready chan struct{}
	steps []output.Step
	lost  int
}

func (j *source) Ready() <-chan struct{} { return j.ready }

func (j *source) Take(into []output.Event) ([]output.Event, int) {
	for i := range j.steps {
		into = append(into, output.Event{Kind: output.Decided, Step: &j.steps[i]})
	}
	lost := j.lost
	j.steps, j.lost = nil, 0
	return into, lost
}

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

type story struct {
	*Record
	source *source
	now    time.Time
}

func newStory() *story {
	j := &source{ready: make(chan struct{}, 1)}
	return &story{Record: New(j), source: j, now: began}
}

func refOf(name string) objects.Ref {
	return objects.Ref{UID: types.UID("uid-" + name), Namespace: "ns", Name: name}
}

// step has something happen a second later.
func (s *story) step(kind output.StepKind, asker string, change func(*output.Step)) {
	s.now = s.now.Add(time.Second)
	step := output.Step{Kind: kind, Ref: refOf(asker), At: s.now, Queue: "root.a"}
	if change != nil {
		change(&step)
	}
	s.source.steps = append(s.source.steps, step)
	s.Take()
}

func (s *story) refuse(asker, node string, code reasons.Code) {
	s.step(output.StepRefused, asker, func(step *output.Step) {
		step.Reason = reasons.New(code, "no %d", s.now.Second())
		step.Decision = &planner.Decision{Outcome: planner.Refuse, Node: node, Exhaustive: true, Rejected: []planner.Rejection{{Rule: planner.Law5, Pods: s.now.Second()}}}
	})
}

func ask(name string) *planner.Ask {
	return &planner.Ask{UID: "uid-" + name, Namespace: "ns", Name: name}
}

func pod(name string, requests ...int64) *planner.Pod {
	return &planner.Pod{UID: "uid-" + name, Namespace: "ns", Name: name, Request: requests, Priority: -3, OptedOut: true, Originator: true}
}

// hold has a node held by a decision by which some go.
func (s *story) hold(asker, id string, going ...string) {
	s.step(output.StepHeld, asker, func(step *output.Step) {
		d := &planner.Decision{Ask: ask(asker), Queue: "root.a.b", Outcome: planner.Hold, Node: "n1", Exhaustive: true}
		for _, name := range going {
			d.Outcome = planner.Preempt
			d.Victims = append(d.Victims, planner.Victim{Pod: pod(name, 0, 5), Node: "n1", Queue: "root.c", Below: 7, AskBelow: 8})
			step.Hold.Chosen = append(step.Hold.Chosen, types.UID("uid-"+name))
		}
		step.Decision, step.Types = d, []string{"vcore", "memory"}
		step.Hold.Asker, step.Hold.Node, step.Hold.Decision, step.Hold.Since = step.UID, "n1", id, step.At
		step.Hold.Namespace, step.Hold.Name = "ns", asker
		step.Reason = reasons.New(reasons.MakingRoom, "room")
	})
}

func (s *story) end(asker string, end reservations.End, why reasons.Reason) {
	s.step(output.StepEnded, asker, func(step *output.Step) {
		step.Ended, step.Reason = end, why
		step.Hold = reservations.Hold{Asker: step.UID, Namespace: "ns", Name: asker, Node: "n1"}
	})
}

func ids(list []*Decision) []string {
	var out []string
	for _, d := range list {
		out = append(out, d.ID)
	}
	return out
}

func stages(d *Decision) []string {
	var out []string
	for _, s := range d.Stages {
		out = append(out, s.Stage)
	}
	return out
}

func TestStagesOfADecision(t *testing.T) {
	s := newStory()
	s.hold("a", "d1", "v")
	first := s.Last("uid-a")
	s.step(output.StepCommitted, "a", nil)
	s.step(output.StepVictimsDeleted, "a", nil)
	s.end("a", reservations.TimedOut, reasons.New(reasons.HoldTimedOut, "late"))
	d := s.Last("uid-a")
	expect.Same(t, "", []string{"held", "committed", "disrupted", "timed out"}, stages(d))
	if last := d.Stages[3]; last.Reason != reasons.HoldTimedOut || last.Message != "late" || !last.Time.Equal(began.Add(4*time.Second)) {
		t.Errorf("the last stage is %+v", last)
	}
	expect.That(t, len(first.Stages) == 1, "what a reader had changed: %v", first.Stages)
	seven, eight := int64(7), int64(8)
	want := []Victim{{
		Ref: objects.Ref{Namespace: "ns", Name: "v", UID: "uid-v"}, Queue: "root.c", Node: "n1", Requests: map[string]resources.Amount{"memory": 5}, Priority: -3,
		Effective: &seven, AskerEffective: &eight, OptedOut: true, Originator: true, Note: d.Victims[0].Note,
	}}
	diff := cmp.Diff(want, d.Victims)
	expect.That(t, diff == "" && d.Victims[0].Note != "", "victims %s", diff)
	expect.That(t, d.Outcome == planner.Preempt && d.Queue == "root.a.b" && d.Kind == Queue &&
		d.Reason == reasons.MakingRoom, "%+v", d)
	e := s.EndedOf("uid-a")
	expect.That(t, e != nil && e.End == reservations.TimedOut && e.Message == "late", "ended %+v", e)
	s.step(output.StepVictimsDeleted, "a", nil) // late: it belongs to no hold
	expect.Same(t, "stages after the end", 4, len(s.Last("uid-a").Stages))
}

// TestLostRoom is a stage of the decision by which the room was made, also after the pod was bound.
func TestLostRoom(t *testing.T) {
	s := newStory()
	lost := func(step *output.Step) {
		step.Losses, step.Reason = 1, reasons.New(reasons.HoldSuperseded, "others: ns/f")
	}
	s.step(output.StepLost, "a", lost) // of a decision that is not known
	s.hold("a", "d1", "v")
	s.step(output.StepLost, "a", lost)
	s.end("a", reservations.Bound, reasons.Reason{})
	s.step(output.StepLost, "a", lost)
	d := s.Last("uid-a")
	expect.Same(t, "", []string{"held", "lost", "bound", "lost"}, stages(d))
	last := d.Stages[3]
	expect.That(t, last.Reason == reasons.HoldSuperseded && last.Message == "others: ns/f", "%+v", last)
}

// TestARefusalRepeated takes the place of the one before it, with its numbers; one
// for another reason, or about another node, does not.
func TestARefusalRepeated(t *testing.T) {
	s := newStory()
	s.refuse("a", "", reasons.PreemptionRefused)
	s.refuse("b", "", reasons.PreemptionRefused)
	s.refuse("a", "", reasons.PreemptionRefused)
	d := s.Last("uid-a")
	expect.That(t, d.Times == 2 && d.Message == "no 8" && d.Rejected[0].Pods == 8, "%+v", d)
	expect.Same(t, "the first time", began.Add(time.Second), d.Time)
	expect.Same(t, "the last time", began.Add(3*time.Second), d.Last)
	s.refuse("a", "n2", reasons.PreemptionRefused)
	s.refuse("a", "n2", reasons.PreemptionPaced)
	s.hold("a", "d1", "v")
	s.refuse("a", "n2", reasons.PreemptionPaced)
	all := ids(s.Decisions(Query{Pod: "a"}))
	expect.That(t, len(all) == 5 && all[1] == "d1", "%v", all)
	d = s.Last("uid-a")
	expect.That(t, d.Outcome == planner.Refuse && d.Times == 1, "%+v", d)
}

// TestARefusalOfAPlan: what may not be done now has no victims.
func TestARefusalOfAPlan(t *testing.T) {
	s := newStory()
	s.step(output.StepRefused, "a", func(step *output.Step) {
		step.Decision = &planner.Decision{Ask: ask("a"), Outcome: planner.Preempt, Node: "n1", OptedOut: 1, Victims: []planner.Victim{{Pod: pod("v")}}}
		step.Reason = reasons.New(reasons.PreemptionPaced, "later")
	})
	if d := s.Last("uid-a"); d.Outcome != planner.Refuse || len(d.Victims) > 0 || d.OptedOut > 0 || d.Message != "later" || !d.Incomplete {
		t.Errorf("%+v", d)
	}
}

// TestAHoldThatGoesOn: a decision that adds no victim is the same one made again.
func TestAHoldThatGoesOn(t *testing.T) {
	s := newStory()
	requires := func(id string, stopped planner.Rule, going ...string) {
		s.step(output.StepHeld, "a", func(step *output.Step) {
			d := &daemonset.Decision{Ask: &daemonset.Ask{Ask: ask("a")}, Node: "n1", Outcome: planner.Hold, Stopped: stopped, Need: []daemonset.Need{
				{Type: "vcore", Request: 5, Free: -1, Short: 6}, {Type: "pods", Request: 1, Free: 3},
			}}
			for _, name := range going {
				d.Outcome = planner.Preempt
				d.Victims = append(d.Victims, daemonset.Victim{Pod: pod(name, 5), Class: daemonset.OptedOut, ForRoom: true})
			}
			step.NodeBoundDecision, step.Types, step.Queue = d, []string{"vcore"}, ""
			step.Hold = reservations.Hold{Asker: step.UID, Node: "n1", Decision: id, NodeBound: true}
		})
	}
	requires("d1", daemonset.RuleNoVictims)
	requires("d1", daemonset.RuleNoVictims)
	d := s.Last("uid-a")
	expect.That(t, d.Times == 2 && d.Outcome == planner.Hold && d.Kind == NodeBound &&
		slices.Equal(d.Contested, []string{"vcore"}) && len(d.Numbers) == 2, "%+v", d)
	n := d.Numbers[0]
	expect.That(t, n.Law == "D7" && *n.Asked == 5 && *n.Free == -1 && *n.Short == 6 && n.Used == nil, "%v", n)
	requires("d2", "", "v")
	s.step(output.StepCommitted, "a", func(step *output.Step) {
		step.Going = []output.Victim{{Ref: refOf("v"), Node: "n1", Queue: "root.c", Note: "go"}}
	})
	requires("d2", "") // the chosen victim is on its way
	s.step(output.StepAborted, "a", func(step *output.Step) { step.Reason = reasons.New(reasons.RoomAwaited, "changed") })
	d = s.Last("uid-a")
	diff := cmp.Diff([]string{"held", "committed", "called off"}, stages(d))
	expect.That(t, diff == "" && d.ID == "d2" && len(d.Victims) == 1, "%+v\n%s", d, diff)
	v := d.Victims[0]
	expect.That(t, v.Queue == "root.c" && v.Note == "go" && v.Class == "opted out", "%+v", v)
	expect.Same(t, "requests", resources.Amount(5), v.Requests["vcore"])
	expect.Same(t, "decisions", []string{"d2", "d1"}, ids(s.Decisions(Query{})))
	expect.That(t, s.decisions["d1"] != nil && s.decisions["d3"] == nil, "decisions by ID")
}

// TestAHoldTakenUp: of a decision of an earlier process the victims are known; of one of
// this process, everything.
func TestAHoldTakenUp(t *testing.T) {
	s := newStory()
	takeUp := func() {
		s.step(output.StepTakenUp, "a", func(step *output.Step) {
			step.Hold = reservations.Hold{Asker: step.UID, Node: "n1", Decision: "d0", Chosen: []types.UID{"uid-v", "uid-w"}, NodeBound: true}
			step.Reason = reasons.New(reasons.MakingRoom, "room")
		})
	}
	takeUp()
	s.step(output.StepCommitted, "a", func(step *output.Step) { step.Going = []output.Victim{{Ref: refOf("w"), Node: "n1"}} })
	d := s.Last("uid-a")
	expect.That(t, d.TakenUp && d.Outcome == planner.Preempt && d.Kind == NodeBound &&
		d.Victims[0].Name == "" && d.Victims[1].Name == "w", "%+v", d)
	takeUp()
	expect.Same(t, "", []string{"taken up", "committed", "taken up"}, stages(s.Last("uid-a")))
	s.end("a", reservations.Bound, reasons.Reason{})
	s.hold("a", "d1", "v")
	s.step(output.StepTakenUp, "a", func(step *output.Step) {
		step.Hold = reservations.Hold{Asker: step.UID, Node: "n1", Decision: "d1"}
	})
	d = s.Last("uid-a")
	expect.That(t, !d.TakenUp && len(d.Victims) == 1, "%+v", d)
	expect.Same(t, "", []string{"held", "taken up"}, stages(d))
}

// TestHoldsTakenUpWithoutADecision: each is a decision of its own.
func TestHoldsTakenUpWithoutADecision(t *testing.T) {
	s := newStory()
	for _, asker := range []string{"a", "b"} {
		s.step(output.StepTakenUp, asker, func(step *output.Step) {
			step.Hold = reservations.Hold{Asker: step.UID, Node: "n-" + asker}
		})
	}
	s.step(output.StepCommitted, "b", nil)
	s.step(output.StepLost, "c", nil)
	for asker, want := range map[string][]string{"a": {"taken up"}, "b": {"taken up", "committed"}} {
		d := s.Last(refOf(asker).UID)
		expect.That(t, d.Asker == refOf(asker) && d.Node == "n-"+asker && d.ID != "",
			"the decision of %s: %+v", asker, d)
		expect.Same(t, asker, want, stages(d))
	}
}

// TestRingsForget: the oldest go, refusals push no decisions out, and what is
// forgotten leaves nothing behind.
func TestRingsForget(t *testing.T) {
	s := newStory()
	s.most = 2
	for i := range 5 {
		name := fmt.Sprint(i)
		s.hold(name, "d"+name, "v")
		s.end(name, reservations.Bound, reasons.Reason{})
		s.refuse(name, "", reasons.PreemptionRefused)
	}
	want := []string{"uid-4-refused-5", "d4", "uid-3-refused-4", "d3"}
	expect.Same(t, "", want, ids(s.Decisions(Query{})))
	expect.That(t, s.Last("uid-2") == nil && s.Last("uid-3") != nil && s.decisions["d2"] == nil &&
		s.decisions["d4"] != nil, "what is forgotten is found, or the other way round")
	expect.That(t, len(s.decisions) == 4 && len(s.latest) == 2 && len(s.current) == 0,
		"%d decisions, %d latest, %d current", len(s.decisions), len(s.latest), len(s.current))
	got := s.Ended(Query{})
	expect.That(t, len(got) == 2 && got[0].Asker.Name == "4" && got[1].Asker.Name == "3", "%+v", got)
	expect.That(t, s.EndedOf("uid-1") == nil, "a forgotten end is found")
	s.step(output.StepCommitted, "0", nil) // of a decision that is forgotten
}

// TestDecisionsMadeAgainStay: what was made last stays, also where it was first made before others.
func TestDecisionsMadeAgainStay(t *testing.T) {
	s := newStory()
	s.most = 2
	for _, asker := range []string{"x", "y", "x", "z"} {
		s.refuse(asker, "", reasons.PreemptionRefused)
		s.hold(asker, "d-"+asker, "v")
	}
	want := []string{"d-z", "uid-z-refused-4", "d-x", "uid-x-refused-3"}
	expect.Same(t, "", want, ids(s.Decisions(Query{})))
	s = newStory()
	s.most = 2
	for _, asker := range []string{"x", "y", "x", "z"} {
		s.refuse(asker, "", reasons.PreemptionRefused)
	}
	expect.Same(t, "", []string{"uid-z-refused-3", "uid-x-refused-1"}, ids(s.Decisions(Query{})))
	expect.Same(t, "times", 2, s.Decisions(Query{})[1].Times)
}

func TestQueries(t *testing.T) {
	s := newStory()
	s.hold("x", "d1")
	s.hold("y", "d2")
	for q, want := range map[Query]int{
		{}: 2, {Limit: 1}: 1, {Namespace: "ns"}: 2, {Namespace: "other"}: 0, {Pod: "x"}: 1, {Queue: "root"}: 2,
		{Queue: "root.a"}: 2, {Queue: "root.a.b"}: 2, {Queue: "root.a.b.c"}: 0, {Queue: "roo"}: 0,
	} {
		expect.Same(t, fmt.Sprintf("decisions for %+v", q), want, len(s.Decisions(q)))
	}
	s.end("x", reservations.Bound, reasons.Reason{})
	s.end("y", reservations.Bound, reasons.Reason{})
	for want, q := range map[string]Query{"y": {Limit: 1}, "x": {Pod: "x", Queue: "root.a"}} {
		got := s.Ended(q)
		expect.That(t, len(got) == 1 && got[0].Asker.Name == want, "%+v", got)
	}
}

// TestRunTellsTheFollower: every step, in order, once the record knows it; and what was lost is counted.
func TestRunTellsTheFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &source{ready: make(chan struct{}, 1), lost: 3}
		r := New(j)
		var told []output.StepKind
		missed := 0
		r.Follow(func(s *output.Step) {
			expect.That(t, r.Last(s.UID) != nil, "a follower hears of it before the record")
			told = append(told, s.Kind)
		}, func(steps int) { missed += steps })
		s := &story{Record: New(&source{}), source: j, now: began}
		s.hold("a", "d1") // into the source, for another record takes nothing from it
		s.step(output.StepCommitted, "a", nil)
		go r.Run(t.Context())
		j.ready <- struct{}{}
		synctest.Wait()
		expect.Same(t, "told", []output.StepKind{output.StepHeld, output.StepCommitted}, told)
		expect.That(t, r.Lost() == 3 && missed == 3, "lost %d, of which %d were told", r.Lost(), missed)
	})
}

// TestAmounts: types that came later than the decision are none of its own.
func TestAmounts(t *testing.T) {
	d := Decision{}
	d.addQueue(&planner.Decision{
		Ask: ask("a"), Outcome: planner.Preempt, Exhaustive: true,
		Changes: []planner.Change{{Queue: "root.c", Type: "vcore", Used: 4, Taken: 2, Guaranteed: 1}},
		Asks:    []planner.Change{{Queue: "root.a", Type: "vcore", Asked: 2, Guaranteed: 4}},
		Loses:   []planner.Change{{Queue: "root.c", Type: "vcore", Used: 4}},
		OverMax: []planner.Excess{{Queue: "root", Type: "vcore", Used: 6, Asked: 2, Taken: 2, Max: resources.Amount(7)}},
	}, nil)
	var laws []string
	for _, n := range d.Numbers {
		laws = append(laws, n.Law)
	}
	expect.That(t, slices.Equal(laws, []string{"2", "4", "5", "7"}) && *d.Numbers[3].Max == 7 &&
		d.Numbers[3].Guaranteed == nil && *d.Numbers[0].Taken == 2, "%v %+v", laws, d.Numbers)
	got := amounts(planner.Amounts{0, 2, 3}, []string{"a", "b"})
	expect.That(t, len(got) == 1 && got["b"] == 2, "%v", got)
}

// TestDecisionOfAVictim: a victim's decision is found by its name and its UID.
func TestDecisionOfAVictim(t *testing.T) {
	s := newStory()
	s.hold("x", "d1", "v1", "v2")
	s.hold("y", "d2", "v3")
	d := s.Decisions(Query{})[1]
	if d.ID != "d1" {
		t.Fatalf("%+v", d)
	}
	gone := d.Victims[1]
	for _, victim := range []string{gone.Name, string(gone.UID)} {
		expect.Same(t, victim+" was chosen by", []string{"d1"}, ids(s.Decisions(Query{Victim: victim})))
	}
	expect.That(t, s.Choosing(gone.UID) == d && d.VictimOf(gone.UID).Name == gone.Name, "%+v", gone)
	expect.That(t, len(s.Decisions(Query{Victim: "x"})) == 0 && s.Choosing("x") == nil, "x is a victim")
}

// taken is a lawful decision: root.a, which uses 2 of 4 guaranteed vcore, takes 2 of
// the 4 that root.b.c uses. The node is short of vcore.
func taken() *Decision {
	n := func(v resources.Amount) *resources.Amount { return &v }
	return &Decision{
		Kind: Queue, Outcome: planner.Preempt, Queue: "root.a", Contested: []string{"vcore"},
		Victims: []Victim{{Ref: objects.Ref{Namespace: "ns", Name: "v"}, Queue: "root.b.c", Requests: map[string]resources.Amount{"vcore": 2}, Effective: new(int64), AskerEffective: new(int64)}},
		Numbers: []Number{
			{Law: "2", Queue: "root", Resource: "vcore", Used: n(6), Taken: n(2), Asked: n(2), Guaranteed: n(6)},
			{Law: "2", Queue: "root.b.c", Resource: "vcore", Used: n(4), Taken: n(2), Asked: n(0), Guaranteed: n(1)},
			{Law: "4", Queue: "root.a", Resource: "vcore", Used: n(2), Taken: n(0), Asked: n(2), Guaranteed: n(4)},
			{Law: "5", Queue: "root.b", Resource: "vcore", Used: n(4), Taken: n(2), Asked: n(0), Guaranteed: n(0)},
			{Law: "5", Queue: "root.b.c", Resource: "vcore", Used: n(4), Taken: n(2), Asked: n(0), Guaranteed: n(1)},
			{Law: "7", Queue: "root.a", Resource: "vcore", Used: n(2), Taken: n(0), Asked: n(2), Max: n(4)},
		},
	}
}

// TestVerify: a lawful decision stands, and each law that is broken is named. That the
// decisions of the planner stand is a test of package planner.
func TestVerify(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Decision)
		want   string // "" for lawful, "not judged"
	}{
		{"as it was made", func(*Decision) {}, ""},
		{"below the guarantee", func(d *Decision) { *d.Numbers[1].Guaranteed = 3 }, "law 2: queue root.b.c falls from 4 to 2 vcore, and 3 is guaranteed"},
		{"a common queue falls", func(d *Decision) { *d.Numbers[0].Asked = 1 }, "law 2: queue root falls from 6 to 5"},
		{"a shortage that moves", func(d *Decision) { *d.Numbers[1].Guaranteed, d.Contested = 5, nil }, ""},
		{"more goes than was judged", func(d *Decision) { d.Victims[0].Requests["vcore"] = 3 }, "law 2: queue root.b.c is judged as if its victims freed 2 vcore; they free 3"},
		{"of the same queue", func(d *Decision) { d.Victims[0].Queue = "root.a" }, "law 3: victim ns/v is of queue root.a"},
		{"of a queue above", func(d *Decision) { d.Victims[0].Queue = "root" }, "law 3:"},
		{"not below its guarantee", func(d *Decision) { *d.Numbers[2].Used = 4 }, "law 4: queue root.a of the pod uses 4 of 4"},
		{"nothing is guaranteed", func(d *Decision) { d.Numbers = append(d.Numbers[:2:2], d.Numbers[3:]...) }, "law 4: no queue of the pod"},
		{"a queue is not over its guarantee", func(d *Decision) { *d.Numbers[3].Guaranteed = 4 }, "law 5: queue root.b of victim ns/v"},
		{"a victim that frees nothing", func(d *Decision) { d.Victims[0].Requests = nil }, "law 5: queue root.b.c of victim ns/v"},
		{"a victim of no queue", func(d *Decision) { d.Victims[0].Queue = "" }, "law 5: queue  of victim ns/v"},
		{"a victim of another tree", func(d *Decision) { d.Victims[0].Queue = "top.b" }, "law 5: queue top of victim ns/v"},
		{"of higher priority", func(d *Decision) { *d.Victims[0].Effective = 1 }, "law 6: victim ns/v has priority 1, the pod 0"},
		{"over its max", func(d *Decision) { *d.Numbers[5].Max = 3 }, "law 7: queue root.a of the pod comes to 4 vcore, and its max is 3"},
		{"on its only node", func(d *Decision) {
			d.Kind, d.Numbers = NodeBound, []Number{{Law: "D7", Resource: "vcore", Short: d.Numbers[0].Taken}}
		}, ""},
		{"not enough there", func(d *Decision) {
			d.Kind, d.Numbers = NodeBound, []Number{{Law: "D7", Resource: "vcore", Short: d.Numbers[1].Used}}
		}, "law D7: the node is short of 4 vcore; the victims free 2"},
		{"no pod goes", func(d *Decision) { d.Outcome = planner.Refuse }, "not judged"},
		{"of an earlier process", func(d *Decision) { d.TakenUp = true }, "not judged"},
		{"without numbers", func(d *Decision) { d.Numbers = nil }, "not judged"},
	} {
		d := taken()
		c.change(d)
		broken, judged := d.Verify()
		got := strings.Join(broken, "\n")
		if !judged {
			got = "not judged"
		}
		expect.That(t, (c.want != "" || got == "") && strings.Contains(got, c.want),
			"%s: got %q, want %q", c.name, got, c.want)
	}
}
