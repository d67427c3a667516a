package simulation_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/informer"
)

// object is any API object.
type object interface {
	metav1.Object
	runtime.Object
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

// kind is the objects of one kind.
type kind struct {
	resource  schema.GroupResource
	objects   map[types.NamespacedName]object
	events    []happened
	compacted int64          // the version up to which changes are forgotten
	list      runtime.Object // empty
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
func (a *apiServer) define(group, resource string, list runtime.Object) *kind {
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

func (a *apiServer) locked(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
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
func (a *apiServer) listed(k *kind, namespace, fieldSelector string) (runtime.Object, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var items []runtime.Object
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
	o := h.new
	if o == nil {
		o = h.old
	}
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
	case before && h.new == nil:
		return watch.Event{Type: watch.Deleted, Object: h.old}, true
	case before: // it does not match any more; it is shown with the current version
		return watch.Event{Type: watch.Deleted, Object: h.new}, true
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
func graceOf(pod *corev1.Pod) int64 {
	return ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0)
}

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
