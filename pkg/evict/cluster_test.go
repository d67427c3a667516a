package evict

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clientcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/internal/apianswer"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

var podResource = schema.GroupResource{Resource: "pods"}

// call is one request to the API server.
type call struct {
	verb, pod string
	node      string // instead of the pod
	// uid is the UID that the call requires. grace is the grace period in seconds that a
	// delete sets, nil for none.
	uid   types.UID
	grace *int64
	// of a patch
	condition corev1.PodCondition
	at        time.Time
	err       error // the result
	done      bool  // the call took effect
}

func (c call) String() string {
	s := c.verb + " " + c.pod + c.node
	if c.condition.Type != "" {
		s += fmt.Sprintf(" %s=%s %s", c.condition.Type, c.condition.Status, c.condition.Reason)
	}
	if c.err != nil {
		s += " failed"
	}
	return s
}

// fault is the way in which a call fails. The zero value is no fault.
type fault struct {
	err  error
	late bool // the call takes effect although it fails
	hang bool // there is no answer
}

// cluster is an API server with pods in namespace ns. Their UIDs are "uid-" plus their
// name. It checks UIDs as the real one does. It is a client, a lister that sees every
// change at once, and a recorder of events.
type cluster struct {
	kubernetes.Interface
	tracker *fake.Clientset
	nodes   *nodes
	names   []string // of the initial pods
	// latency is the duration of a call.
	latency time.Duration
	// graceful keeps deleted pods, with a deletion timestamp.
	graceful bool
	// unseen are changes of pods that the lister does not see.
	unseen map[string]*corev1.Pod

	mu sync.Mutex // guards the rest
	// fault returns the fault of the nth call, counted from 1.
	fault    func(n int, c call) fault
	calls    []call
	inFlight int
	most     int // in flight at the same time
	told     []string
}

// newCluster is a cluster with pods.
func newCluster(t *testing.T, names ...string) *cluster {
	c := &cluster{tracker: fake.NewClientset(), unseen: map[string]*corev1.Pod{}, latency: time.Millisecond, names: names}
	c.Interface = c.tracker
	n1 := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid-n1", ResourceVersion: "0"}}
	c.nodes = &nodes{cluster: c, have: n1}
	for _, name := range names {
		expect.OK(t, c.tracker.Tracker().Add(pod(name)))
	}
	return c
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{SchedulerName: "yunikorn", NodeName: "n1"},
	}
}

var podsOf = corev1.SchemeGroupVersion.WithResource("pods")

// get returns a pod as the API server has it; nil if there is none.
func (c *cluster) get(name string) *corev1.Pod {
	found, err := c.tracker.Tracker().Get(podsOf, "ns", name)
	if err != nil {
		return nil
	}
	return found.(*corev1.Pod).DeepCopy()
}

// update changes a pod without a call.
func (c *cluster) update(name string, change func(*corev1.Pod)) {
	p := c.get(name)
	change(p)
	if err := c.tracker.Tracker().Update(podsOf, p, "ns"); err != nil {
		panic(err)
	}
}

// setNode binds a pod, or removes its node.
func (c *cluster) setNode(name, node string) {
	c.update(name, func(p *corev1.Pod) { p.Spec.NodeName = node })
}

func (c *cluster) remove(name string) {
	if err := c.tracker.Tracker().Delete(podsOf, "ns", name); err != nil {
		panic(err)
	}
}

// waysToGo are the ways in which a pod can be gone. Of an unseen one the lister does not know.
func waysToGo(name string) map[string]func(*cluster) {
	replaced := func(c *cluster) { c.update(name, func(p *corev1.Pod) { p.UID = "another" }) }
	unseen := func(change func(*cluster)) func(*cluster) {
		return func(c *cluster) {
			c.unseen[name] = c.get(name)
			change(c)
		}
	}
	deleted := func(c *cluster) { c.remove(name) }
	return map[string]func(*cluster){
		"deleted": deleted, "deleted unseen": unseen(deleted),
		"replaced": replaced, "replaced unseen": unseen(replaced),
		"leaving": func(c *cluster) {
			c.update(name, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
		},
	}
}

// gone lists those of the initial pods that are deleted or terminating.
func (c *cluster) gone() (out []string) {
	for _, n := range c.names {
		if p := c.get(n); p == nil || p.DeletionTimestamp != nil {
			out = append(out, n)
		}
	}
	return out
}

// goneAfter lists a pod if it is gone after one of waysToGo, and no other has its name.
func goneAfter(way, name string) []string {
	if strings.HasPrefix(way, "replaced") {
		return nil
	}
	return []string{name}
}

func (c *cluster) condition(name string, of corev1.PodConditionType) corev1.PodCondition {
	p := cmp.Or(c.get(name), &corev1.Pod{})
	return ptr.Deref(informer.Condition(p, of), corev1.PodCondition{})
}

// claim returns status and reason of the condition of a by which it holds a node; empty for none.
func (c *cluster) claim() string {
	held := c.condition("a", reservations.HeldCondition)
	return strings.TrimSpace(string(held.Status) + " " + held.Reason)
}

// mark returns status and reason of the DisruptionTarget of a pod; empty for none.
func (c *cluster) mark(name string) string {
	mark := c.condition(name, corev1.DisruptionTarget)
	return strings.TrimSpace(string(mark.Status) + " " + mark.Reason)
}

// fail sets the fault of later calls; nil for none.
func (c *cluster) fail(f func(n int, c call) fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = f
}

// made returns the calls that were made.
func (c *cluster) made() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// forget drops recorded calls and events.
func (c *cluster) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.told = nil, nil
}

// story returns the calls that were made, without lookups.
func (c *cluster) story() (out []string) {
	for _, made := range c.made() {
		if made.verb != "get" {
			out = append(out, made.String())
		}
	}
	return out
}

func (c *cluster) events() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.told)
}

// serve answers a call.
func (c *cluster) serve(ctx context.Context, made call, do func() error) error {
	c.mu.Lock()
	made.at = time.Now()
	c.calls = append(c.calls, made)
	n := len(c.calls)
	c.inFlight++
	c.most = max(c.most, c.inFlight)
	var f fault
	if c.fault != nil {
		f = c.fault(n, made)
	}
	c.mu.Unlock()
	if f.hang {
		<-ctx.Done()
		f = fault{err: ctx.Err()}
	} else {
		time.Sleep(c.latency)
	}
	err, done := cmp.Or(f.err, ctx.Err()), false
	if err == nil || f.late {
		result := do()
		err, done = cmp.Or(f.err, result), result == nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[n-1].err, c.calls[n-1].done = err, done
	c.inFlight--
	return err
}

// CoreV1 and the following methods put serve between the executor and the fake client.
func (c *cluster) CoreV1() clientcorev1.CoreV1Interface { return core{c.tracker.CoreV1(), c} }

type core struct {
	clientcorev1.CoreV1Interface
	cluster *cluster
}

func (c core) Pods(namespace string) clientcorev1.PodInterface {
	return podClient{c.CoreV1Interface.Pods(namespace), c.cluster}
}

func (c core) Nodes() clientcorev1.NodeInterface { return c.cluster.nodes }

type podClient struct {
	clientcorev1.PodInterface
	cluster *cluster
}

func (p podClient) Get(ctx context.Context, name string, o metav1.GetOptions) (found *corev1.Pod, err error) {
	err = p.cluster.serve(ctx, call{verb: "get", pod: name}, func() error {
		found, err = p.PodInterface.Get(ctx, name, o)
		return err
	})
	return found, err
}

func (p podClient) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (changed *corev1.Pod, err error) {
	var patch corev1.Pod
	if err := json.Unmarshal(data, &patch); err != nil || kind != types.StrategicMergePatchType || !slices.Equal(sub, []string{"status"}) || len(patch.Status.Conditions) != 1 {
		return nil, fmt.Errorf("patch %s of %v: %s: %w", kind, sub, data, errors.Join(err, errors.New("not as expected")))
	}
	made := call{verb: "patch", pod: name, uid: patch.UID, condition: patch.Status.Conditions[0]}
	err = p.cluster.serve(ctx, made, func() error {
		if found := p.cluster.get(name); found != nil && patch.UID != "" && found.UID != patch.UID {
			return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, name, nil)
		}
		changed, err = p.PodInterface.Patch(ctx, name, kind, data, o, sub...)
		return err
	})
	return changed, err
}

func (p podClient) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	made := call{verb: "delete", pod: name, grace: o.GracePeriodSeconds}
	if o.Preconditions != nil && o.Preconditions.UID != nil {
		made.uid = *o.Preconditions.UID
	}
	return p.cluster.serve(ctx, made, func() error {
		found := p.cluster.get(name)
		switch {
		case found != nil && made.uid != "" && found.UID != made.uid:
			return apierrors.NewConflict(podResource, name, errors.New("the UID in the precondition does not match"))
		case found != nil && p.cluster.graceful:
			p.cluster.update(name, func(pod *corev1.Pod) {
				pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now()}, o.GracePeriodSeconds
			})
			return nil
		}
		return p.PodInterface.Delete(ctx, name, o)
	})
}

// Pods makes the cluster a lister of what is seen.
func (c *cluster) Pods(string) corelisters.PodNamespaceLister { return c }

func (c *cluster) List(labels.Selector) ([]*corev1.Pod, error) {
	return nil, errors.New("pods are not listed")
}

func (c *cluster) Get(name string) (*corev1.Pod, error) {
	c.mu.Lock()
	stale, found := c.unseen[name]
	c.mu.Unlock()
	if found {
		return stale, nil
	}
	if p := c.get(name); p != nil {
		return p, nil
	}
	return nil, apierrors.NewNotFound(podResource, name)
}

// voice is the recorder of a profile.
type voice struct {
	events.EventRecorder
	profile string
	cluster *cluster
}

func (v voice) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) {
	v.cluster.mu.Lock()
	defer v.cluster.mu.Unlock()
	told := fmt.Sprintf("%s: %s %s %s %s: ", v.profile, regarding.(*corev1.Pod).Name, kind, reason, action) + fmt.Sprintf(note, args...)
	if asker, ok := related.(*corev1.Pod); ok {
		told += " [" + asker.Name + "]"
	}
	v.cluster.told = append(v.cluster.told, told)
}

// transient are failures that a retry may resolve.
func transient() map[string]error {
	return map[string]error{
		"time-out":            apierrors.NewTimeoutError("slow", 1),
		"server time-out":     apierrors.NewServerTimeout(podResource, "delete", 1),
		"internal":            apierrors.NewInternalError(errors.New("etcd")),
		"unavailable":         apierrors.NewServiceUnavailable("starting"),
		"too many requests":   apierrors.NewTooManyRequests("busy", 1),
		"version conflict":    apierrors.NewConflict(podResource, "v1", errors.New("the object has been modified")),
		"connection reset":    errors.New("read tcp: connection reset by peer"),
		"token not known yet": apierrors.NewUnauthorized("token"),
	}
}

// lasting are failures that every retry would get again.
func lasting() map[string]error {
	return map[string]error{
		"forbidden":   apierrors.NewForbidden(podResource, "v1", errors.New("no role")),
		"invalid":     apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "v1", nil),
		"bad request": apierrors.NewBadRequest("no"),
		"no method":   apierrors.NewMethodNotSupported(podResource, "delete"),
		"too large":   apierrors.NewRequestEntityTooLargeError("no"),
		"no room":     beyondEtcd(),
	}
}

// beyondEtcd is the answer of the API server to a write that makes an object larger than etcd stores.
func beyondEtcd() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 500, Message: "etcdserver: request is too large"}}
}

// when makes certain calls fail.
func when(f fault, fails func(call) bool) func(int, call) fault {
	return func(_ int, c call) fault {
		if fails(c) {
			return f
		}
		return fault{}
	}
}

// first is when for the first n of these calls.
func first(n int, f fault, fails func(call) bool) func(int, call) fault {
	return when(f, func(c call) bool {
		if !fails(c) {
			return false
		}
		n--
		return n >= 0
	})
}

// on makes calls of one verb on one pod fail.
func on(verb, pod string, err error) func(int, call) fault {
	return when(fault{err: err}, func(c call) bool { return c.verb == verb && c.pod == pod })
}

// atEachDelete calls a function at each delete. No call fails.
func atEachDelete(do func()) func(int, call) fault {
	return when(fault{}, func(c call) bool {
		if c.verb == "delete" {
			do()
		}
		return false
	})
}

// keptOff checks that no victim was deleted while its node was not tainted.
func keptOff(calls []call) error {
	tainted := false
	for i, c := range calls {
		switch {
		case c.node != "" && c.done && c.verb != "get":
			tainted = c.verb != "untaint"
		case c.verb == "delete" && !tainted:
			return fmt.Errorf("call %d, %s, is without the taint", i+1, c)
		}
	}
	return nil
}

// wellFormed checks what must hold for all calls in every case: the claim is written before the first
// mark and the first delete, a victim is marked before it is deleted unless it is too large for the
// mark, and every write names one UID and neither takes the grace period away nor makes it longer.
func wellFormed(calls []call, asker string) error {
	claimed, marked := false, map[string]bool{}
	for i, c := range calls {
		switch {
		case c.verb == "get":
		case c.uid == "":
			return fmt.Errorf("call %d, %s, is for any UID", i+1, c)
		case c.node != "" && c.verb != "untaint" && !claimed:
			return fmt.Errorf("call %d, %s, is before the claim", i+1, c)
		case c.node != "":
			if c.uid != types.UID("uid-"+c.node) {
				return fmt.Errorf("call %d, %s, is for UID %s", i+1, c, c.uid)
			}
		case c.uid != types.UID("uid-"+c.pod):
			return fmt.Errorf("call %d, %s, is for UID %s", i+1, c, c.uid)
		case c.verb == "patch" && c.pod == asker:
			claimed = claimed || c.done && c.condition.Status == corev1.ConditionTrue && strings.Contains(c.condition.Message, "Claim: ")
		case !claimed && c.condition.Status != corev1.ConditionFalse && c.condition.Type != reservations.HeldCondition:
			return fmt.Errorf("call %d, %s, is before the claim", i+1, c)
		case c.verb == "patch":
			marked[c.pod] = marked[c.pod] || c.done || apianswer.TooLarge(c.err)
		case c.grace != nil && (*c.grace == 0 || *c.grace > mostGrace):
			return fmt.Errorf("call %d, %s, says how long the pod has", i+1, c)
		case !marked[c.pod]:
			return fmt.Errorf("call %d, %s, is before the mark", i+1, c)
		}
	}
	return nil
}
