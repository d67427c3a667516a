package store

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// owing is what happens to a store between two looks at its books.
type owing struct {
	steps []owingStep
	// pay has everybody charged after each step, as if nobody were ever owed.
	pay bool
	// plant is done to the store after each step; nil for nothing.
	plant func(*Store)
}

type owingStep struct {
	kind, pod, variant int
}

var owingSteps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) owingStep {
	return owingStep{rapid.IntRange(0, 15).Draw(t, "kind"), rapid.IntRange(0, 11).Draw(t, "pod"), rapid.IntRange(0, 3).Draw(t, "variant")}
}), 0, 60)

// owingPod is a pod of one of three queues.
func owingPod(i, variant int) Pod {
	return Pod{
		UID: types.UID(fmt.Sprint("pod-", i)), Namespace: "ns", Name: fmt.Sprint("pod-", i), Created: epoch.Add(time.Duration(i)),
		Labels: map[string]string{
			placement.KeyQueue: []string{"root.a", "root.a", "root.b.x", "root.b.y"}[variant], placement.KeyApplicationID: fmt.Sprint("app-", i%3),
		},
		Request: queuestest.Vector(fmt.Sprintf("vcore=%d pods=1", 1+i%2)),
	}
}

// run does the steps, and returns all that the scheduler was told, and the verdicts
// that were given without the books though those say no.
func (o owing) run(specs []*config.Spec) (told []string, s *Store, wrong error) {
	s = New(specs[0], Options{Window: 4, MaxWindow: 8, InitialBackoff: -1, MaxBackoff: -1})
	s.Start(epoch)
	for i, step := range o.steps {
		now := epoch.Add(time.Duration(i) * time.Second)
		p := owingPod(step.pod, step.variant)
		say := func(what string, answer any) {
			told = append(told, fmt.Sprintf("%d %s %s: %v", i, what, p.UID, answer))
		}
		switch step.kind {
		case 0, 1, 2, 3, 4:
			s.Upsert(p, now)
		case 5, 6, 7, 8, 9:
			if s.MayRun(p.UID) {
				say("judge", "")
			} else if _, v, ok := s.Judge(p.UID); ok {
				say("judge", v.Reason.Text)
			} else {
				continue
			}
			say("assume", s.Assume(p.UID, "n1", now).Reason.Text)
			say("recheck", s.Recheck(p.UID).Reason.Text)
		case 10:
			s.Forget(p.UID, now)
		case 11:
			s.Failed(p.UID, "", reasons.New(reasons.BackingOff, "no node"), now)
		case 12:
			p.Node = "n1"
			s.Upsert(p, now)
		case 13:
			s.Delete(p.UID, now)
		case 14:
			say("activations", s.TakeActivations())
		case 15:
			s.Configure(specs[step.variant%2], now)
		}
		if o.plant != nil {
			o.plant(s)
		}
		if wrong == nil {
			wrong = s.doubt()
		}
		if o.pay {
			s.NextDeadline()
		}
	}
	return told, s, wrong
}

// doubt looks at the books for each pod that is granted without, as they are once all
// are charged that are to be, without charging anybody.
func (s *Store) doubt() error {
	s.lockOwing()
	defer s.mu.Unlock()
	for _, p := range s.sortedPods() {
		if !s.isClear(p) {
			continue
		}
		for q := range s.draft.Ancestors(p.app.leaf) {
			if used := q.Committed().Sub(p.Request); !q.IsRoot() && !q.Max.Allows(used, p.Request) {
				return fmt.Errorf("pod %s is granted, and queue %s has %v committed beside it", p.UID, q.Path, used)
			}
		}
	}
	return nil
}

// law: who is charged later is charged as he would have been, and nobody is told
// anything else meanwhile.
func (o owing) law(specs []*config.Spec) error {
	told, later, wrong := o.run(specs)
	toldAtOnce, atOnce, _ := owing{steps: o.steps, pay: true}.run(specs)
	switch err := later.Check(); {
	case wrong != nil:
		return wrong
	case err != nil:
		return err
	case !slices.Equal(told, toldAtOnce):
		return fmt.Errorf("the scheduler is told\n%s\nand if all are charged at once\n%s", strings.Join(told, "\n"), strings.Join(toldAtOnce, "\n"))
	}
	for q := range atOnce.Snapshot().All() {
		if same := later.Snapshot().Queue(q.ID); !sameUsage(same.Usage, q.Usage) {
			return fmt.Errorf("queue %s has %+v, and if all are charged at once %+v", q.Path, same.Usage, q.Usage)
		}
	}
	return nil
}

func owingSpecs(t *testing.T) []*config.Spec {
	return []*config.Spec{
		specification(t, "root limit=*;max.vcore=9\n  a max.vcore=4\n  b max.pods=3\n    x max.vcore=3\n    y maxapps=1"),
		specification(t, "root\n  a max.vcore=2\n  b max.pods=6\n    x\n    y"),
	}
}

func TestOwedProperty(t *testing.T) {
	specs := owingSpecs(t)
	rapid.Check(t, func(t *rapid.T) {
		if err := (owing{steps: owingSteps.Draw(t, "steps")}).law(specs); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLawOfOwedFindsPlantedBugs(t *testing.T) {
	specs := owingSpecs(t)
	for name, plant := range map[string]func(*Store){
		"growth without a verdict does not count": func(s *Store) { s.unjudged = 0 },
		"pods are cleared by nobody": func(s *Store) {
			for _, p := range s.pods {
				p.cleared = s.clearance()
			}
		},
		"somebody owed is forgotten": func(s *Store) { s.owed = s.owed[:max(len(s.owed)-1, 0)] },
		"somebody is charged elsewhere": func(s *Store) {
			for i := range s.owed {
				s.owed[i].p.held = queuestest.Vector("vcore=5")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range 3000 {
				if (owing{steps: owingSteps.Example(seed), plant: plant}).law(specs) != nil {
					return
				}
			}
			t.Error("nobody noticed")
		})
	}
}

// What the scheduler hears of a pod that is not charged yet, and who charges it.
func TestWhoIsOwed(t *testing.T) {
	s, p := judged(t)
	if !s.MayRun(p.UID) || s.MayRun("stranger") {
		t.Error("who was let through may run, and nobody else")
	}
	select {
	case <-s.Wake(): // for those that were let through
	default:
	}
	if v := s.Assume(p.UID, "n1", epoch); !v.OK() || !p.owes || p.state != admitted {
		t.Fatalf("%v, owed: %t, %s", v.Reason, p.owes, p.state)
	}
	if v := s.Recheck(p.UID); !v.OK() || !p.owes {
		t.Errorf("%v, owed: %t", v.Reason, p.owes)
	}
	if s.MayRun(p.UID) {
		t.Error("who has a node may run once more")
	}
	select {
	case <-s.Wake():
	default:
		t.Error("nobody is woken to charge it")
	}
	s.TakeActivations()
	if p.owes || p.state != assumed || p.Node != "n1" {
		t.Errorf("owed: %t, %s on %q", p.owes, p.state, p.Node)
	}
	if used := s.Snapshot().Root().Allocated; !used.Equal(p.Request) {
		t.Errorf("root has %v", used)
	}
}

// Whoever takes the lock sees the books as they are, unless he says otherwise.
func TestTheLockIsTakenByItsFunctions(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	taken := regexp.MustCompile(`\bs\.mu\.(Try)?Lock\(`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if file == "owed.go" {
			want = 1
		}
		if found := len(taken.FindAll(text, -1)); found != want {
			t.Errorf("%s: takes the lock in %d places, want %d: use lock or lockOwing", file, found, want)
		}
	}
}
