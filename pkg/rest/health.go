package rest

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/web"
)

// The checks are run once in checkInterval or, where they take long, once in checkRest
// times as long as they took: they look at everything, which keeps a core busy. The pause
// between two is at most checkPause, because what was found may have passed.
const (
	checkInterval = 5 * time.Second
	checkRest     = 200
	checkPause    = time.Minute
)

// Health is the answer of the health check, as YuniKorn's interface has it.
type Health struct {
	Healthy      bool
	HealthChecks []web.CheckResult
}

// HealthCheck is something that can be wrong with the books.
type HealthCheck struct {
	// Name and Description say what is checked.
	Name, Description string
	// Run checks now and returns what is wrong.
	Run func() error
}

// health has what the checks found last. Readers are given that, and its age: none of
// them runs a check, or waits for one, however many there are and however long it takes.
type health struct {
	checks []HealthCheck
	clock  clock.WithTicker
	last   atomic.Pointer[web.Checked] // nil before the first
}

// run runs the checks now, and again and again until the context ends.
func (h *health) run(ctx context.Context) {
	for {
		began := h.clock.Now()
		h.examine()
		took := h.clock.Since(began)
		if !loop.Pause(ctx, h.clock, max(checkInterval-took, min((checkRest-1)*took, checkPause))) {
			return
		}
	}
}

// examine runs the checks, and keeps what they find.
func (h *health) examine() {
	found := &web.Checked{At: h.clock.Now(), Checks: []web.CheckResult{}}
	for _, c := range h.checks {
		done := web.CheckResult{Name: c.Name, Description: c.Description, Succeeded: true}
		if err := c.run(); err != nil {
			done.Succeeded, done.DiagnosisMessage = false, err.Error()
		}
		found.Checks = append(found.Checks, done)
	}
	h.last.Store(found)
}

// run makes an error of a panic: a check that is broken is no reason to stop scheduling.
func (c *HealthCheck) run() (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("the check panicked: %v; please report it", broken)
		}
	}()
	return c.Run()
}

// CheckHealth runs the checks, and keeps what they find for readers. [Server.Serve]
// does so by itself, from its start on.
func (s *Server) CheckHealth() { s.health.examine() }

// healthcheck answers GET scheduler/healthcheck: 404 as YuniKorn does where nothing was
// checked yet, and otherwise how many seconds ago the checks began in the header Age.
func (s *Server) healthcheck(w http.ResponseWriter, _ *http.Request) {
	last := s.health.last.Load()
	if last == nil {
		documents.Refuse(w, http.StatusNotFound, "Health not known yet", "the checks have not come to an end since the scheduler began; ask again in a moment")
		return
	}
	w.Header().Set("Age", strconv.Itoa(int(max(s.options.Clock.Since(last.At), 0)/time.Second)))
	failed := slices.ContainsFunc(last.Checks, func(c web.CheckResult) bool { return !c.Succeeded })
	documents.Answer(w, Health{Healthy: !failed, HealthChecks: last.Checks})
}

// checked is the same for the pages.
func (s *Server) checked() web.Checked {
	return ptr.Deref(s.health.last.Load(), web.Checked{})
}
