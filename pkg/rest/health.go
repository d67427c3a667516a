package rest

import (
	"net/http"
	"sync"
	"time"
)

// checkInterval is how long the result of a health check is given again: a check
// looks at everything, and readers may come as often as they like.
const checkInterval = 5 * time.Second

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

	mu   sync.Mutex // guards the last result, and lets one check run at a time
	last Health
	at   time.Time
}

func (h *health) result(now time.Time) Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.at.IsZero() && now.Sub(h.at) < checkInterval {
		return h.last
	}
	h.at = now
	h.last = Health{Healthy: true, HealthChecks: make([]HealthCheck, 0, len(h.checks))}
	for _, c := range h.checks {
		done := HealthCheck{Name: c.Name, Description: c.Description, Succeeded: true}
		if err := c.Run(); err != nil {
			done.Succeeded, done.DiagnosisMessage, h.last.Healthy = false, err.Error(), false
		}
		h.last.HealthChecks = append(h.last.HealthChecks, done)
	}
	return h.last
}

func (s *Server) healthcheck(w http.ResponseWriter, _ *http.Request) {
	answer(w, s.health.result(time.Now()))
}
