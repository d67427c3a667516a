package rest

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"time"

	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Server answers requests from snapshots.
type Server struct {
	snapshot func() *queues.Snapshot
	health   health
}

// NewServer makes a server that asks snapshot for the latest state, and runs the
// checks when somebody asks for the health.
func NewServer(snapshot func() *queues.Snapshot, checks ...Check) *Server {
	return &Server{snapshot: snapshot, health: health{checks: checks}}
}

// Handler routes the requests.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	get(mux, "/ws/v1/partition/{partition}/queues", s.queues)
	get(mux, "/ws/v1/scheduler/healthcheck", s.healthcheck)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusNotFound, "Page not found", "there is no page "+r.URL.Path)
	})
	return mux
}

// get serves a page that can only be read.
func get(mux *http.ServeMux, page string, handler http.HandlerFunc) {
	mux.HandleFunc("GET "+page, handler)
	mux.HandleFunc(page, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", "GET, HEAD")
		problem(w, http.StatusMethodNotAllowed, "Method not allowed", r.Method+" does nothing here; use GET")
	})
}

// Serve answers requests on the listener until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener, logger klog.Logger) {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	logger.Info("REST is served", "address", listener.Addr().String())
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		logger.Error(err, "REST has stopped", "address", listener.Addr().String())
	}
}

func (s *Server) queues(w http.ResponseWriter, r *http.Request) {
	if name := r.PathValue("partition"); name != Partition {
		problem(w, http.StatusNotFound, "Partition not found", "there is no partition "+name+"; the only one is "+Partition)
		return
	}
	answer(w, queueTree(s.snapshot(), queues.RootID))
}

// Problem is the body of an answer that is not what was asked for. Message is
// the same for all problems of a kind; Description is about this one.
type Problem struct {
	StatusCode  int    `json:"status_code"`
	Message     string `json:"message"`
	Description string `json:"description"`
}

func problem(w http.ResponseWriter, status int, message, description string) {
	header(w)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Problem{StatusCode: status, Message: message, Description: description})
}

func answer(w http.ResponseWriter, body any) {
	header(w)
	_ = json.NewEncoder(w).Encode(body) // the reader has gone away
}

func header(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("X-Content-Type-Options", "nosniff")
}
