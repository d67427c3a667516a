package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// gangStage is a scheduler with Coscheduling, and nodes, for a store with PodGroups. A
// pod of a group waits in Permit, without a time-out, until enough pods of its group do.
type gangStage struct {
	store  *Store
	now    time.Time
	pods   map[types.UID]*actor
	min    map[string]int
	free   []int // cores, by node
	active []types.UID
	made   int
	// broken is called after every step.
	broken func(*gangStage)
}

// actor is a pod of the test.
type actor struct {
	objects.Pod
	group string
	cores int
	at    int  // its node while it waits in Permit or runs; else -1
	idle  bool // unschedulable in the scheduler's queue
}

func newGangStage(t *testing.T, follows bool) *gangStage {
	s := &gangStage{
		store: New(queuestest.MustTree(t, "root\n  a max.vcore=8\n  b"), model.Options{}), now: epoch,
		pods: map[types.UID]*actor{}, min: map[string]int{}, free: []int{4, 3},
	}
	if follows {
		s.store.FollowPodGroups()
	}
	s.store.Start(s.now)
	return s
}

// add creates a pod of a group; of none if group is "". A group has two applications.
func (s *gangStage) add(group, queue string, cores int) {
	s.made++
	name := fmt.Sprintf("%s-%02d", group, s.made)
	labels := map[string]string{placement.KeyApplicationID: fmt.Sprint("app", group, s.made%2), placement.KeyQueue: "root." + queue}
	if group != "" {
		labels[objects.PodGroupLabel] = group
	}
	a := &actor{group: group, cores: cores, at: -1, Pod: objects.Pod{
		Identity: objects.Identity{UID: types.UID(name), Namespace: "ns", Name: name, Created: s.now, Labels: labels},
		Request:  queuestest.Vector(fmt.Sprintf("vcore=%d pods=1", cores)),
	}}
	s.pods[a.UID] = a
	s.store.Upsert(a.Pod, s.now)
	s.play()
}

// setGroup creates or changes a PodGroup.
func (s *gangStage) setGroup(group string, least int) {
	s.min[group] = least
	s.store.SetPodGroup("ns", group, least, s.now)
	s.play()
}

func (s *gangStage) remove(a *actor) {
	delete(s.pods, a.UID)
	s.store.Delete(a.UID, s.now)
	if a.at >= 0 {
		s.free[a.at] += a.cores
		s.stir()
	}
	s.play()
}

// sorted returns the selected pods by name.
func (s *gangStage) sorted(which func(*actor) bool) []*actor {
	var out []*actor
	for _, a := range s.pods {
		if which(a) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b *actor) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// stir is an event for which the scheduler brings back unschedulable pods.
func (s *gangStage) stir() {
	for _, a := range s.sorted(func(a *actor) bool { return a.idle }) {
		s.gate(a)
	}
}

func (s *gangStage) gate(a *actor) {
	if s.store.Gate(a.UID, s.now).None() {
		a.idle = false
		s.active = append(s.active, a.UID)
	}
}

// play runs cycles until there are none to run.
func (s *gangStage) play() {
	for {
		for _, r := range s.store.TakeActivations() {
			if a := s.pods[r.UID]; a != nil && !slices.Contains(s.active, r.UID) {
				s.gate(a)
			}
		}
		if s.broken != nil {
			s.broken(s)
		}
		if len(s.active) == 0 {
			return
		}
		uid := s.active[0]
		s.active = s.active[1:]
		if a := s.pods[uid]; a != nil && a.at < 0 {
			s.cycle(a)
		}
	}
}

func (s *gangStage) cycle(a *actor) {
	if _, v, _ := s.store.CheckQuota(a.UID); !v.OK() {
		s.store.QuotaRefused(a.UID, s.now)
		s.store.QuotaRefused(a.UID, s.now)
		s.reject(a.group)
		return
	}
	node := slices.IndexFunc(s.free, func(free int) bool { return free >= a.cores })
	if node < 0 {
		s.store.NoNode(a.UID, "kind"+a.group, reasons.New(reasons.NoNodeFits, "no node has room"), s.now)
		a.idle = true
		s.reject(a.group)
		return
	}
	if v := s.store.Assume(a.UID, fmt.Sprint("n", node), NoSnapshot, s.now); !v.OK() {
		s.reject(a.group)
		return
	}
	a.at = node
	s.free[node] -= a.cores
	if s.placed(a.group) >= s.min[a.group] {
		for _, m := range s.waiting(a.group) {
			m.Node = fmt.Sprint("n", m.at)
			s.store.Upsert(m.Pod, s.now)
		}
	}
}

// waiting returns the pods of a group in Permit; for no group, the pods about to be
// bound.
func (s *gangStage) waiting(group string) []*actor {
	return s.sorted(func(a *actor) bool { return a.at >= 0 && a.Node == "" && a.group == group })
}

func (s *gangStage) placed(group string) int {
	return len(s.sorted(func(a *actor) bool { return a.at >= 0 && a.group == group }))
}

// reject takes back the places of an incomplete group.
func (s *gangStage) reject(group string) {
	if group == "" || s.placed(group) >= s.min[group] {
		return
	}
	waiting := s.waiting(group)
	for _, a := range waiting {
		s.free[a.at] += a.cores
		a.at = -1
		s.store.Forget(a.UID, s.now)
	}
	if len(waiting) > 0 {
		s.stir()
	}
}

// pass advances the time, as far as a pod waits for it.
func (s *gangStage) pass(d time.Duration) error {
	for end := s.now.Add(d); s.now.Before(end); {
		next, ok := s.store.NextDeadline()
		if !ok || next.After(end) {
			next = end
		}
		if next.After(s.now) {
			s.now = next
		} else {
			s.now = s.now.Add(time.Millisecond)
		}
		s.store.Tick(s.now)
		s.play()
		if err := s.check(); err != nil {
			return err
		}
	}
	return nil
}

// check is the invariant whenever no cycle is running: no pod keeps a place for others of
// its group.
func (s *gangStage) check() error {
	if kept := s.sorted(func(a *actor) bool { return a.at >= 0 && a.Node == "" }); len(kept) > 0 {
		return fmt.Errorf("%d pods wait for others with their places, %s for one", len(kept), kept[0].Name)
	}
	return s.store.Check()
}

// checkStarted is the invariant after a long time without events: no group with room
// waits.
func (s *gangStage) checkStarted() error {
	for group, least := range s.min {
		ready := s.sorted(func(a *actor) bool { return a.group == group && a.at < 0 })
		missing := least - s.placed(group)
		if missing <= 0 || missing > len(ready) {
			continue
		}
		cores, fit := ready[0].cores, 0
		for _, free := range s.free {
			fit += free / cores
		}
		q, _ := s.store.model.Cache.Tree().Find(ready[0].Labels[placement.KeyQueue])
		request := queuestest.Vector(fmt.Sprintf("vcore=%d pods=%d", missing*cores, missing))
		if fit >= missing && q.Max.Allows(q.Allocated, request) {
			return fmt.Errorf("group %s waits, and there is room for %d pods of %d cores in %s and on nodes with %v: %v",
				group, missing, cores, q.Path, s.free, s.store.Explain(ready[0].UID))
		}
	}
	return nil
}

// groupHistory plays a random history of three groups and other pods. The pods of a group
// have the same size and queue.
func groupHistory(t *rapid.T, s *gangStage) error {
	queue := map[string]string{"x": "a", "y": "a", "z": "b", "": "a"}
	cores := map[string]int{"": 1}
	for _, group := range []string{"x", "y", "z"} {
		cores[group] = rapid.IntRange(1, 3).Draw(t, "cores of "+group)
		s.setGroup(group, rapid.IntRange(2, 4).Draw(t, "min of "+group))
	}
	for range rapid.IntRange(1, 25).Draw(t, "moves") {
		group := rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "group")
		switch rapid.SampledFrom([]string{"add", "add", "add", "other", "remove", "group", "no group", "node", "pass"}).Draw(t, "move") {
		case "add":
			s.add(group, queue[group], cores[group])
		case "other":
			s.add("", queue[""], cores[""])
		case "remove":
			if all := s.sorted(func(*actor) bool { return true }); len(all) > 0 {
				s.remove(rapid.SampledFrom(all).Draw(t, "pod"))
			}
		case "group":
			s.setGroup(group, rapid.IntRange(1, 4).Draw(t, "min"))
		case "no group":
			delete(s.min, group)
			s.store.SetPodGroup("ns", group, 0, s.now)
			s.play()
		case "node":
			s.free = append(s.free, rapid.IntRange(1, 4).Draw(t, "free"))
			s.stir()
			s.play()
		case "pass":
			if err := s.pass(time.Duration(rapid.IntRange(1, 15).Draw(t, "seconds")) * time.Second); err != nil {
				return err
			}
		}
		if err := s.check(); err != nil {
			return err
		}
	}
	if err := s.pass(time.Minute); err != nil {
		return err
	}
	return s.checkStarted()
}

// TestPodGroupHistories: in any history, no pod keeps a place for members that cannot
// come, and every group with room starts.
func TestPodGroupHistories(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		if err := groupHistory(r, newGangStage(t, true)); err != nil {
			r.Fatal(err)
		}
	})
}

// TestPodGroupHistoriesFail: the same histories find planted bugs.
func TestPodGroupHistoriesFail(t *testing.T) {
	for _, test := range []struct {
		name    string
		follows bool
		broken  func(*gangStage)
		want    string
	}{
		{"the store knows no PodGroups", false, nil, "wait for others with their places"},
		{"the scheduler brings no pod back", true, func(s *gangStage) {
			for _, a := range s.pods {
				a.idle = false
			}
		}, "and there is room for"},
		{"groups that a queue refused are not checked again", true, func(s *gangStage) {
			for g := range s.store.model.Pending.Groups.All() {
				s.store.model.Pending.Groups.Reopen(g)
			}
		}, "nothing brings its pods back"},
	} {
		t.Run(test.name, func(t *testing.T) {
			histories := rapid.Custom(func(r *rapid.T) string {
				s := newGangStage(t, test.follows)
				s.broken = test.broken
				if err := groupHistory(r, s); err != nil {
					return err.Error()
				}
				return ""
			})
			for seed := range 300 {
				if found := histories.Example(seed); found != "" && strings.Contains(found, test.want) {
					return
				}
			}
			t.Errorf("no history ends with %q", test.want)
		})
	}
}
