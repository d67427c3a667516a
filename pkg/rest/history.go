package rest

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

const (
	// sampleInterval is how often what there is is counted.
	sampleInterval = time.Minute
	// specInterval is how often it is asked whether there is another configuration.
	specInterval = time.Second
	// samplesKept is how many counts are remembered: a day.
	samplesKept = 24 * 60
)

// sample is how much there was at a time.
type sample struct {
	at               time.Time
	apps, containers int64
}

// history is the last samples, a ring.
type history struct {
	mu      sync.Mutex // guards the rest
	samples []sample
	next    int
}

// count adds a sample: the applications that have pods, and the pods of queues
// that have a node.
func (h *history) count(s *queues.Snapshot, now time.Time) {
	root := s.Root()
	h.add(sample{at: now, apps: int64(root.Applications), containers: int64(root.Allocated.Get(resources.Pods))})
}

func (h *history) add(s sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.samples) < samplesKept {
		h.samples = append(h.samples, s)
		return
	}
	h.samples[h.next] = s
	h.next = (h.next + 1) % samplesKept
}

// all returns the samples, the oldest first.
func (h *history) all() []sample {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append(append(make([]sample, 0, len(h.samples)), h.samples[h.next:]...), h.samples[:h.next]...)
}

// AppSample and ContainerSample are samples as YuniKorn's interface shows them:
// the number is a text.
type AppSample struct {
	Timestamp         int64  `json:"timestamp"`
	TotalApplications string `json:"totalApplications"`
}

// ContainerSample counts the pods of queues that had a node.
type ContainerSample struct {
	Timestamp       int64  `json:"timestamp"`
	TotalContainers string `json:"totalContainers"`
}

func (h *history) appSamples() []AppSample {
	out := []AppSample{}
	for _, s := range h.all() {
		out = append(out, AppSample{Timestamp: s.at.UnixNano(), TotalApplications: strconv.FormatInt(s.apps, 10)})
	}
	return out
}

func (h *history) containerSamples() []ContainerSample {
	out := []ContainerSample{}
	for _, s := range h.all() {
		out = append(out, ContainerSample{Timestamp: s.at.UnixNano(), TotalContainers: strconv.FormatInt(s.containers, 10)})
	}
	return out
}

// appHistory answers GET history/apps.
func (s *Server) appHistory(w http.ResponseWriter, _ *http.Request) {
	answer(w, s.history.appSamples())
}

// containerHistory answers GET history/containers.
func (s *Server) containerHistory(w http.ResponseWriter, _ *http.Request) {
	answer(w, s.history.containerSamples())
}
