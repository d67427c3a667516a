package process

import (
	"strings"
	"testing"
	"time"

	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/pkg/audit"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/plugins/internal/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// idle is a store that gives the executor nothing to do.
type idle struct{ *store.Store }

func (idle) TakeWork() []store.Work { return nil }

// TestTheExecutorTellsTheAuditor whom it lets go: one that hears of no decision finds
// that nobody named the pod.
func TestTheExecutorTellsTheAuditor(t *testing.T) {
	before := witness
	SetWitness(func(s *store.Store) Witness { return idle{s} })
	t.Cleanup(func() { SetWitness(before) })
	h := plugintest.New(t, plugintest.Queues(takesBack), nodeOf("n1", "4"))
	p := configured(t, h, plugintest.Args())
	asker := podOf("asker", "root.a")
	h.Create(t, plugintest.On(podOf("v1", "root.b"), "n1"), plugintest.On(podOf("v2", "root.b"), "n1"), asker)
	h.Start(t)
	waitStarted(t, p)
	clock := clocktesting.NewFakeClock(time.Now())
	deaf := &audit.Laws{Clock: clock, Logger: klog.Background()}
	(&Process{Clock: p.Clock, Leader: leader.Always()}).execute(h.Context(), h, p.Store(), deaf, logger(h))
	takeBack(t, p, asker)
	if err := deaf.Check(); err != nil {
		t.Errorf("its decision may still be told, and yet: %v", err)
	}
	clock.Step(time.Minute)
	if err := deaf.Check(); err == nil || !strings.Contains(err.Error(), "1 violations") || !strings.Contains(err.Error(), "law "+audit.LawNamed+": pod ns/v") {
		t.Errorf("the auditor was not told who is let go: %v", err)
	}
}
