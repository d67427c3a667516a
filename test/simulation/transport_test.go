package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/paddock-scheduler/paddock/pkg/plugins/podgroups"
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
	if s.cut || s.of.dead.Load() {
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

// knows returns the version up to which a scheduler has seen a kind in all its watches of it. It is 0
// while one of them is missing, because the time of the gap is unknown. The caller holds the lock.
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

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

const leaseName = "paddock-scheduler"

// lease is the object by which schedulers elect a leader.
type lease struct {
	mu      sync.Mutex
	version int
	record  *resourcelock.LeaderElectionRecord
	written time.Time
}

// leaseLock is one scheduler's access to the lease.
type leaseLock struct {
	lease *lease
	in    *instance
	seen  int // version that was last read, 0 for none
}

func (l *leaseLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	var found *resourcelock.LeaderElectionRecord
	version := 0
	err := l.call(ctx, "get", func() error {
		if l.lease.record == nil {
			return apierrors.NewNotFound(leases, leaseName)
		}
		record := *l.lease.record
		found, version = &record, l.lease.version
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	l.seen = version
	raw, err := json.Marshal(found)
	return found, raw, err
}

func (l *leaseLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "create", record)
}

func (l *leaseLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, "update", record)
}

// write writes the lease if it has not changed since it was read. That may take effect although the
// client gets an error or no answer. Then the version that it saw is not the current one.
func (l *leaseLock) write(ctx context.Context, verb string, record resourcelock.LeaderElectionRecord) error {
	version := 0
	err := l.call(ctx, verb, func() error {
		if l.lease.version != l.seen || l.in.sim.bug == bugVacant && record.LeaderTransitions > 0 {
			return apierrors.NewConflict(leases, leaseName, errors.New("another process has written it"))
		}
		l.lease.version++
		l.lease.record, version, l.lease.written = &record, l.lease.version, time.Now()
		return nil
	})
	if err == nil {
		l.seen = version
	}
	return err
}

// call accesses the lease, unless the call fails before.
func (l *leaseLock) call(ctx context.Context, verb string, do func() error) error {
	return l.in.call(ctx, verb, leaseName, func() error {
		if l.in.dead.Load() || l.in.isolated.Load() {
			return errDead
		}
		l.lease.mu.Lock()
		defer l.lease.mu.Unlock()
		return do()
	})
}

func (*leaseLock) RecordEvent(string) {}
func (l *leaseLock) Identity() string { return l.in.name }
func (*leaseLock) Describe() string   { return "lease" }

// Readers of PodGroups make their own clients from an address and a transport. This is
// the transport: it answers within the process, and fails as other calls do.

// groupWatches is how many watches of PodGroups a process has: upstream's plugin, ours
// and the scheduler's queue have one each.
const groupWatches = 3

func (in *instance) restConfig() *rest.Config {
	return &rest.Config{Host: "http://simulated", QPS: -1, Transport: transport{in}}
}

type transport struct{ in *instance }

var podGroupsPath = "/apis/" + v1alpha1.SchemeGroupVersion.String()

// RoundTrip answers the requests of PodGroup clients.
func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	switch {
	case r.Method != http.MethodGet:
		return nil, fmt.Errorf("this API server does not know %s %s", r.Method, r.URL)
	case r.URL.Path == "/api":
		return answer(&metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}})
	case r.URL.Path == "/apis":
		version := metav1.GroupVersionForDiscovery{GroupVersion: v1alpha1.SchemeGroupVersion.String(), Version: v1alpha1.SchemeGroupVersion.Version}
		return answer(&metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{
			{Name: v1alpha1.SchemeGroupVersion.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version},
		}})
	case r.URL.Path == podGroupsPath:
		return answer(&metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: v1alpha1.SchemeGroupVersion.String(),
			APIResources: []metav1.APIResource{{Name: "podgroups", SingularName: "podgroup", Namespaced: true, Kind: "PodGroup", Verbs: metav1.Verbs{"list", "watch"}}},
		})
	case r.URL.Path != podGroupsPath+"/podgroups":
		return refused(apierrors.NewNotFound(t.in.api.groups.resource, r.URL.Path))
	case query.Get("sendInitialEvents") != "":
		return refused(apierrors.NewBadRequest("this API server lists, and watches then"))
	case query.Get("watch") != "":
		return t.watch(r, metav1.ListOptions{ResourceVersion: query.Get("resourceVersion"), FieldSelector: query.Get("fieldSelector")})
	}
	list, err := t.list(r.Context())
	if err != nil {
		return refused(err)
	}
	return answer(t.in.sim.groupWrongly(list))
}

// list lists PodGroups. A dead process gets an answer at once, because upstream's plugin blocks the
// informer of pods until its first list succeeds, and ignores the end of its context.
func (t transport) list(ctx context.Context) (kruntime.Object, error) {
	if t.in.dead.Load() {
		return t.in.api.listed(t.in.api.groups, "", "")
	}
	return reader[*v1alpha1.PodGroupList]{t.in, t.in.api.groups, ""}.List(ctx, metav1.ListOptions{})
}

// watch opens a watch and writes its events as they come.
func (t transport) watch(r *http.Request, o metav1.ListOptions) (*http.Response, error) {
	w, err := reader[*v1alpha1.PodGroupList]{t.in, t.in.api.groups, ""}.Watch(r.Context(), o)
	if err != nil {
		return refused(err)
	}
	body, to := io.Pipe()
	go func() {
		defer w.Stop()
		for {
			select {
			case <-r.Context().Done():
				_ = to.CloseWithError(r.Context().Err())
				return
			case event, ok := <-w.ResultChan():
				if !ok || writeEvent(to, event.Type, t.in.sim.groupWrongly(event.Object)) != nil {
					_ = to.Close()
					return
				}
			}
		}
	}()
	return response(http.StatusOK, body), nil
}

func writeEvent(to io.Writer, kind watch.EventType, o kruntime.Object) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return json.NewEncoder(to).Encode(metav1.WatchEvent{Type: string(kind), Object: kruntime.RawExtension{Raw: raw}})
}

func answer(o any) (*http.Response, error) {
	raw, err := json.Marshal(o)
	return response(http.StatusOK, io.NopCloser(bytes.NewReader(raw))), err
}

// refused turns an error into an answer; an error that is no answer is returned as a network error.
func refused(err error) (*http.Response, error) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil, err
	}
	says := status.Status()
	says.Kind, says.APIVersion = "Status", "v1"
	raw, err := json.Marshal(says)
	return response(int(says.Code), io.NopCloser(bytes.NewReader(raw))), err
}

func response(code int, body io.ReadCloser) *http.Response {
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": []string{kruntime.ContentTypeJSON}}, Body: body, ContentLength: -1,
	}
}

// Upstream's plugin has two caches, each with a goroutine that goes on until the garbage collector ends
// it. The collector is not in the bubble, where time is virtual, and may not touch its channels.

// janitor is the private type of go-cache.
type janitor struct {
	interval time.Duration
	stop     chan bool
}

// janitors removes the finalizers that would end a plugin's janitors; the caller has to end them.
func janitors(plugin *podgroups.Plugin) []*janitor {
	theirs := reflect.ValueOf(plugin).Elem().FieldByName("upstream").Elem()
	manager := theirs.Elem().FieldByName("pgMgr").Elem().Elem()
	var out []*janitor
	for _, field := range []string{"permittedPG", "backedOffPG"} {
		kept := manager.FieldByName(field)
		runtime.SetFinalizer((*byte)(kept.UnsafePointer()), nil) // of the object that begins there
		out = append(out, (*janitor)(kept.Elem().FieldByName("cache").Elem().FieldByName("janitor").UnsafePointer()))
	}
	return out
}
