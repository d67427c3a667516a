package rest

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/eventlog"
	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/web"
)

// Options are what a server is told once.
type Options struct {
	// Inventory is what there is to show.
	Inventory *inventory.Inventory
	// Record is what was decided.
	Record *record.Record
	// Events is what happened.
	Events *eventlog.Log
	// Checks are run from time to time while it serves; readers are told the last result.
	Checks []HealthCheck
	// Explainer says what is known of one pod.
	Explainer *store.Readers
	// Previewer returns what makes previews; it returns nil for no previews.
	Previewer func() Previewer
	// Leading tells whether this replica is the one that acts.
	Leading func() bool
	// TLS has a certificate; nil for plain HTTP.
	TLS *tls.Config
	// Guard decides which users may read; nil for all.
	Guard Guard
	// Hosts are the names under which clients may ask, beside IP addresses and localhost.
	Hosts []string
	// Clock tells the time.
	Clock clock.WithTicker
	// Configuration says for the pages what became of the configuration.
	Configuration func() web.Configuration
	// NodeLabels returns the labels of a node, which are not changed.
	NodeLabels func(name string) map[string]string
	// Taint returns the taint by which other schedulers are kept off a held node, or
	// nothing.
	Taint func(node string) string
	// Build says what was built, by YuniKorn's names (see [documents.BuildInformation]).
	Build map[string]string
}

// Server answers requests from views.
type Server struct {
	options Options
	// One preview is made at a time, and one document is validated.
	previews    *semaphore.Weighted
	validations *semaphore.Weighted
	drafts      atomic.Int32 // documents to validate that are in memory
	health      health
	history     documents.History
	documents   documents.ConfigDocuments
	started     time.Time
	limits      limits
	inFlight    inFlight
	cache       *pageCache
	hosts       hosts
	streams     streams
	instance    string
	pages       *web.Pages
}

// NewServer makes a server.
func NewServer(o Options) *Server {
	s := &Server{
		options: o, previews: semaphore.NewWeighted(1), validations: semaphore.NewWeighted(1),
		health: health{checks: o.Checks, clock: o.Clock}, started: o.Clock.Now(),
		limits: defaultLimits(), cache: newPageCache(o.Clock), hosts: newHosts(o.Hosts), instance: string(uuid.NewUUID()),
		inFlight: inFlight{semaphore.NewWeighted(int64(max(1, runtime.GOMAXPROCS(0)/4)))},
	}
	s.pages = web.New(web.Options{
		Inventory: o.Inventory, Record: o.Record, Clock: o.Clock, StandsBy: s.standsBy,
		Configuration: o.Configuration, Taint: o.Taint, Health: s.checked, Version: o.Build["buildVersion"],
	})
	return s
}

// Handler answers the requests. Streams are never finished, so only the making
// of their lines counts, and they are not compressed.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	serve(mux, http.MethodGet, streamPath, s.marked(http.HandlerFunc(s.eventStream)))
	mux.Handle("/", s.cache.wrap(s.inFlight.wrap(compressed(s.marked(s.mux())))))
	return guarded(answering(mux), s.options.Guard)
}

// mux routes the requests.
func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	for _, e := range s.endpoints() {
		serve(mux, e.method, e.path, e.handler)
	}
	for path, handler := range s.pages.Handlers() {
		mux.HandleFunc(path, handler)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		documents.Refuse(w, http.StatusNotFound, "Page not found", "there is no page "+r.URL.Path)
	})
	return mux
}

// serve serves a page for one method; GET is HEAD, too. OPTIONS says which, to
// pages of other origins.
func serve(mux *http.ServeMux, method, page string, handler http.HandlerFunc) {
	allowed := method
	if method == http.MethodGet {
		allowed = "GET, HEAD"
	}
	mux.HandleFunc(method+" "+page, handler)
	mux.HandleFunc(page, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allowed)
		if r.Method == http.MethodOptions {
			documents.SetHeader(w)
			w.Header().Set("Access-Control-Allow-Methods", allowed+", OPTIONS")
			w.Header().Set("Access-Control-Allow-Headers", "Accept, Authorization, Content-Type, Origin, X-Requested-With")
			w.WriteHeader(http.StatusNoContent)
			return
		}
		documents.Refuse(w, http.StatusMethodNotAllowed, "Method not allowed",
			r.Method+" does nothing here; use "+method)
	})
}

// Serve answers requests on the listener until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener, logger klog.Logger) {
	server := s.limits.server(s.hosts.wrap(s.Handler()))
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go s.health.run(ctx)
	go loop.Every(ctx, s.options.Clock, documents.SampleInterval, s.sample)
	go s.options.Events.Run(ctx, s.options.Clock, logger)
	address := listener.Addr().String()
	logger.Info("REST is served", "address", address,
		"tls", s.options.TLS != nil, "guarded", s.options.Guard != nil)
	listener = bounded(listener, s.limits)
	if s.options.TLS != nil {
		listener = tls.NewListener(listener, s.options.TLS)
	}
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		logger.Error(err, "REST has stopped; scheduling goes on. Restart the scheduler to get REST back", "address", address)
	}
}

// sample counts for the history.
func (s *Server) sample() {
	s.history.Count(s.options.Inventory.View().Queues, s.options.Clock.Now())
}

// ofPartition refuses requests for a partition that is not there.
func ofPartition(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if name := r.PathValue("partition"); name != documents.Partition {
			documents.Refuse(w, http.StatusNotFound, "Partition not found", "there is no partition "+name+"; the only one is "+documents.Partition)
			return
		}
		handler(w, r)
	}
}

// findQueue returns the queue that the request names. If it returns false, it has already
// written the error.
func findQueue(w http.ResponseWriter, r *http.Request, v *inventory.View) (*queues.Queue, bool) {
	q, ok := named(r, "queue", func(path string) (*queues.Queue, bool) { return v.Queues.Find(strings.ToLower(path)) })
	if !ok {
		documents.Refuse(w, http.StatusNotFound, "Queue not found", "there is no queue "+strings.ToLower(r.PathValue("queue")))
	}
	return q, ok
}

// named finds what a part of the path names. Where nothing has the name as it came, the
// name is decoded once more: YuniKorn's clients encode names twice.
func named[T any](r *http.Request, part string, find func(string) (T, bool)) (T, bool) {
	name := r.PathValue(part)
	found, ok := find(name)
	if ok {
		return found, true
	}
	if decoded, err := url.PathUnescape(name); err == nil && decoded != name {
		return find(decoded)
	}
	return found, false
}

// queueTree writes all queues.
func queueTree(p *documents.JSONWriter, v *inventory.View) { p.QueueTree(v, queues.RootID, true) }

// queue answers GET partition/{partition}/queue/{queue}: without the queues
// below it, unless there is a parameter subtree.
func (s *Server) queue(w http.ResponseWriter, r *http.Request) {
	v := s.options.Inventory.View()
	if q, ok := findQueue(w, r, v); ok {
		_, subtree := r.URL.Query()["subtree"]
		documents.Write(w, func(p *documents.JSONWriter) { p.QueueTree(v, q.ID, subtree) })
	}
}
