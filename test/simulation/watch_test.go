package simulation_test

import (
	"math"
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// stream is one watch of one scheduler.
type stream struct {
	of                       *instance
	kind                     *kind
	namespace, fieldSelector string
	watcher                  *watch.ProxyWatcher
	out                      chan watch.Event
	next                     int   // index of the next event
	told                     int64 // version up to which all events were sent, or need not be

	// Faults of the stream: late delays all events; again repeats the last event once;
	// cut ends the watch.
	late, again, cut bool
	last             *watch.Event
}

// watch opens a stream from a version.
func (a *apiServer) watch(of *instance, k *kind, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	from := a.rv
	if o.ResourceVersion != "" {
		var err error
		if from, err = strconv.ParseInt(o.ResourceVersion, 10, 64); err != nil {
			return nil, err
		}
	}
	if from < k.compacted {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	s := &stream{of: of, kind: k, namespace: namespace, fieldSelector: o.FieldSelector, out: make(chan watch.Event), told: from}
	for s.next = len(k.events); s.next > 0 && k.events[s.next-1].rv > from; s.next-- {
	}
	s.watcher = watch.NewProxyWatcher(s.out)
	s.late = of.deaf[k]
	a.streams = append(a.streams, s)
	go a.serve(s)
	return s.watcher, nil
}

// serve feeds a stream until it is cut or its listener is gone.
func (a *apiServer) serve(s *stream) {
	defer close(s.out)
	defer a.forget(s)
	for {
		event, ok, more := a.nextOf(s)
		if more == nil {
			return
		}
		if !ok {
			select {
			case <-more:
			case <-s.watcher.StopChan():
				return
			}
			continue
		}
		select {
		case s.out <- event:
		case <-s.watcher.StopChan():
			return
		}
	}
}

// nextOf returns the next event of a stream. Without one it returns a channel to wait
// for; nil when the stream is over.
func (a *apiServer) nextOf(s *stream) (event watch.Event, ok bool, more chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.cut || s.of.dead {
		return event, false, nil
	}
	if s.late {
		return event, false, a.more
	}
	if s.again && s.last != nil {
		s.again = false
		return *s.last, true, a.more
	}
	for s.next < len(s.kind.events) {
		h := s.kind.events[s.next]
		s.next++
		if event, ok := h.seen(s.namespace, s.fieldSelector); ok {
			s.last = &event
			return event, true, a.more
		}
	}
	s.told = a.rv
	return event, false, a.more
}

func (a *apiServer) forget(s *stream) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams = slices.DeleteFunc(a.streams, func(o *stream) bool { return o == s })
}

// knows returns the version up to which a scheduler has seen a kind in all its watches of
// it. It is 0 while one of them is missing, because the time of the gap is unknown. The
// caller holds the lock.
func (a *apiServer) knows(of *instance, k *kind) int64 {
	told, missing := int64(math.MaxInt64), 1
	switch k {
	case a.configs:
		missing = 2 // each ConfigMap has its own watch
	case a.groups:
		missing = groupWatches
	}
	for _, s := range a.streams {
		if s.of == of && s.kind == k {
			told = min(told, s.told)
			missing--
		}
	}
	if missing > 0 {
		return 0
	}
	return told
}

// compact makes watches from an earlier version fail, so that a scheduler that was cut
// off misses the changes meanwhile. The caller holds the lock.
func (a *apiServer) compact(k *kind) { k.compacted = a.rv }
