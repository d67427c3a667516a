package framework_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/leader"
)

// inBubble runs a test with a clock that advances only when all goroutines wait for it.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	// The scheduler waits on channels of the gate, which have to belong to the bubble.
	defer app.SetLeader(leader.Always())
	synctest.Test(t, func(t *testing.T) {
		app.SetLeader(leader.Always())
		f(t)
	})
}

// end stops the scheduler of a bubble.
func (c *cluster) end() {
	c.stop()
	time.Sleep(2 * time.Second) // upstream's metrics check once a second whether they may end
}
