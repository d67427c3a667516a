package store

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
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

func nameInHistory(a *AppName) string { return a.Namespace + "/" + a.ID + "/" + a.Queue }

// storyOf is the actual state.
func storyOf(s *Store) story {
	out := story{
		Placed: map[types.UID]string{}, Asked: map[types.UID]bool{}, Apps: map[string]string{}, Held: map[types.UID]string{},
		Nodes: map[string]string{}, Closed: map[string]bool{}, Capacity: s.cache.Capacity.Sum().String(), Queues: map[string]bool{},
		used: map[string]resources.Vector{},
	}
	for uid, p := range s.pods {
		if p.On() != nil {
			out.Placed[uid] = p.On().Name()
		}
		if p.asked {
			out.Asked[uid] = true
		}
	}
	for _, apps := range s.leaves {
		for _, a := range apps {
			name := nameInHistory(a.told)
			out.used[name] = out.used[name].Add(a.used.Allocated)
			out.Apps[name] = out.used[name].String()
		}
	}
	for _, h := range s.preemption.Holds.Ledger.View().All() {
		out.Held[h.Asker] = h.Node
	}
	for _, name := range s.cache.Nodes.Names() {
		n := s.cache.Nodes.Get(name)
		if n.Known() {
			out.Nodes[name] = n.Allocatable().String()
		}
		if n.Cordoned() {
			out.Closed[name] = true
		}
	}
	for q := range s.Snapshot().All() {
		out.Queues[q.Path] = true
	}
	return out
}

// tell applies one event. It returns an error if the event cannot have happened.
func (y *story) tell(h *Happening) error {
	wrong := func(what string) error { return fmt.Errorf("%s: %+v, App %+v", what, *h, h.App) }
	switch h.Kind {
	case AppAdded:
		y.Apps[nameInHistory(h.App)] = y.used[nameInHistory(h.App)].String()
	case AppRemoved:
		name := nameInHistory(h.App)
		if _, there := y.Apps[name]; !there || !y.used[name].IsZero() {
			return wrong("an application goes that was not there, or uses something")
		}
		delete(y.Apps, name)
	case Asked, AskGone:
		if y.Asked[h.Pod] != (h.Kind == AskGone) {
			return wrong("an ask comes twice, or goes and was not there")
		}
		if y.Asked[h.Pod] = true; h.Kind == AskGone {
			delete(y.Asked, h.Pod)
		}
	case Allocated, ForeignCame:
		if y.Placed[h.Pod] != "" || h.Node == "" {
			return wrong("a pod is placed twice, or nowhere")
		}
		y.Placed[h.Pod] = h.Node
		y.use(h, h.Amount)
	case Released, ForeignWent:
		if y.Placed[h.Pod] != h.Node || h.Node == "" {
			return wrong("a pod goes from where it was not")
		}
		delete(y.Placed, h.Pod)
		y.use(h, minus(h.Amount))
	case Resized:
		y.use(h, h.Amount)
	case HoldBegan:
		y.Held[h.Pod] = h.Node
	case HoldEnded:
		if y.Held[h.Pod] != h.Node {
			return wrong("a hold ends that was not there")
		}
		delete(y.Held, h.Pod)
	case NodeCame, NodeChanged:
		if _, there := y.Nodes[h.Node]; there != (h.Kind == NodeChanged) {
			return wrong("a node comes twice, or changes and was not there")
		}
		y.Nodes[h.Node] = h.Amount.String()
	case NodeWent:
		delete(y.Nodes, h.Node)
		delete(y.Closed, h.Node)
	case NodeClosed:
		y.Closed[h.Node] = true
	case NodeOpened:
		delete(y.Closed, h.Node)
	case CapacityChanged:
		y.Capacity = h.Amount.String()
	case AppRuns, AppCompleted, AppRefused, Chosen, Told:
	}
	return nil
}

func (y *story) use(h *Happening, more resources.Vector) {
	if h.App != nil {
		name := nameInHistory(h.App)
		y.used[name] = y.used[name].Add(more)
		y.Apps[name] = y.used[name].String()
	}
}

// reader reads the history of a store.
type reader struct {
	story story
	spare History
	bug   string
}

// read applies the history and compares the result with the store.
func (r *reader) read(s *Store) error {
	j := s.TakeHistory(r.spare)
	if r.bug != "" {
		j.Happenings = slices.Clone(j.Happenings)
		for i := range j.Happenings {
			if h := &j.Happenings[i]; h.Kind == planted[r.bug] {
				*h = Happening{Kind: Told} // removes the event
			}
		}
	}
	at := 0
	for _, m := range j.Moments {
		for i := range j.Happenings[at:m.End] {
			if err := r.story.tell(&j.Happenings[at+i]); err != nil {
				return err
			}
		}
		if at = m.End; m.Queues != nil {
			clear(r.story.Queues)
			for q := range m.Queues.All() {
				r.story.Queues[q.Path] = true
			}
		}
	}
	if at != len(j.Happenings) {
		return fmt.Errorf("%d happenings are of no moment", len(j.Happenings)-at)
	}
	j.Reset()
	r.spare = j
	is := storyOf(s)
	is.used, r.story.used = nil, maps.Clone(r.story.used)
	was := r.story
	if was.used = nil; !reflect.DeepEqual(was, is) {
		return fmt.Errorf("the chronicle tells\n%+v\nand so it is\n%+v", was, is)
	}
	return nil
}

var planted = map[string]Happened{
	"applications are not announced": AppAdded, "ends of applications are kept back": AppRemoved, "asks are lost": Asked,
	"placements are lost": Allocated, "ends of pods are lost": Released, "sizes are lost": Resized,
	"foreign pods are not seen": ForeignCame, "ends of foreign pods are lost": ForeignWent, "holds are lost": HoldBegan,
	"ends of holds are lost": HoldEnded, "nodes are not announced": NodeCame, "closed nodes look open": NodeClosed,
	"capacity is lost": CapacityChanged,
}

func TestChronicleWithPlantedBugs(t *testing.T) {
	for _, bug := range slices.Sorted(maps.Keys(planted)) {
		t.Run(bug, func(t *testing.T) { expectNotice(t, func(r *readers) { r.history.bug = bug }) })
	}
}

// oneByOne makes n pods come to a store and go, one after the other.
func oneByOne(s *Store, n int) {
	for i := range n {
		uid := types.UID(fmt.Sprint("u", i))
		s.Upsert(objects.Pod{UID: uid, Node: "n", Foreign: true, Request: resources.VectorOf(resources.Entry{Name: "pods", Amount: 1})}, epoch)
		s.Delete(uid, epoch)
	}
}

// TestNobodyTakesTheChronicle: the history is off unless turned on, and bounded without
// a reader.
func TestNobodyTakesTheChronicle(t *testing.T) {
	s := New(config.Default(), Options{})
	s.Start(epoch)
	oneByOne(s, 10)
	if j := s.TakeHistory(History{}); len(j.Happenings)+len(j.Moments)+j.Lost > 0 {
		t.Errorf("kept though nobody wanted it: %+v", j)
	}
	s = New(config.Default(), Options{})
	s.KeepHistory()
	oneByOne(s, 10)
	s.Start(epoch)
	oneByOne(s, historyLimit/2+5)
	j := s.TakeHistory(History{})
	if len(j.Happenings) != historyLimit || j.Lost != 10 || j.Moments[len(j.Moments)-1].End != historyLimit {
		t.Errorf("%d happenings in %d moments, %d lost; want %d, and 10 lost", len(j.Happenings), len(j.Moments), j.Lost, historyLimit)
	}
	if j.Reset(); len(j.Moments)+len(j.Happenings)+j.Lost > 0 || cap(j.Happenings) == 0 {
		t.Errorf("after Reset: %d, %d, %d", len(j.Moments), len(j.Happenings), j.Lost)
	}
}

// TestNotingAllocatesNothing: events allocate nothing once there are buffers.
func TestNotingAllocatesNothing(t *testing.T) {
	s := New(config.Default(), Options{})
	s.KeepHistory()
	s.Start(epoch)
	spare := History{}
	got := testing.AllocsPerRun(100, func() {
		for range 100 {
			s.history.note(Happening{Kind: Allocated, Pod: "u", Node: "n"})
			s.endMoment(epoch)
		}
		taken := s.TakeHistory(spare)
		taken.Reset()
		spare = taken
	})
	if got > 0 {
		t.Errorf("%v allocations for 100 happenings", got)
	}
}
