package store

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// lawless is a store that commits whatever was decided, and hands in the case all
// the same.
type lawless struct {
	*Store
	*verdicts
}

// verdicts compares what who judges first would have said with what who judges
// again says.
type verdicts struct {
	lawful, unlawful int
	laws             map[string]int
	wrong            []string
}

func (f *lawless) Commit(asker types.UID, inPermit []types.UID, now time.Time) ([]Victim, reasons.Reason) {
	f.mu.Lock()
	defer f.unlock(now)
	f.setInPermit(nil, inPermit)
	p := f.pods[asker]
	h, ok := f.holds.Of(asker)
	if p == nil || !ok || p.state.allocated() {
		return nil, reasons.New(reasons.HoldGivenUp, "the hold has ended")
	}
	left := f.left(&h)
	step := Step{Kind: StepCommitted}
	var err error
	if h.Required {
		d, why := f.rejudgeRequired(p, left, now)
		f.holds.Commit(asker)
		err, step.Case = why, f.requiredCase(p, left, d, now)
	} else {
		err = f.rejudge(p, &h, left)
		f.holds.Commit(asker)
		step.Case = f.queueCase(p, &h, left)
	}
	f.verdicts.compare(&step, err)
	for _, v := range left {
		step.Going = append(step.Going, Victim{Ref: v.Ref()})
	}
	return step.Going, reasons.Reason{}
}

func (v *verdicts) compare(s *Step, err error) {
	switch {
	case s.Case == nil:
		return
	case err != nil && strings.Contains(err.Error(), "need not go"):
		return // whether somebody is needed is not judged again
	}
	found := s.Case.Judge()
	for _, violation := range found {
		v.laws[violation.Law]++
	}
	switch {
	case err == nil && len(found) == 0:
		v.lawful++
	case err != nil && len(found) > 0:
		v.unlawful++
	default:
		v.wrong = append(v.wrong, fmt.Sprintf("%v, again %v", orNothing(err), found))
	}
}

// Whoever judges again comes to what was to be found at first, though from the
// other side: he takes back what was decided. And where nobody judges at first, he
// finds what is against the laws.
func TestRetrialsAgree(t *testing.T) {
	v := &verdicts{laws: map[string]int{}}
	for seed := range 200 {
		_ = newStrife(seed).run(func(s *Store) live { return &lawless{s, v} }) // it goes wrong, as it must
	}
	for _, w := range v.wrong {
		t.Errorf("they differ: %s", w)
	}
	t.Logf("%d lawful, %d not: %v", v.lawful, v.unlawful, v.laws)
	if v.lawful < 100 || v.unlawful < 8 || len(v.laws) < 5 {
		t.Error("too little was tried")
	}
}
