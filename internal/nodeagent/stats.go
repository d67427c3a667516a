package nodeagent

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// Stats is the counters of the agent since it started.
type Stats struct {
	// OvercommittedNodes counts nodes with admitted pods that exceed their allocatable
	// resources. The agent never admits such a pod; this happens only when a node
	// shrinks.
	OvercommittedNodes int `json:"overcommittedNodes"`
	// Rejections counts rejected pods by reason ("OutOfcpu") since the start of the
	// agent.
	Rejections map[string]int64 `json:"rejections"`
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
		if err := json.NewEncoder(w).Encode(a.ledger.stats()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}
