package store_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// readers follow the store of a script by its history, its copy and its steps. After each
// command they compare the derived state with the store.
type readers struct {
	history   reader
	decisions *store.EventReader
	copy      *copyOf
	steps     stepReader
	started   bool

	before func(*store.Store) // plants a bug
}

func newReaders(s *store.Store) *readers {
	return &readers{
		history: reader{facts: s.Follow(output.Facts)}, decisions: s.Follow(output.Decisions),
		copy: newCopy(), steps: stepReader{holds: map[types.UID]reservations.Hold{}},
	}
}

func (r *readers) read(s *store.Store) error {
	if r.before != nil {
		r.before(s)
	}
	if err := r.copy.read(s); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	events, _ := r.decisions.Take(nil)
	var steps []output.Step
	for _, e := range events {
		steps = append(steps, *e.Step)
	}
	if err := r.steps.follow(s, steps); err != nil {
		return fmt.Errorf("steps: %w", err)
	}
	if !r.started { // what existed before Start is not in the history
		if r.started = s.Ready(); r.started {
			r.history.facts.Take(nil)
			r.history.story = storyOf(s)
		}
		return nil
	}
	return r.history.read(s)
}

// TestScriptsNoticePlantedBugs: they notice that readers do not get what they should.
func TestScriptsNoticePlantedBugs(t *testing.T) {
	plants := map[string]func(*readers){
		"a mark is lost": func(r *readers) {
			r.before = func(s *store.Store) { s.Model().History.Pods.Take(1, s.Model().RecordOf) }
		},
		"a pod that is gone stays": func(r *readers) {
			r.before = func(s *store.Store) { s.Model().History.Pods.TakeGone(100) }
		},
	}
	for bug := range planted {
		plants[bug] = func(r *readers) { r.history.bug = bug }
	}
	for _, bug := range stepBugs {
		plants[bug] = func(r *readers) { r.steps.bug = bug }
	}
	files := expect.Get(filepath.Glob("testdata/*.txt"))(t)
	for bug, plant := range plants {
		noticed := false
		for i := 0; i < len(files) && !noticed; i++ {
			var s script
			datadriven.RunTest(t, files[i], func(t *testing.T, d *datadriven.TestData) string {
				noticed = noticed || strings.Contains(s.do(t, d), "!! readers: ")
				if d.Cmd == "store" {
					plant(s.readers)
				}
				return d.Expected
			})
		}
		expect.That(t, noticed, "no script notices that %s", bug)
	}
}

var stepBugs = []string{
	"an end is lost", "a beginning is lost", "a beginning is told twice", "an end is of another hold",
	"the queue is not said", "the time is not said",
}

func forge(steps []output.Step, bug string) (out []output.Step) {
	for _, s := range steps {
		switch {
		case s.Kind == output.StepEnded && bug == "an end is lost", s.Kind == output.StepHeld && bug == "a beginning is lost":
			continue
		case s.Kind == output.StepHeld && s.NodeBoundDecision == nil && bug == "a beginning is told twice":
			out = append(out, s)
		case s.Kind == output.StepEnded && bug == "an end is of another hold":
			s.Hold.Since = s.Hold.Since.Add(1)
		case bug == "the queue is not said":
			s.Queue = ""
		case bug == "the time is not said":
			s.At = time.Time{}
		}
		out = append(out, s)
	}
	return out
}

// stepReader is the state that an independent reader derives from the steps of a store.
type stepReader struct {
	holds map[types.UID]reservations.Hold // that began and did not end
	bug   string                          // of stepBugs; empty for none
}

// follow applies steps, and compares the result with the store.
func (r *stepReader) follow(s *store.Store, steps []output.Step) error {
	steps = forge(steps, r.bug)
	for i := range steps {
		x, known := s.Explanation(steps[i].UID, steps[i].At)
		if steps[i].At.IsZero() || known && steps[i].Kind != output.StepEnded && x.Pod.Queue != steps[i].Queue {
			return fmt.Errorf("%s: %s: in queue %q at %v", steps[i].Name, steps[i].Kind, steps[i].Queue, steps[i].At)
		}
		if err := r.read(&steps[i]); err != nil {
			return fmt.Errorf("%s: %s: %w", steps[i].Name, steps[i].Kind, err)
		}
	}
	if !s.Ready() {
		return nil // the holds are not restored yet
	}
	if n := len(s.Holds().All()); len(r.holds) != n {
		return fmt.Errorf("it has %d holds, there are %d", len(r.holds), n)
	}
	for asker, h := range r.holds {
		now, ok := s.Holds().Of(asker)
		if !ok || now.Node != h.Node || !now.Since.Equal(h.Since) {
			return fmt.Errorf("%s holds %+v, it has %+v", asker, now, h)
		}
	}
	return nil
}

func (r *stepReader) read(s *output.Step) error {
	h, held := r.holds[s.UID]
	if s.Kind != output.StepRefused && s.Kind != output.StepHeld && s.Kind != output.StepTakenUp && held && (s.Hold.Node != h.Node || !s.Hold.Since.Equal(h.Since)) {
		return fmt.Errorf("it is about another hold: %+v, not %+v", s.Hold, h)
	}
	switch s.Kind {
	case output.StepRefused:
		if s.Reason.None() || s.Decision == nil && s.NodeBoundDecision == nil {
			return fmt.Errorf("no reason is known: %+v", s)
		}
	case output.StepHeld:
		return r.begin(s, held)
	case output.StepTakenUp:
		if held {
			return fmt.Errorf("it has a hold: %+v", h)
		}
		r.holds[s.UID] = s.Hold
	case output.StepCommitted:
		if !held || slices.ContainsFunc(s.Going, func(v output.Victim) bool { return !slices.Contains(s.Hold.Chosen, v.UID) }) {
			return fmt.Errorf("held %t: %v go, %v were chosen", held, s.Going, s.Hold.Chosen)
		}
	case output.StepAborted, output.StepVictimsDeleted:
		if !held {
			return errors.New("it has no hold")
		}
	case output.StepLost:
		if s.Reason.None() || s.Losses == 0 {
			return fmt.Errorf("lost for no reason, or not counted: %+v", s)
		}
	case output.StepEnded:
		// A claim that was not restored has no earlier step.
		if !held && s.Ended == "" || s.Reason.None() && s.Ended != reservations.Bound && s.Ended != reservations.Superseded {
			return fmt.Errorf("ended %q: %s", s.Ended, s.Reason)
		}
		delete(r.holds, s.UID)
	}
	return nil
}

func (r *stepReader) begin(s *output.Step, held bool) error {
	switch {
	case s.Hold.Asker != s.UID || s.Hold.Decision == "" && !held: // a claim need not name its decision
		return fmt.Errorf("there is no hold, or it has no asker: %+v", s.Hold)
	case s.NodeBoundDecision == nil && (held || s.Decision == nil):
		return errors.New("it has a hold, or no decision")
	case s.Decision != nil && (s.Decision.Outcome == planner.Preempt) != (len(s.Hold.Chosen) > 0):
		return fmt.Errorf("the decision is %s, the hold %+v", s.Decision, s.Hold)
	}
	r.holds[s.UID] = s.Hold
	return nil
}

type copyOf struct {
	pods  map[types.UID]*output.PodRecord
	apps  map[uint64]*output.AppRecord
	nodes map[string]*output.NodeRecord
	rest  *output.Rest
	calls int
}

func newCopy() *copyOf {
	return &copyOf{pods: map[types.UID]*output.PodRecord{}, apps: map[uint64]*output.AppRecord{}, nodes: map[string]*output.NodeRecord{}}
}

// bite takes one portion of changes and tells whether there are more.
func (c *copyOf) bite(s *store.Store, limit int) bool {
	changes := s.TakeChanges(limit)
	for _, uid := range changes.GonePods {
		delete(c.pods, uid)
	}
	for _, serial := range changes.GoneApps {
		delete(c.apps, serial)
	}
	for _, name := range changes.GoneNodes {
		delete(c.nodes, name)
	}
	for _, r := range changes.Pods {
		c.pods[r.UID] = r
	}
	for _, r := range changes.Apps {
		c.apps[r.Serial] = r
	}
	for _, r := range changes.Nodes {
		c.nodes[r.Name] = r
	}
	c.rest = changes.Rest
	return c.rest == nil
}

// compare returns how a complete copy differs from the store.
func (c *copyOf) compare(s *store.Store) error {
	fresh := newCopy()
	m := s.Model()
	for uid, p := range m.Pods {
		fresh.pods[uid] = m.RecordOf(p)
	}
	for _, a := range m.Apps.All() {
		fresh.apps[a.Serial] = m.RecordOfApp(a)
	}
	for n := range m.Cache.Nodes.All() {
		if n.Known() {
			fresh.nodes[n.Name()] = model.RecordOfNode(&model.SeenNode{Node: n})
		}
	}
	switch {
	case !reflect.DeepEqual(c.pods, fresh.pods):
		return fmt.Errorf("pods: the copy has %v, the store %v", c.pods, fresh.pods)
	case !reflect.DeepEqual(c.apps, fresh.apps):
		return fmt.Errorf("applications: the copy has %v, the store %v", c.apps, fresh.apps)
	case !reflect.DeepEqual(c.nodes, fresh.nodes):
		return fmt.Errorf("nodes: the copy has %v, the store %v", c.nodes, fresh.nodes)
	case c.rest.Queues != s.Snapshot() || c.rest.Holds != s.Holds() || c.rest.Spec != s.Spec() || c.rest.Started != s.Ready():
		return fmt.Errorf("the rest is not that of this moment: %+v", c.rest)
	}
	return nil
}

// read takes one portion, or all.
func (c *copyOf) read(s *store.Store) error {
	if c.calls++; c.calls%5 != 0 {
		c.bite(s, 2)
		return nil
	}
	for c.bite(s, 2) {
	}
	return c.compare(s)
}

// TestAStoreWithoutReaders: a store without a reader keeps nothing of objects that are gone.
func TestAStoreWithoutReaders(t *testing.T) {
	s := store.New(config.Default(), store.Options{})
	s.Start(epoch)
	for i := range 3 * model.FinishedKept {
		uid := types.UID(fmt.Sprint("u", i))
		s.UpsertNode(string(uid), resources.Vector{}, epoch)
		p := newPod(string(uid), "", string(uid), queuestest.Vector("pods=1"))
		p.Node = string(uid)
		s.Upsert(p, epoch)
		s.Delete(uid, epoch)
		s.DeleteNode(string(uid), epoch)
	}
	c := s.TakeChanges(100)
	if n := len(c.GonePods) + len(c.GoneApps) + len(c.GoneNodes) + len(c.Pods) + len(c.Apps) + len(c.Nodes); n > 0 {
		t.Fatalf("remembers objects that are gone, %d of them or more", n)
	}
	last := c.Rest.Finished
	if len(last) != model.FinishedKept || last[0].ID != fmt.Sprint("u", 2*model.FinishedKept) || last[model.FinishedKept-1].ID != fmt.Sprint("u", 3*model.FinishedKept-1) {
		t.Errorf("%d finished applications, from %s to %s", len(last), last[0].ID, last[len(last)-1].ID)
	}
}

func TestTimesOfAnApplication(t *testing.T) {
	s := store.New(config.Default(), store.Options{})
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	s.Start(at(0))
	p := newPod("u", "", "a", queuestest.Vector("pods=1 vcore=5m"))
	p.Created = at(-5)
	s.Upsert(p, at(1))
	p.Node = "n"
	s.Upsert(p, at(2))
	p.Request = queuestest.Vector("pods=1 vcore=3m memory=7")
	s.Upsert(p, at(3))
	running := s.TakeChanges(10)
	s.Delete("u", at(4))
	over := s.TakeChanges(10)
	if len(running.Apps) != 1 || len(over.GoneApps) != 1 || over.GoneApps[0] != running.Apps[0].Serial || len(over.Rest.Finished) != 1 {
		t.Fatalf("running: %+v\nover: %+v", running, over)
	}
	a, f := running.Apps[0], over.Rest.Finished[0]
	expect.That(t, a.Submitted.Equal(at(-5)) && a.Accepted.Equal(at(1)) && a.Running.Equal(at(2)) &&
		a.Finished.IsZero(), "running: %+v", a)
	expect.That(t, f.Accepted.Equal(at(1)) && f.Running.Equal(at(2)) && f.Finished.Equal(at(4)),
		"over: %+v", f)
	expect.Same(t, "most used", "memory=7 pods=1 vcore=5", f.MostUsed.String())
}

// The scripts about watched queues and nodes must fail for stores that react to too many
// or too few changes.
func TestScriptsNoticeMissedWatches(t *testing.T) {
	forget := func(s *store.Store, about func(preemption.Watched) bool) {
		watches := &s.Model().Preemption.Watches
		for _, p := range s.Model().SortedPods() {
			watches.Set(p.UID, slices.DeleteFunc(slices.Clone(watches.Of(p.UID)), about))
		}
	}
	isNode := func(s *store.Store, x preemption.Watched) bool {
		for n := range s.Model().Cache.Nodes.All() {
			if x == preemption.WatchedNode(n.Name()) {
				return true
			}
		}
		return false
	}
	bugs := map[string]func(*store.Store){
		"none":                   func(*store.Store) {},
		"deaf to nodes":          func(s *store.Store) { forget(s, func(x preemption.Watched) bool { return isNode(s, x) }) },
		"deaf to queues":         func(s *store.Store) { forget(s, func(x preemption.Watched) bool { return !isNode(s, x) }) },
		"everything is a change": changeAll,
		"no second between plans": func(s *store.Store) {
			for _, p := range s.Model().SortedPods() {
				if p.Asker != nil {
					p.Asker.TriedAt = time.Time{}
				}
			}
		},
	}
	for name, plant := range bugs {
		var s script
		wrong := ""
		datadriven.RunTest(t, "testdata/preempt_watched.txt", func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd != "store" {
				plant(s.store)
			}
			if out := s.do(t, d); wrong == "" && strings.TrimSpace(out) != strings.TrimSpace(d.Expected) {
				wrong = d.Pos + ": " + out
			}
			return d.Expected
		})
		expect.Same(t, name+", noticed here: "+wrong, name == "none", wrong == "")
	}
}

// changeAll plants a bug: everything that is watched counts as changed.
func changeAll(s *store.Store) {
	watches := &s.Model().Preemption.Watches
	for _, p := range s.Model().SortedPods() {
		for _, x := range watches.Of(p.UID) {
			watches.Change(x)
		}
	}
}
