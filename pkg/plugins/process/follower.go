package process

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/events"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/store"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// follower makes the store follow the configuration and tells about it: log,
// metric, and an event on the ConfigMap.
type follower struct {
	store    *store.Store
	process  *Process
	recorder clientevents.EventRecorder
	logger   klog.Logger
	loaded   chan struct{} // closed with the first valid configuration
	once     sync.Once
}

func newFollower(s *store.Store, h fwk.Handle, p *Process, logger klog.Logger) *follower {
	return &follower{store: s, process: p, recorder: h.EventRecorder(), logger: logger, loaded: make(chan struct{})}
}

// Loaded puts a valid configuration into force.
func (f *follower) Loaded(spec *config.Spec, source string) {
	old := f.store.Spec()
	first := false
	f.once.Do(func() { first = true })
	metrics.ConfigLoaded(f.process.Clock.Now())
	if !first && old.Checksum == spec.Checksum {
		return
	}
	f.store.Configure(spec, f.process.Clock.Now())
	changes := config.Diff(old, spec)
	f.logger.Info("Queue configuration in force", "source", source, "changes", len(changes), "checksum", spec.Checksum)
	for _, c := range changes {
		f.logger.V(2).Info("Queue configuration changed", "change", c.String())
	}
	for _, w := range spec.Warnings {
		f.logger.Info("Queue configuration: accepted with a warning", "warning", w.String())
	}
	if first {
		f.store.Hold(reasons.Reason{})
		close(f.loaded)
	}
}

// Failed keeps the configuration before and says why.
func (f *follower) Failed(err error, source string, about *corev1.ConfigMap) {
	metrics.ConfigFailed()
	kept := "the configuration before stays in force"
	select {
	case <-f.loaded:
	default:
		kept = "no pod of a queue is scheduled before there is a valid one"
		f.store.Hold(reasons.New(reasons.ConfigurationInvalid, "%s cannot be used: %s", source, events.Note(err.Error())))
	}
	f.logger.Error(err, "The queue configuration cannot be used; "+kept, "source", source)
	if about != nil && f.recorder != nil && f.process.Leader.Leading() {
		f.recorder.Eventf(about, nil, corev1.EventTypeWarning, string(reasons.ConfigurationInvalid), "Reload",
			"%s", events.Note(kept+": "+err.Error()))
	}
}
