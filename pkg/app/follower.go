package app

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/web"
)

// follower applies configurations to the store and reports the result: a log line, a
// metric, and an event on the ConfigMap.
type follower struct {
	store     *store.Store
	process   *Process
	announcer *announcer
	logger    klog.Logger
	loaded    chan struct{} // closed with the first valid configuration

	// mu guards the rest, Store.SetNotReady, and closing loaded. It is taken before the lock of the store.
	mu         locks.Mutex
	read       bool              // a configuration was read, valid or not
	unreadable map[string]string // name of a ConfigMap -> why it could not be read
	about      *corev1.ConfigMap // what the last event is about; nil for none
	known      web.Configuration // what the pages show
}

func newFollower(s *store.Store, a *announcer, p *Process, logger klog.Logger) *follower {
	return &follower{
		store: s, process: p, announcer: a, logger: logger,
		loaded: make(chan struct{}), unreadable: map[string]string{},
	}
}

// Loaded puts a valid configuration into force.
func (f *follower) Loaded(spec *config.Spec, source string) {
	f.complain(nil, reasons.Reason{})
	old, first := f.store.Spec(), !f.inForce()
	changed := first || old.Checksum != spec.Checksum || old.ClusterID != spec.ClusterID
	f.corrected(source, changed)
	metrics.ConfigLoaded(f.process.Clock.Now())
	if !changed {
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
		f.mu.Lock()
		defer f.mu.Unlock()
		f.store.SetNotReady(reasons.Reason{})
		close(f.loaded)
	}
}

// Failed keeps the previous configuration and reports the error.
func (f *follower) Failed(err error, source string, about *corev1.ConfigMap) {
	metrics.ConfigFailed()
	kept := "the configuration before stays in force"
	f.mu.Lock()
	f.setFailure(err, source)
	if !f.inForce() {
		kept = "no pod of a queue is scheduled before there is a valid one"
		f.read = true
		f.store.SetNotReady(reasons.New(reasons.ConfigurationInvalid, "%s cannot be used: %s", source, reasons.Note(err.Error())))
	}
	f.mu.Unlock()
	f.logger.Error(err, "The queue configuration cannot be used; "+kept, "source", source)
	f.complain(about, reasons.New(reasons.ConfigurationInvalid, "%s: %v", kept, err))
}

// Unreadable sets the reason of pods that wait for the first configuration.
func (f *follower) Unreadable(err error, namespace, configMap string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read || f.inForce() {
		return
	}
	f.setFailure(err, "the ConfigMaps in namespace "+namespace)
	// The ConfigMaps fail alternately; the reason must include both to stay the same.
	f.unreadable[configMap] = err.Error()
	var why []string
	for _, name := range slices.Sorted(maps.Keys(f.unreadable)) {
		why = append(why, f.unreadable[name])
	}
	f.store.SetNotReady(reasons.New(reasons.ConfigurationUnreadable, "the ConfigMaps in namespace %s cannot be read: %s",
		namespace, reasons.Note(strings.Join(why, "; "))))
}

// configuration returns the state of the configurations that were read.
func (f *follower) configuration() web.Configuration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known
}

// check returns what the health check reports about the configuration.
func (f *follower) check() rest.HealthCheck {
	return rest.HealthCheck{
		Name: "Configuration", Description: "the queue configuration that was read last is in force",
		Run: func() error {
			if failed := f.configuration().Failure; failed != nil && failed.Corrected.IsZero() {
				return fmt.Errorf("%s cannot be used: %w", failed.Source, failed.Err)
			}
			return nil
		},
	}
}

// corrected records that a valid configuration was read, which may equal the previous one.
func (f *follower) corrected(source string, changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.process.Clock.Now()
	if f.known.Failure != nil && f.known.Failure.Corrected.IsZero() {
		failure := *f.known.Failure
		failure.Corrected = now
		f.known.Failure = &failure
	}
	f.known.Source = source // another ConfigMap may have the same
	if changed {
		f.known.Since = now
	}
}

// setFailure records that a configuration could not be used. The caller holds f.mu.
func (f *follower) setFailure(err error, source string) {
	f.known.Failure = &web.Failure{At: f.process.Clock.Now(), Source: source, Err: err}
}

// inForce reports whether there was a valid configuration since the start.
func (f *follower) inForce() bool {
	select {
	case <-f.loaded:
		return true
	default:
		return false
	}
}

// complain queues an event about the ConfigMap and drops the event about another one.
// Nil stands for a file, or for no complaint.
func (f *follower) complain(about *corev1.ConfigMap, why reasons.Reason) {
	f.mu.Lock()
	before := f.about
	f.about = about
	f.mu.Unlock()
	if before != nil && (about == nil || about.UID != before.UID) {
		f.announcer.drop(before)
	}
	if about != nil {
		f.announcer.say(about, why, "Reload")
	}
}
