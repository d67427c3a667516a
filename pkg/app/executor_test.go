package app

import (
	"context"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// hangs is a store that does not answer the executor.
type hangs struct {
	*store.Store
	called chan<- struct{}
	answer <-chan struct{}
}

func (h hangs) TakeWork() []output.Work {
	h.called <- struct{}{}
	<-h.answer
	return nil
}

// TestTheEndDoesNotWaitForACallThatHangs: the lease is released after the drain, although
// a call hangs.
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
