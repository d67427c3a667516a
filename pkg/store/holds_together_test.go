package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// askStage is a store whose nodes are full of pods of root.lent, which may all be
// preempted. Pods of three other leaves ask one after another, and no victim is ever gone.
// The stage counts on its own what each queue has.
type askStage struct {
	store *Store
	now   time.Time
	// guaranteed is the guarantee in cores of each queue that has one, by path.
	guaranteed map[string]int
	asks, runs []*stagePod
	// forgets changes a queue as plans see it: a planted bug. Nil for none.
	forgets func(*queues.Queue)
	made    int // how many pods were made
	// most is the largest number of holds of one leaf; full, how many plans law 4 refused
	// for leaves with a hold.
	most, full int
}

type stagePod struct {
	objects.Pod
	queue string
	cores int
}

const askNodes, askCores = 6, 4

var askLeaves = []string{"root.top.a", "root.top.b", "root.c"}

func newAskStage(t *testing.T, r *rapid.T) *askStage {
	s := &askStage{now: epoch, guaranteed: map[string]int{}}
	var tree strings.Builder
	tree.WriteString("root\n")
	for _, q := range []string{"root.top", "root.top.a", "root.top.b", "root.c"} {
		name := q[strings.LastIndexByte(q, '.')+1:]
		fmt.Fprintf(&tree, "%s%s props=preemption.delay:1s", strings.Repeat("  ", strings.Count(q, ".")), name)
		if g := rapid.IntRange(0, 9).Draw(r, "guarantee of "+q); g > 0 {
			s.guaranteed[q] = g
			fmt.Fprintf(&tree, " guaranteed.vcore=%d", g)
		}
		tree.WriteByte('\n')
	}
	tree.WriteString("  lent")
	s.store = New(specification(t, tree.String()), model.Options{InitialBackoff: -1, MaxBackoff: -1})
	s.store.SetPreemption(PreemptionOptions{RetryInterval: time.Second, Round: time.Second, HoldTimeout: 24 * time.Hour})
	for n := range askNodes {
		node, free := fmt.Sprint("n", n), askCores
		s.store.UpsertNode(node, queuestest.Vector(fmt.Sprintf("vcore=%d pods=100", askCores)), s.now)
		if cores := rapid.IntRange(0, 2).Draw(r, "cores of a running pod"); cores > 0 {
			s.run(rapid.SampledFrom(askLeaves).Draw(r, "queue of a running pod"), node, cores)
			free -= cores
		}
		for free > 0 {
			cores := rapid.IntRange(1, free).Draw(r, "cores of a victim")
			s.add("root.lent", node, cores)
			free -= cores
		}
	}
	s.store.Start(s.now)
	return s
}

// add makes a pod, pending if the node is empty.
func (s *askStage) add(queue, node string, cores int) *stagePod {
	s.made++
	name := fmt.Sprintf("p%03d", s.made)
	p := &stagePod{queue: queue, cores: cores, Pod: objects.Pod{
		Identity: objects.Identity{
			UID: types.UID(name), Namespace: "ns", Name: name, Created: epoch,
			Labels: map[string]string{placement.KeyQueue: queue, placement.KeyApplicationID: name},
		},
		Status:  objects.Status{Node: node},
		Request: queuestest.Vector(fmt.Sprintf("vcore=%d pods=1", cores)),
	}}
	s.upsert(p)
	return p
}

func (s *askStage) upsert(p *stagePod) { s.store.Upsert(p.Pod, s.now) }

// run makes a running pod of a leaf that asks. Its priority saves it from preemption.
func (s *askStage) run(queue, node string, cores int) {
	p := s.add(queue, node, cores)
	p.Priority = 1000
	s.upsert(p)
	s.runs = append(s.runs, p)
}

// seen is the tree as plans see it.
type seen struct {
	queues.View
	forgets func(*queues.Queue)
}

func (v seen) Queue(id queues.ID) *queues.Queue {
	q := v.View.Queue(id)
	if q == nil || v.forgets == nil {
		return q
	}
	c := *q
	v.forgets(&c)
	return &c
}

// ask ends a cycle of a pod as PostFilter does. It returns an error if the pod holds a
// node then and its leaf may not ask for it.
func (s *askStage) ask(p *stagePod) error {
	has := s.has()
	attempt, _ := s.store.Attempt(p.UID, "", nil, s.now)
	if attempt != nil {
		w := *attempt.World
		w.Queues = seen{w.Queues, s.forgets}
		d := search.Plan(&w, attempt.Ask, planner.Params{StrictGuarantee: attempt.Strict})
		if d.Outcome == planner.Preempt && s.store.AcceptPlan(p.UID, &d, s.now).None() {
			s.most = max(s.most, s.holdsOf(p.queue))
			return s.mayHold(p, has)
		}
		if d.Outcome != planner.Preempt {
			s.store.RejectPlan(p.UID, &d, s.now)
		}
		if s.holdsOf(p.queue) > 0 && slices.ContainsFunc(d.Rejected, func(r planner.Rejection) bool { return r.Rule == planner.Law4 }) {
			s.full++
		}
	}
	s.store.NoNode(p.UID, "", reasons.Brief(reasons.NoNodeFits), s.now)
	return nil
}

// has adds up what running pods of each queue use, with what its holds request.
func (s *askStage) has() map[string]int {
	out := map[string]int{}
	add := func(p *stagePod) {
		for q := p.queue; q != "root"; q = q[:strings.LastIndexByte(q, '.')] {
			out[q] += p.cores
		}
	}
	for _, p := range s.runs {
		add(p)
	}
	for _, p := range s.asks {
		if s.holds(p) {
			add(p)
		}
	}
	return out
}

func (s *askStage) holds(p *stagePod) bool {
	_, ok := s.store.Holds().Of(p.UID)
	return ok
}

func (s *askStage) holdsOf(queue string) int {
	n := 0
	for _, p := range s.asks {
		if p.queue == queue && s.holds(p) {
			n++
		}
	}
	return n
}

// mayHold returns an error if a new hold, with those before it, requests more than law 4
// lets its leaf ask for. A guarantee on the leaf or above it must be there, and none of
// these may be used up before the hold.
func (s *askStage) mayHold(p *stagePod, has map[string]int) error {
	may := false
	for q := p.queue; q != "root"; q = q[:strings.LastIndexByte(q, '.')] {
		g, guaranteed := s.guaranteed[q]
		if may = may || guaranteed; guaranteed && has[q] >= g {
			return fmt.Errorf("hold %d of %s requests %d, and %s has %d of %d that it is guaranteed", s.holdsOf(p.queue), p.queue, p.cores, q, has[q], g)
		}
	}
	if !may {
		return fmt.Errorf("%s has a hold, and no guarantee", p.queue)
	}
	return nil
}

// goes carries out the plan of a pod with a hold. Its victims terminate and stay.
func (s *askStage) goes(p *stagePod) {
	going, _ := s.store.Commit(p.UID, nil, s.now)
	for _, v := range going {
		if victim, ok := s.store.model.Pods[v.UID]; ok {
			next := *victim.Pod
			next.Deleting, next.Preempted, next.DeletionGrace = true, true, time.Hour
			s.store.Upsert(next, s.now)
		}
	}
	s.store.VictimsDeleted(p.UID, s.now)
}

// askHistory plays a random history.
func askHistory(t *testing.T, r *rapid.T, forgets func(*queues.Queue)) (*askStage, error) {
	s := newAskStage(t, r)
	s.forgets = forgets
	for range rapid.IntRange(1, 30).Draw(r, "moves") {
		s.now = s.now.Add(2 * time.Second) // more than the delay of the leaves, and the retry interval
		s.store.Tick(s.now)
		move := rapid.SampledFrom([]string{"new", "new", "new", "again", "go", "own", "end"}).Draw(r, "move")
		if len(s.asks) == 0 {
			move = "new"
		}
		switch move {
		case "new":
			p := s.add(rapid.SampledFrom(askLeaves).Draw(r, "queue"), "", rapid.IntRange(1, 4).Draw(r, "cores"))
			s.asks = append(s.asks, p)
		case "go":
			s.goes(rapid.SampledFrom(s.asks).Draw(r, "holder"))
		case "own": // its owner deletes it, and it runs on
			if len(s.runs) > 0 {
				p := rapid.SampledFrom(s.runs).Draw(r, "running pod")
				p.Deleting, p.DeletionGrace = true, time.Hour
				s.upsert(p)
			}
		case "end":
			i := rapid.IntRange(0, len(s.asks)-1).Draw(r, "asker")
			s.store.Delete(s.asks[i].UID, s.now)
			s.asks = slices.Delete(s.asks, i, i+1)
		}
		for _, p := range s.asks {
			if s.holds(p) {
				continue
			}
			if err := s.ask(p); err != nil {
				return s, err
			}
		}
		if err := s.store.Check(); err != nil {
			return s, err
		}
	}
	return s, nil
}

// TestHoldsOfALeafTogether: the holds of a leaf together request no more than its
// guarantee, or one above it, lets the leaf ask for, whatever the order in which its pods
// ask, and however long their victims stay.
func TestHoldsOfALeafTogether(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		if _, err := askHistory(t, r, nil); err != nil {
			r.Fatal(err)
		}
	})
}

// TestHoldsOfALeafTogetherHappen: in such histories leaves have several holds, and law 4
// refuses the next one.
func TestHoldsOfALeafTogetherHappen(t *testing.T) {
	most, full := 0, 0
	histories := rapid.Custom(func(r *rapid.T) *askStage {
		s := expect.Get(askHistory(t, r, nil))(t)
		return s
	})
	for seed := range 50 {
		s := histories.Example(seed)
		most, full = max(most, s.most), full+s.full
	}
	if most < 3 || full == 0 {
		t.Errorf("at most %d holds of one leaf, and law 4 refused %d plans for leaves with a hold", most, full)
	}
}

// TestHoldsOfALeafTogetherFail: the same histories find planted bugs.
func TestHoldsOfALeafTogetherFail(t *testing.T) {
	for name, forgets := range map[string]func(*queues.Queue){
		"what holders request is not counted":           func(q *queues.Queue) { q.Arriving = resources.Vector{} },
		"pods that their owner deletes are not counted": func(q *queues.Queue) { q.Preempted = q.Leaving },
		"the holds of a leaf do not count above it": func(q *queues.Queue) {
			if len(q.Children) > 0 {
				q.Arriving = resources.Vector{}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			histories := rapid.Custom(func(r *rapid.T) string {
				if _, err := askHistory(t, r, forgets); err != nil {
					return err.Error()
				}
				return ""
			})
			for seed := range 300 {
				if found := histories.Example(seed); strings.Contains(found, "that it is guaranteed") {
					return
				}
			}
			t.Error("no history shows it")
		})
	}
}
