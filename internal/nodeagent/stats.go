package nodeagent

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"sync"
)

// Stats is the counters of the agent since it started.
type Stats struct {
	// Nodes is the number of managed nodes.
	Nodes int `json:"nodes"`
	// OvercommittedNodes counts nodes with admitted pods that exceed their allocatable
	// resources. The agent never admits such a pod; this happens only when a node
	// shrinks.
	OvercommittedNodes int `json:"overcommittedNodes"`
	// Rejections counts rejected pods by reason ("OutOfcpu") since the start of the
	// agent.
	Rejections map[string]int64 `json:"rejections"`
	// Errors counts the failed API calls (all are repeated).
	Errors int64 `json:"errors"`
}

// Rejected returns the number of rejected pods over all reasons.
func (s Stats) Rejected() int64 {
	var sum int64
	for _, n := range s.Rejections {
		sum += n
	}
	return sum
}

// counters are the running totals.
type counters struct {
	mu     sync.Mutex
	totals Stats
}

func (c *counters) change(f func(*Stats)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(&c.totals)
}

// Stats returns the present counts.
func (a *Agent) Stats() Stats {
	var s Stats
	a.counters.change(func(totals *Stats) {
		s = *totals
		s.Rejections = maps.Clone(totals.Rejections)
	})
	s.Nodes, s.OvercommittedNodes = a.ledger.counts()
	return s
}

// Handler serves /readyz (200 once the watches are in sync) and /stats (Stats as JSON).
func (a *Agent) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !a.ready.Load() {
			http.Error(w, "watches are not in sync yet", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /stats", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(a.Stats()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}
