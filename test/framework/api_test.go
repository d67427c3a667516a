package framework_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// podAPI is the pods of an API server. It replaces the tracker of client-go's fake clientset for pods
// only, because that tracker cannot bind, and its watches fail after 100 events that were not read.
type podAPI struct {
	mu     sync.Mutex
	pods   map[string]*corev1.Pod // by name; all are of one namespace
	events []watch.Event          // all events so far; resource version i+1 is events[i]
	more   chan struct{}          // closed and replaced with every event

	apart   bool                       // readers share no memory with it: lists are decoded from bytes
	stays   func(pod *corev1.Pod) bool // if set, whether a deleted pod stays for its grace period
	patched func(pod *corev1.Pod)      // if set, gets patched pods before any watcher
}

var podsResource = schema.GroupResource{Resource: "pods"}

// newPodAPI puts a podAPI in front of a clientset.
func newPodAPI(client *fake.Clientset) *podAPI {
	a := &podAPI{pods: map[string]*corev1.Pod{}, more: make(chan struct{})}
	client.PrependReactor("*", "pods", a.react)
	client.PrependWatchReactor("pods", a.watch)
	return a
}

func (a *podAPI) react(action clienttesting.Action) (bool, runtime.Object, error) {
	defer holding(&a.mu)()
	switch action := action.(type) {
	case clienttesting.CreateActionImpl:
		if binding, ok := action.Object.(*corev1.Binding); ok {
			return true, binding, a.bound(binding)
		}
	case clienttesting.PatchActionImpl:
		pod, err := a.patch(action)
		return true, pod, err
	case clienttesting.ListActionImpl:
		return true, a.list(), nil
	case clienttesting.GetActionImpl:
		pod, err := a.get(action.Name)
		return true, pod, err
	case clienttesting.DeleteActionImpl:
		return true, nil, a.end(action.Name)
	}
	return true, nil, fmt.Errorf("the pods of this test do not know %s %T", action.GetVerb(), action)
}

func (a *podAPI) get(name string) (*corev1.Pod, error) {
	if pod, ok := a.pods[name]; ok {
		return pod, nil
	}
	return nil, apierrors.NewNotFound(podsResource, name)
}

func (a *podAPI) list() *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(len(a.events))}}
	for _, pod := range a.pods {
		if a.apart {
			pod = decoded(pod)
		}
		list.Items = append(list.Items, *pod)
	}
	slices.SortFunc(list.Items, func(p, q corev1.Pod) int { // oldest version first, in the order in which the tests made them
		return cmp.Or(len(p.ResourceVersion)-len(q.ResourceVersion), cmp.Compare(p.ResourceVersion, q.ResourceVersion))
	})
	return list
}

// decoded returns a pod as it is after a trip over the network.
func decoded(pod *corev1.Pod) *corev1.Pod {
	data, err := pod.Marshal()
	out := &corev1.Pod{}
	if err := errors.Join(err, out.Unmarshal(data)); err != nil {
		panic(err) // encoding a pod that we made
	}
	return out
}

// put records a new version of a pod, which must not be changed afterwards.
func (a *podAPI) put(pod *corev1.Pod, event watch.EventType) {
	pod.ResourceVersion = strconv.Itoa(len(a.events) + 1)
	if event == watch.Deleted {
		delete(a.pods, pod.Name)
	} else {
		a.pods[pod.Name] = pod
	}
	a.events = append(a.events, watch.Event{Type: event, Object: pod})
	close(a.more)
	a.more = make(chan struct{})
}

func (a *podAPI) bound(b *corev1.Binding) error {
	old, err := a.get(b.Name)
	switch {
	case err != nil:
		return err
	case old.UID != b.UID || old.Spec.NodeName != "":
		return apierrors.NewConflict(podsResource, b.Name, fmt.Errorf("it is another pod, or bound already"))
	}
	pod := old.DeepCopy()
	pod.Spec.NodeName = b.Target.Name
	a.put(pod, watch.Modified)
	return nil
}

func (a *podAPI) patch(action clienttesting.PatchActionImpl) (*corev1.Pod, error) {
	old, err := a.get(action.Name)
	if err != nil {
		return nil, err
	}
	if action.PatchType != types.StrategicMergePatchType {
		return nil, fmt.Errorf("the pods of this test do not know patches of type %s", action.PatchType)
	}
	before, err := json.Marshal(old)
	if err != nil {
		return nil, err
	}
	after, err := strategicpatch.StrategicMergePatch(before, action.Patch, old)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(after, pod); err != nil {
		return nil, err
	}
	if pod.ResourceVersion != old.ResourceVersion || pod.UID != old.UID {
		return nil, apierrors.NewConflict(corev1.Resource("pods"), old.Name, errors.New("the patch is for another version of the pod"))
	}
	if a.patched != nil {
		a.patched(pod)
	}
	a.put(pod, watch.Modified)
	return pod, nil
}

// end begins the deletion of a pod.
func (a *podAPI) end(name string) error {
	old, err := a.get(name)
	if err != nil {
		return err
	}
	if a.stays == nil || !a.stays(old) {
		return a.remove(name)
	}
	if old.DeletionTimestamp == nil {
		pod, long := old.DeepCopy(), int64(3600)
		now := metav1.Now()
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &now, &long
		a.put(pod, watch.Modified)
	}
	return nil
}

func (a *podAPI) remove(name string) error {
	old, err := a.get(name)
	if err != nil {
		return err
	}
	a.put(old.DeepCopy(), watch.Deleted)
	return nil
}

// create adds pods, as a client would.
func (a *podAPI) create(t testing.TB, pods ...*corev1.Pod) {
	t.Helper()
	defer holding(&a.mu)()
	for _, pod := range pods {
		expect.That(t, a.pods[pod.Name] == nil, "pod %s exists already", pod.Name)
		a.put(pod.DeepCopy(), watch.Added)
	}
}

// delete removes pods at once, as with a grace period of 0.
func (a *podAPI) delete(t testing.TB, pods ...*corev1.Pod) {
	t.Helper()
	defer holding(&a.mu)()
	for _, pod := range pods {
		expect.OK(t, a.remove(pod.Name))
	}
}

// pod returns the current version of a pod; nil when it is gone.
func (a *podAPI) pod(name string) *corev1.Pod {
	defer holding(&a.mu)()
	return a.pods[name]
}

// watch serves one watcher from the version that it names.
func (a *podAPI) watch(action clienttesting.Action) (bool, watch.Interface, error) {
	from := 0
	if w, ok := action.(clienttesting.WatchActionImpl); ok && w.ListOptions.ResourceVersion != "" {
		var err error
		if from, err = strconv.Atoi(w.ListOptions.ResourceVersion); err != nil {
			return true, nil, err
		}
	}
	out := make(chan watch.Event, 100)
	w := watch.NewProxyWatcher(out)
	go a.serve(w, out, from)
	return true, w, nil
}

// serve feeds a watcher until it is stopped.
func (a *podAPI) serve(w *watch.ProxyWatcher, out chan<- watch.Event, from int) {
	defer close(out)
	for {
		a.mu.Lock()
		events, more := a.events[from:], a.more
		a.mu.Unlock()
		for _, event := range events {
			select {
			case out <- event:
			case <-w.StopChan():
				return
			}
		}
		from += len(events)
		select {
		case <-more:
		case <-w.StopChan():
			return
		}
	}
}
