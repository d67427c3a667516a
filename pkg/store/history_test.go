package store_test

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// story is the state that a reader derives from the history.
type story struct {
	Placed   map[types.UID]string // node of each pod, of a queue or foreign
	Asked    map[types.UID]bool
	Apps     map[string]string // usage of each application
	Held     map[types.UID]string
	Nodes    map[string]string // allocatable of each node
	Closed   map[string]bool
	Capacity string
	Queues   map[string]bool

	used map[string]resources.Vector
}

func nameInHistory(a *output.AppName) string { return a.Namespace + "/" + a.ID + "/" + a.Queue }

func storyOf(s *store.Store) story {
	m := s.Model()
	out := story{
		Placed: map[types.UID]string{}, Asked: map[types.UID]bool{}, Apps: map[string]string{}, Held: map[types.UID]string{},
		Nodes: map[string]string{}, Closed: map[string]bool{}, Capacity: m.Cache.Capacity.Sum().String(), Queues: map[string]bool{},
		used: map[string]resources.Vector{},
	}
	for uid, p := range m.Pods {
		if p.On() != nil {
			out.Placed[uid] = p.On().Name()
		}
		if p.Asked {
			out.Asked[uid] = true
		}
	}
	for _, a := range m.Apps.All() {
		name := nameInHistory(a.EventName)
		out.used[name] = out.used[name].Add(a.Used().Allocated)
		out.Apps[name] = out.used[name].String()
	}
	for _, h := range s.Holds().All() {
		out.Held[h.Asker] = h.Node
	}
	for n := range m.Cache.Nodes.All() {
		if n.Known() {
			out.Nodes[n.Name()] = n.Allocatable().String()
		}
		if n.Cordoned() {
			out.Closed[n.Name()] = true
		}
	}
	for q := range s.Snapshot().All() {
		out.Queues[q.Path] = true
	}
	return out
}

// tell applies one event. It returns an error if the event cannot have happened.
func (y *story) tell(e *output.Event) error {
	wrong := func(what string) error { return fmt.Errorf("%s: %+v, App %+v", what, *e, e.App) }
	switch e.Kind {
	case output.AppAdded:
		y.Apps[nameInHistory(e.App)] = y.used[nameInHistory(e.App)].String()
	case output.AppRemoved:
		name := nameInHistory(e.App)
		if _, there := y.Apps[name]; !there || !y.used[name].IsZero() {
			return wrong("an application goes that was not there, or uses something")
		}
		delete(y.Apps, name)
	case output.Asked, output.AskGone:
		if y.Asked[e.Pod] != (e.Kind == output.AskGone) {
			return wrong("an ask comes twice, or goes and was not there")
		}
		if y.Asked[e.Pod] = true; e.Kind == output.AskGone {
			delete(y.Asked, e.Pod)
		}
	case output.Allocated, output.ForeignCame:
		if y.Placed[e.Pod] != "" || e.Node == "" {
			return wrong("a pod is placed twice, or nowhere")
		}
		y.Placed[e.Pod] = e.Node
		y.use(e, e.Amount)
	case output.Released, output.ForeignWent:
		if y.Placed[e.Pod] != e.Node || e.Node == "" {
			return wrong("a pod goes from where it was not")
		}
		delete(y.Placed, e.Pod)
		y.use(e, resources.Vector{}.Sub(e.Amount))
	case output.Resized:
		y.use(e, e.Amount)
	case output.HoldBegan:
		y.Held[e.Pod] = e.Node
	case output.HoldEnded:
		if y.Held[e.Pod] != e.Node {
			return wrong("a hold ends that was not there")
		}
		delete(y.Held, e.Pod)
	case output.NodeCame, output.NodeChanged:
		if _, there := y.Nodes[e.Node]; there != (e.Kind == output.NodeChanged) {
			return wrong("a node comes twice, or changes and was not there")
		}
		y.Nodes[e.Node] = e.Amount.String()
	case output.NodeWent:
		delete(y.Nodes, e.Node)
		delete(y.Closed, e.Node)
	case output.NodeClosed:
		y.Closed[e.Node] = true
	case output.NodeOpened:
		delete(y.Closed, e.Node)
	case output.CapacityChanged:
		y.Capacity = e.Amount.String()
	case output.QueuesWent:
		clear(y.Queues)
		for q := range e.Queues.All() {
			y.Queues[q.Path] = true
		}
	case output.AppRuns, output.AppCompleted, output.AppRefused, output.Chosen, output.Told, output.QueuesCame, output.Decided:
	}
	return nil
}

func (y *story) use(e *output.Event, more resources.Vector) {
	if e.App != nil {
		name := nameInHistory(e.App)
		y.used[name] = y.used[name].Add(more)
		y.Apps[name] = y.used[name].String()
	}
}

type reader struct {
	facts *store.EventReader
	story story
	bug   string
}

// read applies the facts and compares the result with the store.
func (r *reader) read(s *store.Store) error {
	events, lost := r.facts.Take(nil)
	if lost > 0 {
		return fmt.Errorf("%d events are lost", lost)
	}
	for i := range events {
		e := &events[i]
		if e.At.IsZero() {
			return fmt.Errorf("an event without a time: %+v", e)
		}
		if r.bug != "" && e.Kind == planted[r.bug] {
			continue
		}
		if err := r.story.tell(e); err != nil {
			return err
		}
	}
	is := storyOf(s)
	is.used, r.story.used = nil, maps.Clone(r.story.used)
	was := r.story
	if was.used = nil; !reflect.DeepEqual(was, is) {
		return fmt.Errorf("the history tells\n%+v\nand so it is\n%+v", was, is)
	}
	return nil
}

// planted are kinds of events that a reader with a bug does not see.
var planted = map[string]output.EventKind{
	"applications are not announced": output.AppAdded, "ends of applications are kept back": output.AppRemoved, "asks are lost": output.Asked,
	"placements are lost": output.Allocated, "ends of pods are lost": output.Released, "sizes are lost": output.Resized,
	"foreign pods are not seen": output.ForeignCame, "ends of foreign pods are lost": output.ForeignWent, "holds are lost": output.HoldBegan,
	"ends of holds are lost": output.HoldEnded, "nodes are not announced": output.NodeCame, "closed nodes look open": output.NodeClosed,
	"capacity is lost": output.CapacityChanged, "queues are lost": output.QueuesWent,
}

// oneByOne makes n pods come to a store and go, one after the other.
func oneByOne(s *store.Store, n int) {
	for i := range n {
		uid := types.UID(fmt.Sprint("u", i))
		s.Upsert(objects.Pod{Identity: objects.Identity{UID: uid}, Spec: objects.Spec{Foreign: true}, Status: objects.Status{Node: "n"}, Request: resources.VectorOf(resources.Entry{Name: "pods", Amount: 1})}, epoch)
		s.Delete(uid, epoch)
	}
}

func TestHistoryIsKeptFromStart(t *testing.T) {
	s := store.New(config.Default(), store.Options{})
	facts, decisions := s.Follow(output.Facts), s.Follow(output.Decisions)
	oneByOne(s, 10)
	s.Start(epoch)
	oneByOne(s, 2)
	var kinds []output.EventKind
	events, lost := facts.Take(nil)
	for _, e := range events {
		kinds = append(kinds, e.Kind)
	}
	want := []output.EventKind{output.QueuesCame, output.QueuesWent}
	want = append(want, output.ForeignCame, output.ForeignWent, output.ForeignCame, output.ForeignWent)
	expect.That(t, slices.Equal(kinds, want) && lost == 0, "%v, %d lost, want %v", kinds, lost, want)
	made, _ := decisions.Take(nil)
	expect.That(t, len(made) == 0, "decisions: %+v", made)
}
