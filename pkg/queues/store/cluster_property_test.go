package store

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// In any history the books are right, plans are made on the world as it is,
// nobody goes against the laws or without need, holds end, a restart takes up
// what is written and nothing else, and at rest nobody waits who could run, or
// for whom others could make room.
func TestClusterProperty(t *testing.T) {
	for seed := range 200 {
		if err := newStrife(seed).run(sound); err != nil {
			small, reason := newStrife(seed).smallest(sound)
			t.Fatalf("seed %d: %v\nin short: %v\n%+v", seed, err, reason, small.moves)
		}
	}
}

// crooked is a store with one planted bug in what makes room.
type crooked struct {
	*Store
	bug string
}

var crookedBugs = []string{
	"a victim counts twice", "victims stay for the books", "nobody judges again", "plans are called off",
	"holds outlive their askers", "releases are lost", "claims are lost", "claims grow", "nobody asks again",
	"victims are waited for in vain", "plans are made on what was", "foreign pods are forgotten", "cordons are lost",
	"held nodes are used", "binding pods may go", "who left Permit may go",
	"a standby is deaf",
	"a max binds no DaemonSet", "who is before is forgotten", "nobody judges DaemonSets again", "changes of nodes are not noticed",
	"decisions for DaemonSets are lost",
}

func (f *crooked) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// spareAll forgets who was chosen.
func (f *crooked) spareAll() {
	for _, p := range f.sortedPods() {
		if p.chosenBy != "" {
			p.chosenBy = ""
			f.weigh(p)
			f.touchPod(p)
		}
	}
}

func (f *crooked) Attempt(uid types.UID, kind string, inPermit []types.UID, now time.Time) (*Attempt, reasons.Reason) {
	f.locked(func() {
		switch f.bug {
		case "a victim counts twice":
			f.spareAll()
		case "plans are made on what was":
			for _, n := range f.stale {
				n.stale = false
			}
			f.stale = nil
		case "binding pods may go":
			inPermit = nil
			for _, p := range f.sortedPods() {
				inPermit = append(inPermit, p.UID)
			}
		}
	})
	return f.Store.Attempt(uid, kind, inPermit, now)
}

func (f *crooked) Claim(uid types.UID, d *victims.Decision, now time.Time) reasons.Reason {
	why := f.Store.Claim(uid, d, now)
	if f.bug == "victims stay for the books" {
		for _, v := range d.Victims {
			f.pods[types.UID(v.UID)].chosenBy = ""
		}
	}
	return why
}

func (f *crooked) Commit(asker types.UID, inPermit []types.UID, now time.Time) ([]Victim, reasons.Reason) {
	if f.bug == "who left Permit may go" {
		inPermit = slices.Collect(maps.Keys(f.waitingInPermit))
	}
	p := f.pods[asker]
	h, ok := f.holds.Of(asker)
	if !ok || p == nil {
		return f.Store.Commit(asker, inPermit, now)
	}
	if h.Required != (f.bug == "nobody judges DaemonSets again") {
		return f.Store.Commit(asker, inPermit, now)
	}
	switch f.bug {
	case "nobody judges again", "nobody judges DaemonSets again":
		var out []Victim
		f.locked(func() {
			for _, v := range f.left(&h) {
				out = append(out, Victim{Ref: v.Ref()})
			}
			f.holds.Commit(asker)
		})
		return out, reasons.Reason{}
	case "plans are called off":
		why := reasons.New(reasons.HoldGivenUp, "why not")
		f.GiveUp(asker, why, now)
		return nil, why
	}
	return f.Store.Commit(asker, inPermit, now)
}

func (f *crooked) AttemptRequired(uid types.UID, inPermit []types.UID, now time.Time) (*RequiredAttempt, reasons.Reason) {
	a, why := f.Store.AttemptRequired(uid, inPermit, now)
	if a == nil {
		return a, why
	}
	switch f.bug {
	case "a max binds no DaemonSet":
		a.Ask.OverMax = ""
	case "who is before is forgotten":
		a.Node.Before, a.Before = nil, nil
	}
	return a, why
}

func (f *crooked) Settle(uid types.UID, d *required.Decision, now time.Time) (bool, reasons.Reason) {
	if f.bug == "decisions for DaemonSets are lost" && d.Outcome == victims.Preempt {
		return false, reasons.New(reasons.RoomImpossible, "or so it says")
	}
	return f.Store.Settle(uid, d, now)
}

func (f *crooked) Delete(uid types.UID, now time.Time) {
	h, held := f.holds.Of(uid)
	waiting := f.holds.Waiting(uid)
	var kept []reservations.Hold
	if f.bug == "victims are waited for in vain" {
		for _, asker := range waiting {
			k, _ := f.holds.End(asker)
			kept = append(kept, k)
		}
	}
	f.Store.Delete(uid, now)
	f.locked(func() {
		if held && f.bug == "holds outlive their askers" {
			kept = append(kept, h)
		}
		for _, k := range kept {
			_ = f.holds.Place(k)
		}
		f.holdsChanged()
		f.show()
	})
}

func (f *crooked) TakeWork() []Work {
	work := f.Store.TakeWork()
	if f.bug == "releases are lost" {
		work = slices.DeleteFunc(work, func(w Work) bool { return w.Kind == WorkRelease })
	}
	return work
}

func (f *crooked) Start(now time.Time) {
	f.locked(func() {
		byAge := f.sortedPods()
		for _, p := range byAge {
			switch {
			case p.Claim == nil:
			case f.bug == "claims are lost":
				p.Claim = nil
			case f.bug == "claims grow":
				grown := *p.Claim
				i := slices.IndexFunc(byAge, func(v *pod) bool { return v.Node == grown.Node && !slices.Contains(grown.Victims, v.UID) })
				if i >= 0 {
					grown.Victims = append(slices.Clone(grown.Victims), byAge[i].UID)
					p.Claim = &grown
				}
			}
		}
	})
	f.Store.Start(now)
}

func (f *crooked) SetStandby(standby bool, now time.Time) {
	if f.bug != "a standby is deaf" || standby {
		f.Store.SetStandby(standby, now)
		return
	}
	f.locked(func() {
		for _, p := range f.sortedPods() {
			f.endHold(p, reservations.Superseded, reasons.Reason{}, now)
		}
		f.standby = false
		f.show()
	})
}

func (f *crooked) Tick(now time.Time) {
	if f.bug == "nobody asks again" {
		f.locked(func() {
			for _, p := range f.pods {
				p.asks.retryAt = now.Add(time.Hour)
			}
		})
	}
	if f.bug == "changes of nodes are not noticed" {
		f.locked(func() {
			for _, n := range f.nodes {
				for _, p := range n.askers {
					p.asks.sawNode = n.generation
					if p.state == cooling && !p.asks.holds {
						f.setDeadline(p, now.Add(time.Hour))
					}
				}
			}
		})
	}
	f.Store.Tick(now)
}

func (f *crooked) Upsert(event Pod, now time.Time) {
	if f.bug == "foreign pods are forgotten" && event.Foreign {
		return
	}
	f.Store.Upsert(event, now)
}

func (f *crooked) SetNodeSchedulable(name string, schedulable bool, now time.Time) {
	if f.bug != "cordons are lost" {
		f.Store.SetNodeSchedulable(name, schedulable, now)
	}
}

// careless tells whether the scheduler looks at holds.
func (c *cluster) careless() bool {
	f, ok := c.live.(*crooked)
	return ok && f.bug == "held nodes are used"
}

func TestClusterPropertyFindsPlantedBugs(t *testing.T) {
	for _, bug := range crookedBugs {
		t.Run(bug, func(t *testing.T) {
			for n := range 2000 {
				seed := n
				if strings.Contains(bug, "DaemonSet") {
					seed = 2*n + 1 // there are none in the others
				}
				if err := newStrife(seed).run(func(s *Store) live { return &crooked{s, bug} }); err != nil {
					t.Logf("seed %d: %.300v", seed, err)
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}
