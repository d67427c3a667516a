package process

import (
	"context"
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

// hangs is a store that does not answer the executor.
type hangs struct {
	*store.Store
	called chan<- struct{}
	answer <-chan struct{}
}

func (h hangs) TakeWork() []store.Work {
	h.called <- struct{}{}
	<-h.answer
	return nil
}

// TestTheEndDoesNotWaitForACallThatHangs: the lease is released after the drain.
func TestTheEndDoesNotWaitForACallThatHangs(t *testing.T) {
	before := witness
	called, answer := make(chan struct{}, 1), make(chan struct{})
	SetWitness(func(s *store.Store) Witness { return hangs{s, called, answer} })
	t.Cleanup(func() { SetWitness(before) })
	h := plugintest.New(t, plugintest.Queues(takesBack), nodeOf("n1", "4"))
	t.Cleanup(func() { close(answer) })
	p := configured(t, h, plugintest.Args())
	h.Start(t)
	waitStarted(t, p)
	<-called
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		Drain(ctx)
	}()
	select {
	case <-drained:
	case <-time.After(10 * time.Second):
		t.Error("the drain goes on after its time is over")
	}
}
