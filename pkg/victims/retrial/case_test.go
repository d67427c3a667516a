package retrial

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// scene is a case in the making: a node is full of pods of queue b, one of which
// goes for a pod of queue a.
type scene struct {
	draft        *queues.Draft
	a, b         queues.ID
	ask          victims.Ask
	victim, stay victims.Pod
	lent         resources.Vector // what b uses
	leaving      resources.Vector // there
	arriving     resources.Vector // in a
	strict       bool
}

var two = queuestest.Vector("vcore=2")

func newScene(t *testing.T) *scene {
	draft := queues.NewDraftFrom(queuestest.MustTree(t, "root\n  a guaranteed.vcore=4 max.vcore=6\n  b guaranteed.vcore=1"))
	id := func(path string) queues.ID {
		q, ok := draft.Find(path)
		if !ok {
			t.Fatalf("there is no queue %s", path)
		}
		return q.ID
	}
	s := &scene{draft: draft, a: id("root.a"), b: id("root.b"), lent: two.Add(two), leaving: two, arriving: two}
	s.ask = victims.Ask{UID: "asker", Namespace: "ns", Name: "asker", Leaf: s.a, App: "ns/a", Request: victims.Amounts{2000}}
	s.victim = victims.Pod{UID: "v", Namespace: "ns", Name: "v", Leaf: s.b, App: "ns/b", Request: victims.Amounts{2000}}
	s.stay = s.victim
	s.stay.UID, s.stay.Name = "s", "s"
	return s
}

// publish is the queues right after the decision was committed.
func (s *scene) publish() *queues.Snapshot {
	s.draft.Update(s.b, func(u *queues.Usage) { u.Allocated, u.Leaving = s.lent, s.leaving })
	s.draft.Update(s.a, func(u *queues.Usage) { u.Arriving = s.arriving })
	return s.draft.Publish(nil)
}

// goes is the victim as the decision has it.
func (s *scene) goes() *victims.Pod {
	v := s.victim
	v.Protection = victims.Leaving
	return &v
}

// queueCase is the case of a queue.
func (s *scene) queueCase() *Case {
	return &Case{
		Victims: []Victim{{Pod: &s.victim, Node: "n1"}},
		Queue: &Queue{Ask: &s.ask, Node: "n1", Params: victims.Params{StrictGuarantee: s.strict}, World: &victims.World{
			Types: []string{"vcore"}, Queues: s.publish(),
			Nodes: []*victims.Node{{Name: "n1", Allocatable: victims.Amounts{4000}, Free: victims.Amounts{2000}, Pods: []*victims.Pod{s.goes(), &s.stay}}},
		}},
	}
}

// requiredCase is the case of a pod of queue a that can run on the node only.
func (s *scene) requiredCase() *Case {
	goes := required.Pod{Pod: s.goes()}
	return &Case{
		Victims: []Victim{{Pod: &s.victim, Node: "n1"}},
		Required: &Required{
			Ask: &required.Ask{Ask: &s.ask}, Queues: s.publish(),
			Node: &required.Node{Name: "n1", Types: []string{"vcore"}, Allocatable: victims.Amounts{4000}, Pods: []required.Pod{goes, {Pod: &s.stay}}},
			Decision: required.Decision{
				Node: "n1", Outcome: victims.Preempt, Selection: required.Multiple,
				Victims: []required.Victim{{Pod: &goes, Class: required.Regular, ForRoom: true}},
			},
		},
	}
}

func laws(found []Violation) []string {
	var out []string
	for _, v := range found {
		out = append(out, v.Law)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestJudge: what keeps the laws is found to, and each law that is broken is named.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(*scene)
		law      string
		required string // of a pod that requires the node
	}{
		{"as it should be", func(*scene) {}, "", ""},
		{"below its guarantee after", func(s *scene) { s.lent = queuestest.Vector("vcore=2500m") }, "2", ""},
		{"of the same application", func(s *scene) { s.victim.App = "ns/a" }, "3", ""},
		{"not below its guarantee", func(s *scene) { s.arriving = queuestest.Vector("vcore=6") }, "4", ""},
		{"carried over its guarantee", func(s *scene) { s.strict, s.arriving = true, queuestest.Vector("vcore=4500m") }, "4", ""},
		{"of higher priority", func(s *scene) { s.victim.Priority = 1 }, "6", "D4"},
		{"over its max", func(s *scene) { s.arriving = queuestest.Vector("vcore=6500m") }, "7", "D2"},
		{"a static pod", func(s *scene) { s.victim.Protection = victims.Static }, "victims", "D4"},
		{"not enough", func(s *scene) { s.ask.Request, s.arriving = victims.Amounts{2500}, queuestest.Vector("vcore=2500m") }, "room", "D7"},
		{"books without the victim", func(s *scene) { s.leaving = resources.Vector{} }, "books", "books"},
		{"books without the asker", func(s *scene) { s.arriving = resources.Vector{} }, "books", "books"},
		{"an asker that never preempts", func(s *scene) { s.ask.Never = true }, "6", "D2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			c.change(s)
			check := func(found []Violation, want string) {
				t.Helper()
				if got := laws(found); want == "" && len(got) > 0 || want != "" && !slices.Contains(got, want) {
					t.Errorf("found %v, want %q", found, want)
				}
			}
			check(s.queueCase().Judge(), c.law)
			check(s.requiredCase().Judge(), c.required)
		})
	}
}

func TestNobodyWhomTheDecisionDoesNotName(t *testing.T) {
	c := newScene(t).requiredCase()
	c.Required.Decision.Victims = nil
	if found := c.Judge(); len(found) != 1 || found[0].Law != "victims" {
		t.Errorf("%v", found)
	}
	c = newScene(t).queueCase()
	c.Queue.World.Nodes = nil
	if found := c.Judge(); len(found) != 1 || found[0].Law != "room" {
		t.Errorf("%v", found)
	}
	if found := (&Case{}).Judge(); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

// TestACaseDoesNotChange: it may be judged twice.
func TestACaseDoesNotChange(t *testing.T) {
	s := newScene(t)
	for _, c := range []*Case{s.queueCase(), s.requiredCase()} {
		for range 2 {
			if found := c.Judge(); len(found) > 0 {
				t.Errorf("%v", found)
			}
		}
	}
}

func TestWhichLaw(t *testing.T) {
	err := errors.Join(
		errors.New("law 6: the asker has preemptionPolicy Never"),
		fmt.Errorf("victim ns/law 5: %w", errors.New("law 3: it is of the asker's queue or application")),
		errors.Join(errors.New("D7: 1 vcore are left"), fmt.Errorf("victim a/b: %w", errors.New("D5: it was chosen as regular and is foreign"))),
		fmt.Errorf("wrapped: %w", errors.Join(errors.New("law 2: one"), errors.New("two"))),
		errors.New("victim a/b: preemption is disabled in queue root.b"),
		errors.New("victim a/b: P3: it is on node n2 and no max needs it"),
		errors.New("the filters refuse"),
	)
	var got []string
	for _, v := range violations(err) {
		got = append(got, v.Law)
	}
	want := []string{"6", "3", "D7", "D5", "2", "victims", "P3", "room"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, law := range got {
		if !slices.Contains(Laws, law) {
			t.Errorf("law %s is not in the list", law)
		}
	}
}
