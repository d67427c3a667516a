package rest

import (
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/web"
)

// The result of a health check is given again for at least checkInterval, and for
// checkRest times as long as it took: a check looks at everything, which keeps a
// core busy, and readers may come as often as they like.
const (
	checkInterval = 5 * time.Second
	checkRest     = 200
)

// Health is the answer of the health check, as YuniKorn's interface has it.
type Health struct {
	Healthy      bool          `json:"Healthy"`
	HealthChecks []HealthCheck `json:"HealthChecks"`
}

// HealthCheck is one thing that was checked.
type HealthCheck struct {
	Name             string `json:"Name"`
	Succeeded        bool   `json:"Succeeded"`
	Description      string `json:"Description"`
	DiagnosisMessage string `json:"DiagnosisMessage"`
}

// Check is something that can be wrong with the books.
type Check struct {
	// Name and Description say what is checked.
	Name, Description string
	// Run checks now; the error says what is wrong.
	Run func() error
}

// health runs the checks when they are asked for, at most once in checkInterval.
type health struct {
	checks []Check
	clock  clock.PassiveClock

	mu   sync.Mutex // guards the last result, and lets one check run at a time
	last Health
	next time.Time // when the checks may be run again
}

func (h *health) result() Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	began := h.clock.Now()
	if began.Before(h.next) {
		return h.last
	}
	h.last = Health{Healthy: true, HealthChecks: make([]HealthCheck, 0, len(h.checks))}
	for _, c := range h.checks {
		done := HealthCheck{Name: c.Name, Description: c.Description, Succeeded: true}
		if err := c.Run(); err != nil {
			done.Succeeded, done.DiagnosisMessage, h.last.Healthy = false, err.Error(), false
		}
		h.last.HealthChecks = append(h.last.HealthChecks, done)
	}
	took := h.clock.Since(began)
	h.next = began.Add(max(checkInterval, checkRest*took))
	return h.last
}

func (s *Server) healthcheck(w http.ResponseWriter, _ *http.Request) {
	answer(w, s.health.result())
}

// checked is the same for the pages.
func (s *Server) checked() []web.Check {
	var out []web.Check
	for _, c := range s.health.result().HealthChecks {
		out = append(out, web.Check{Name: c.Name, Description: c.Description, Wrong: c.DiagnosisMessage})
	}
	return out
}
