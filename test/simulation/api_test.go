package simulation_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/plugins/podgroups"
)

type object interface {
	metav1.Object
	kruntime.Object
}

// apiServer is an API server in memory: a few maps, and the list of all changes to them.
// It outlives every scheduler. Its objects are never changed, only replaced.
type apiServer struct {
	mu    sync.Mutex    // guards all fields; not held during calls
	rv    int64         // of the last event
	kinds []*kind       // all of them
	more  chan struct{} // closed and replaced with every event, and with every change of a stream

	writes int             // events, and forbidden attempts of schedulers
	said   int             // those of them that only say something of a waiting pod
	ran    map[string]bool // the applications of which a pod had a node

	pods, nodes, namespaces, budgets, classes, configs *kind
	groups                                             *kind // PodGroups; nil without the CRD
	sets                                               *kind // DaemonSets; nil where owners are claimed

	lease   lease
	streams []*stream // open watches
	// touched is, for each consumable thing, the last version at which each client
	// changed it. The keys are nodes, queues and pods by name, and the configuration. The
	// nil instance stands for all clients that are not our schedulers.
	touched map[string]map[*instance]int64
	// preempted are the names of the pods that upstream's preemption has announced as
	// victims. It deletes by name, and another pod may have got the name since.
	preempted map[types.NamespacedName]bool
	boundAt   map[types.UID]int64 // the version at which a pod got its node
}

type kind struct {
	resource  schema.GroupResource
	objects   map[types.NamespacedName]object
	events    []happened
	compacted int64           // the version up to which changes are forgotten
	list      kruntime.Object // empty
}

// happened is one change of one object. New is nil after a deletion, old at a creation.
type happened struct {
	rv       int64
	at       time.Time
	old, new object
}

func newAPIServer() *apiServer {
	a := &apiServer{more: make(chan struct{}), touched: map[string]map[*instance]int64{}, preempted: map[types.NamespacedName]bool{}, boundAt: map[types.UID]int64{}, ran: map[string]bool{}}
	a.pods = a.define("", "pods", &corev1.PodList{})
	a.nodes = a.define("", "nodes", &corev1.NodeList{})
	a.namespaces = a.define("", "namespaces", &corev1.NamespaceList{})
	a.configs = a.define("", "configmaps", &corev1.ConfigMapList{})
	a.budgets = a.define("policy", "poddisruptionbudgets", &policyv1.PodDisruptionBudgetList{})
	a.classes = a.define("scheduling.k8s.io", "priorityclasses", &schedulingv1.PriorityClassList{})
	return a
}

// define adds a kind; list is an empty list of it.
func (a *apiServer) define(group, resource string, list kruntime.Object) *kind {
	k := &kind{resource: schema.GroupResource{Group: group, Resource: resource}, objects: map[types.NamespacedName]object{}, list: list}
	a.kinds = append(a.kinds, k)
	return k
}

func nameOf(o object) types.NamespacedName {
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()}
}

// put makes an object the current one of its name. The caller holds the lock, and does
// not change the object afterwards.
func (a *apiServer) put(k *kind, o object) {
	old := k.objects[nameOf(o)]
	a.rv++
	if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" && a.boundAt[pod.UID] == 0 {
		a.boundAt[pod.UID] = a.rv
		a.ran[claimantPod(pod).app] = true
	}
	o.SetResourceVersion(strconv.FormatInt(a.rv, 10))
	k.objects[nameOf(o)] = o
	a.note(k, happened{rv: a.rv, old: old, new: o})
}

// drop removes an object. The caller holds the lock.
func (a *apiServer) drop(k *kind, o object) {
	last := o.DeepCopyObject().(object)
	a.rv++
	last.SetResourceVersion(strconv.FormatInt(a.rv, 10))
	delete(k.objects, nameOf(o))
	if k == a.pods {
		delete(a.boundAt, o.GetUID())
	}
	a.note(k, happened{rv: a.rv, old: last})
}

// stop does what the API server does once a deleted pod uses nothing more: a pod with a
// finalizer has ended, and stays. The caller holds the lock.
func (a *apiServer) stop(pod *corev1.Pod) {
	if len(pod.Finalizers) == 0 {
		a.drop(a.pods, pod)
		return
	}
	if pod.DeletionTimestamp != nil && (ended(pod) || pod.Spec.NodeName == "") {
		return
	}
	a.editPod(pod, func(p *corev1.Pod) {
		if p.DeletionTimestamp == nil {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now().Truncate(time.Second)}, new(int64)
		}
		if p.Spec.NodeName != "" && !ended(p) {
			p.Status.Phase = corev1.PodFailed
		}
	})
}

func (a *apiServer) note(k *kind, h happened) {
	h.at = time.Now()
	k.events = append(k.events, h)
	a.writes++
	a.wake()
}

// wake makes all streams look again.
func (a *apiServer) wake() {
	close(a.more)
	a.more = make(chan struct{})
}

// holding takes a lock: defer holding(&a.mu)() holds it until the end of a function.
func holding(mu *sync.Mutex) (release func()) {
	mu.Lock()
	return mu.Unlock
}

func (a *apiServer) locked(do func()) {
	defer holding(&a.mu)()
	do()
}

// sorted returns objects by name.
func sorted(objects map[types.NamespacedName]object) []object {
	return slices.SortedFunc(maps.Values(objects), func(a, b object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
}

// sees tells whether a selector matches an object. It supports the two selectors that schedulers use.
func sees(fieldSelector string, o object) bool {
	switch fieldSelector {
	case "":
		return true
	case "status.phase!=Failed,status.phase!=Succeeded", "status.phase!=Succeeded,status.phase!=Failed":
		return !ended(o.(*corev1.Pod))
	}
	if name, ok := strings.CutPrefix(fieldSelector, metav1.ObjectNameField+"="); ok {
		return o.GetName() == name
	}
	panic(fmt.Sprintf("this API server does not know the selector %q", fieldSelector))
}

var ended = informer.Ended

// listed returns all objects of a kind that match a selector.
func (a *apiServer) listed(k *kind, namespace, fieldSelector string) (kruntime.Object, error) {
	defer holding(&a.mu)()
	var items []kruntime.Object
	for _, o := range sorted(k.objects) {
		if (namespace == "" || o.GetNamespace() == namespace) && sees(fieldSelector, o) {
			items = append(items, o)
		}
	}
	list := k.list.DeepCopyObject()
	if err := meta.SetList(list, items); err != nil {
		return nil, err
	}
	list.(metav1.ListInterface).SetResourceVersion(strconv.FormatInt(a.rv, 10))
	return list, nil
}

// seen turns a change into the event that a watch with a selector shows. The second value
// is false if the watch shows none.
func (h happened) seen(namespace, fieldSelector string) (watch.Event, bool) {
	o := cmp.Or[object](h.new, h.old)
	if namespace != "" && o.GetNamespace() != namespace {
		return watch.Event{}, false
	}
	before := h.old != nil && sees(fieldSelector, h.old)
	after := h.new != nil && sees(fieldSelector, h.new)
	switch {
	case before && after:
		return watch.Event{Type: watch.Modified, Object: h.new}, true
	case after:
		return watch.Event{Type: watch.Added, Object: h.new}, true
	case before: // one that does not match any more is shown with the current version
		return watch.Event{Type: watch.Deleted, Object: o}, true
	}
	return watch.Event{}, false
}

// pod returns the current version of a pod; nil when it is gone. The caller holds the lock.
func (a *apiServer) pod(name types.NamespacedName) *corev1.Pod {
	p, _ := a.pods.objects[name].(*corev1.Pod)
	return p
}

// node returns the current version of a node; nil when it is gone. The caller holds the lock.
func (a *apiServer) node(name string) *corev1.Node {
	n, _ := a.nodes.objects[types.NamespacedName{Name: name}].(*corev1.Node)
	return n
}

// podOf returns the pod with a UID; nil when it is gone. The caller holds the lock.
func (a *apiServer) podOf(uid types.UID) *corev1.Pod { return podOf(a.pods.objects, uid) }

func podOf(objects map[types.NamespacedName]object, uid types.UID) *corev1.Pod {
	for _, o := range objects {
		if o.GetUID() == uid {
			return o.(*corev1.Pod)
		}
	}
	return nil
}

// objectsOf returns the objects of a kind by name. The caller holds the lock.
func objectsOf[T object](k *kind) []T {
	out := make([]T, 0, len(k.objects))
	for _, o := range sorted(k.objects) {
		out = append(out, o.(T))
	}
	return out
}

func (a *apiServer) allPods() []*corev1.Pod   { return objectsOf[*corev1.Pod](a.pods) }
func (a *apiServer) allNodes() []*corev1.Node { return objectsOf[*corev1.Node](a.nodes) }

func (a *apiServer) allBudgets() []*policyv1.PodDisruptionBudget {
	return objectsOf[*policyv1.PodDisruptionBudget](a.budgets)
}

func versionOf(o object) int64 {
	version, _ := strconv.ParseInt(o.GetResourceVersion(), 10, 64)
	return version
}

// editPod replaces a pod by a changed copy. The caller holds the lock.
func (a *apiServer) editPod(pod *corev1.Pod, change func(p *corev1.Pod)) {
	p := pod.DeepCopy()
	change(p)
	a.put(a.pods, p)
}

// graceOf is the grace period of a pod in seconds.
func graceOf(pod *corev1.Pod) int64 { return ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0) }

// deleteWithin does what a DELETE with a grace period does: a running pod gets that. A second one
// shortens the grace period, which began with the first one.
func (a *apiServer) deleteWithin(pod *corev1.Pod, grace int64) {
	before := pod.DeletionGracePeriodSeconds
	switch {
	case pod.DeletionTimestamp != nil && grace >= *before:
	case pod.DeletionTimestamp != nil:
		end := pod.DeletionTimestamp.Add(time.Duration(grace-*before) * time.Second)
		if now := time.Now().Truncate(time.Second); end.Before(now) {
			end, grace = now, min(grace, 1)
		}
		a.editPod(pod, func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &metav1.Time{Time: end}, &grace
		})
	case pod.Spec.NodeName == "" || ended(pod):
		a.stop(pod)
	default:
		a.editPod(pod, func(p *corev1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Duration(grace) * time.Second).Truncate(time.Second)}
			p.DeletionGracePeriodSeconds = &grace
		})
	}
}

// touch notes that another client used a thing, or changed its capacity.
func (a *apiServer) touch(by *instance, what ...string) {
	for _, w := range what {
		if a.touched[w] == nil {
			a.touched[w] = map[*instance]int64{}
		}
		a.touched[w][by] = a.rv
	}
}

// surprised tells whether other clients touched a thing since a version.
func (a *apiServer) surprised(in *instance, what string, since int64) bool {
	for by, at := range a.touched[what] {
		if by != in && at > since {
			return true
		}
	}
	return false
}

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

func (a *apiServer) watch(of *instance, k *kind, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	defer holding(&a.mu)()
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
	defer a.locked(func() {
		a.streams = slices.DeleteFunc(a.streams, func(o *stream) bool { return o == s })
	})
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
	defer holding(&a.mu)()
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
		defer holding(&l.lease.mu)()
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
