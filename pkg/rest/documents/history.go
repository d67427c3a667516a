package documents

import (
	"strconv"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

const (
	// SampleInterval is the time between two samples of the history.
	SampleInterval = time.Minute
	// samplesKept is how many counts are remembered: a day.
	samplesKept = 24 * 60
)

// sample is how much there was at a time.
type sample struct {
	at               time.Time
	apps, containers int64
}

// History is the last samples, the oldest first.
type History struct {
	mu      locks.Mutex // guards the rest
	samples []sample
}

// Count adds a sample: the applications that have pods, and the pods of queues
// that have a node.
func (h *History) Count(s *queues.Snapshot, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	root := s.Root()
	h.samples = append(h.samples, sample{at: now, apps: int64(root.Applications), containers: int64(root.Allocated.Get(resources.Pods))})
	h.samples = h.samples[max(0, len(h.samples)-samplesKept):]
}

// AppSamples returns the numbers of applications, the oldest first.
func (h *History) AppSamples() []map[string]any {
	return h.numbers("totalApplications", func(s sample) int64 { return s.apps })
}

// ContainerSamples returns the numbers of pods of queues that had a node, the oldest first.
func (h *History) ContainerSamples() []map[string]any {
	return h.numbers("totalContainers", func(s sample) int64 { return s.containers })
}

// numbers returns one number of each sample as YuniKorn's interface shows it: as a text.
func (h *History) numbers(name string, of func(sample) int64) []map[string]any {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []map[string]any{}
	for _, s := range h.samples {
		out = append(out, map[string]any{"timestamp": s.at.UnixNano(), name: strconv.FormatInt(of(s), 10)})
	}
	return out
}
