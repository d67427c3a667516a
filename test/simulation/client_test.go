package simulation_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedpolicyv1 "k8s.io/client-go/kubernetes/typed/policy/v1"
	typedschedulingv1 "k8s.io/client-go/kubernetes/typed/scheduling/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// client is the API client of one scheduler. Objects that the scheduler only reads and that the
// simulation does not have (volumes, claims, services) come from client-go's fake.
type client struct {
	*fake.Clientset
	typed
}

func newClient(f *fake.Clientset, in *instance) *client {
	return &client{f, typed{f.CoreV1(), f.PolicyV1(), f.SchedulingV1(), f.AppsV1(), in}}
}

func (c *client) CoreV1() typedcorev1.CoreV1Interface                   { return c.typed }
func (c *client) PolicyV1() typedpolicyv1.PolicyV1Interface             { return c.typed }
func (c *client) SchedulingV1() typedschedulingv1.SchedulingV1Interface { return c.typed }
func (c *client) AppsV1() typedappsv1.AppsV1Interface                   { return c.typed }

type typed struct {
	typedcorev1.CoreV1Interface
	typedpolicyv1.PolicyV1Interface
	typedschedulingv1.SchedulingV1Interface
	typedappsv1.AppsV1Interface
	in *instance
}

func (typed) RESTClient() rest.Interface { return nil }

func (c typed) Pods(namespace string) typedcorev1.PodInterface {
	return &podClient{reader: reader[*corev1.PodList]{c.in, c.in.api.pods, namespace}}
}

func (c typed) Nodes() typedcorev1.NodeInterface {
	return &nodeClient{reader: reader[*corev1.NodeList]{c.in, c.in.api.nodes, ""}}
}

func (c typed) Namespaces() typedcorev1.NamespaceInterface {
	return &namespaceClient{reader: reader[*corev1.NamespaceList]{c.in, c.in.api.namespaces, ""}}
}

func (c typed) ConfigMaps(namespace string) typedcorev1.ConfigMapInterface {
	return &configClient{reader: reader[*corev1.ConfigMapList]{c.in, c.in.api.configs, namespace}}
}

func (c typed) PodDisruptionBudgets(namespace string) typedpolicyv1.PodDisruptionBudgetInterface {
	return &budgetClient{reader: reader[*policyv1.PodDisruptionBudgetList]{c.in, c.in.api.budgets, namespace}}
}

func (c typed) PriorityClasses() typedschedulingv1.PriorityClassInterface {
	return &classClient{reader: reader[*schedulingv1.PriorityClassList]{c.in, c.in.api.classes, ""}}
}

// DaemonSets has them where owners are looked up.
func (c typed) DaemonSets(namespace string) typedappsv1.DaemonSetInterface {
	return &setClient{reader: reader[*appsv1.DaemonSetList]{c.in, c.in.api.sets, namespace}}
}

type reader[L any] struct {
	in        *instance
	kind      *kind
	namespace string
}

func (r reader[L]) List(ctx context.Context, o metav1.ListOptions) (L, error) {
	var list L
	err := r.in.call(ctx, "list", r.kind.resource.Resource, func() error {
		l, err := r.in.api.listed(r.kind, r.namespace, o.FieldSelector)
		if err == nil {
			list = l.(L)
		}
		return err
	})
	return list, err
}

func (r reader[L]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	var w watch.Interface
	err := r.in.call(ctx, "watch", r.kind.resource.Resource, func() (err error) {
		w, err = r.in.api.watch(r.in, r.kind, r.namespace, o)
		return err
	})
	if err != nil {
		if w != nil {
			w.Stop() // it was opened, and its waiters were not woken
		}
		return nil, err
	}
	return w, nil
}

// The typed interfaces are nil, because no other methods are called. They are embedded one
// level deeper than the reader, so that List and Watch are its.
type (
	plainNodes      struct{ typedcorev1.NodeInterface }
	plainNamespaces struct{ typedcorev1.NamespaceInterface }
	plainConfigs    struct{ typedcorev1.ConfigMapInterface }
	plainBudgets    struct {
		typedpolicyv1.PodDisruptionBudgetInterface
	}
	plainClasses struct {
		typedschedulingv1.PriorityClassInterface
	}
	plainSets struct{ typedappsv1.DaemonSetInterface }
	plainPods struct{ typedcorev1.PodInterface }

	nodeClient struct {
		plainNodes
		reader[*corev1.NodeList]
	}
	namespaceClient struct {
		plainNamespaces
		reader[*corev1.NamespaceList]
	}
	configClient struct {
		plainConfigs
		reader[*corev1.ConfigMapList]
	}
	budgetClient struct {
		plainBudgets
		reader[*policyv1.PodDisruptionBudgetList]
	}
	classClient struct {
		plainClasses
		reader[*schedulingv1.PriorityClassList]
	}
	setClient struct {
		plainSets
		reader[*appsv1.DaemonSetList]
	}
	podClient struct {
		plainPods
		reader[*corev1.PodList]
	}
)

// change changes the current version of an object.
func change[O object, L any](ctx context.Context, r reader[L], verb, name string, do func(o O) error) error {
	return r.in.call(ctx, verb, name, func() error {
		defer holding(&r.in.api.mu)()
		o, there := r.kind.objects[types.NamespacedName{Namespace: r.namespace, Name: name}].(O)
		if !there {
			return apierrors.NewNotFound(r.kind.resource, name)
		}
		return do(o)
	})
}

func get[O object, L any](ctx context.Context, r reader[L], name string) (found O, err error) {
	err = change(ctx, r, "get", name, func(o O) error {
		found = o
		return nil
	})
	return found, err
}

func (c *podClient) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Pod, error) {
	return get[*corev1.Pod](ctx, c.reader, name)
}

func (c *nodeClient) Get(ctx context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	return get[*corev1.Node](ctx, c.reader, name)
}

func (c *podClient) Bind(ctx context.Context, b *corev1.Binding, _ metav1.CreateOptions) error {
	target, did := c.in.sim.bindWrongly(b.Target.Name), false
	err := change(ctx, c.reader, "bind", b.Name, func(pod *corev1.Pod) error {
		if pod.UID != b.UID || pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil {
			return apierrors.NewConflict(c.kind.resource, b.Name, errors.New("it is another pod, bound already, or being deleted"))
		}
		by := c.in
		if c.in.sim.judgeBind(c.in, pod, target) {
			by = nil
		}
		c.in.api.editPod(pod, func(p *corev1.Pod) { p.Spec.NodeName = target })
		c.in.api.touch(by, usedBy(c.in.api.pod(nameOf(pod)))...)
		c.in.sim.logf("%s binds %s to %s", c.in.name, pod.Name, target)
		did = true
		return nil
	})
	if did && err != nil { // the caller takes the room for free again
		c.in.api.locked(func() {
			if pod := c.in.api.pod(types.NamespacedName{Namespace: c.namespace, Name: b.Name}); pod != nil {
				c.in.api.touch(nil, usedBy(pod)...)
			}
		})
	}
	return err
}

func (c *podClient) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	switch c.in.sim.bug {
	case bugByName:
		o.Preconditions = nil
	case bugGrace:
		o.GracePeriodSeconds = nil
	}
	ours := o.Preconditions != nil && o.Preconditions.UID != nil // upstream's preemption sends no UID
	c.in.mayWrite(ours, "delete", name)
	if !ours {
		time.Sleep(time.Millisecond) // upstream tries again at once after an error, and its watch needs time to pass
	}
	var deleted *corev1.Pod
	nominated := c.in.nominatedPlain()
	err := change(ctx, c.reader, "delete", name, func(pod *corev1.Pod) error {
		if ours && *o.Preconditions.UID != pod.UID {
			return apierrors.NewConflict(c.kind.resource, name, errors.New("the UID in the precondition is another one"))
		}
		deleted = pod
		grace := ptr.Deref(o.GracePeriodSeconds, graceOf(pod))
		if ours {
			c.in.sim.judgeDelete(c.in, pod)
			c.in.sim.judgeGrace(c.in, pod, grace)
		} else {
			if !c.in.api.preempted[nameOf(pod)] { // upstream first announces the preemption on the pod
				c.in.sim.fault("%s deletes %s by its name only", c.in.name, name)
			}
			c.in.sim.logf("upstream's preemption in %s deletes %s", c.in.name, pod.Name)
		}
		c.in.sim.logf("%s deletes %s", c.in.name, pod.Name)
		switch {
		case ours && tooLarge(pod, true):
			c.in.sim.judgeDeletedAgain(c.in, pod)
			return errTooLarge
		case ours && pod.DeletionTimestamp != nil && grace < *pod.DeletionGracePeriodSeconds:
			c.in.sim.count(shortened)
		}
		c.in.api.deleteWithin(pod, grace)
		return nil
	})
	if ours && errors.Is(err, errTooLarge) {
		c.in.interceptor.mu.Lock()
		c.in.interceptor.tooLarge[deleted.UID] = time.Now()
		c.in.interceptor.mu.Unlock()
		if c.in.sim.bug == bugTooLarge {
			return apierrors.NewTooManyRequests("the request is too large", 1)
		}
	}
	if !ours && (apierrors.IsNotFound(err) || deleted != nil && (!c.in.hasRoom(deleted) || c.in.nameTaken(deleted))) {
		c.in.strand(nominated)
	}
	return err
}

func (c *podClient) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, _ metav1.PatchOptions, subresources ...string) (patched *corev1.Pod, err error) {
	if pt != types.StrategicMergePatchType || len(subresources) != 1 || subresources[0] != "status" {
		return nil, fmt.Errorf("this API server does not know patches of type %s of %v", pt, subresources)
	}
	var says corev1.Pod
	if err := json.Unmarshal(data, &says); err != nil {
		return nil, err
	}
	ours, conditions := says.UID != "", says.Status.Conditions // upstream sends no UID
	upstreams := !ours && informer.Condition(&says, corev1.DisruptionTarget) != nil
	if ours && len(conditions) == 0 { // upstream takes back what it has given, too
		c.in.mayWrite(true, "take the nomination from", name)
	}
	for _, condition := range conditions {
		c.in.mayWrite(!upstreams && condition.Type != corev1.PodScheduled, "patch "+string(condition.Type), name)
	}
	err = change(ctx, c.reader, "patch", name, func(pod *corev1.Pod) error {
		after, err := merge(pod, data)
		switch {
		case err != nil:
			return err
		case ours && says.UID != pod.UID, says.ResourceVersion != "" && says.ResourceVersion != pod.ResourceVersion:
			return apierrors.NewConflict(c.kind.resource, name, errors.New("it is another pod, or was changed"))
		case !upstreams && tooLarge(pod, false):
			return errTooLarge
		case c.in.sim.demandWrongly(pod, conditions), c.in.sim.patchWrongly(pod, after) && len(conditions) == 0:
			return nil
		}
		c.in.api.put(c.in.api.pods, after)
		if upstreams {
			c.in.api.preempted[nameOf(pod)] = true
		}
		if c.in.sim.onlyTold(conditions) {
			c.in.api.writes--
		} else if len(conditions) > 0 && saysOnly(conditions) && after.Status.NominatedNodeName == pod.Status.NominatedNodeName {
			c.in.api.said++
		}
		for _, condition := range conditions {
			c.in.sim.countDemand(pod, &condition)
			c.in.sim.judgeClaim(c.in, pod, &condition)
			message := ""
			if condition.Type == reservations.HeldCondition && condition.Status == corev1.ConditionFalse {
				message = ": " + condition.Message
			}
			c.in.sim.logf("%s says of %s: %s %s %s%s", c.in.name, name, condition.Type, condition.Status, condition.Reason, message)
		}
		patched = after
		return nil
	})
	if upstreams && apierrors.IsNotFound(err) {
		c.in.strand(nil)
	}
	return patched, err
}

// statusPatch is the fields of patches of a pod's status. A patch of these fields takes a tenth of the
// time of a generic one.
type statusPatch struct {
	Metadata json.RawMessage
	Status   struct {
		Conditions        []json.RawMessage
		Order             json.RawMessage `json:"$setElementOrder/conditions"`
		NominatedNodeName json.RawMessage // null takes it back
	}
}

func merge(pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	var p statusPatch
	in := json.NewDecoder(bytes.NewReader(patch))
	in.DisallowUnknownFields()
	if err := in.Decode(&p); err != nil {
		return nil, err
	}
	out := pod.DeepCopy()
	if to := p.Status.NominatedNodeName; to != nil {
		out.Status.NominatedNodeName = ""
		if err := json.Unmarshal(to, &out.Status.NominatedNodeName); err != nil {
			return nil, err
		}
	}
	for _, raw := range p.Status.Conditions {
		var patched corev1.PodCondition
		if err := json.Unmarshal(raw, &patched); err != nil {
			return nil, err
		}
		if now := informer.Condition(out, patched.Type); now == nil {
			out.Status.Conditions = append(out.Status.Conditions, patched)
		} else if err := json.Unmarshal(raw, now); err != nil { // fields that the patch does not name stay
			return nil, err
		}
	}
	return out, nil
}

var errDead = errors.New("connect: connection refused")

// fault is the failure of one call.
type fault struct {
	before, after time.Duration // delays of the request and of the answer
	refuse        error         // the error answer of a call without effect
	lost          bool          // the call has its effect, and the answer is lost
	arrives       bool          // the call arrives although its caller has stopped waiting
}

// call makes one call, which may fail in every way in which calls fail.
func (in *instance) call(ctx context.Context, verb, name string, do func() error) error {
	f := in.sim.faultOf(in, verb, name)
	writes := verb != "get" && verb != "list" && verb != "watch"
	if in.dead.Load() {
		return in.nothing()
	}
	// A call that is cancelled before it is sent is not sent. Upstream's preemption makes
	// such calls after one of its other calls has failed.
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := pass(ctx, f.before); err != nil {
		if f.arrives && writes {
			_ = do()
		}
		return err
	}
	if in.dead.Load() {
		return in.nothing()
	}
	if f.refuse != nil {
		return f.refuse
	}
	if writes && in.crashes(false) {
		return in.nothing()
	}
	err := do()
	if writes && in.crashes(true) {
		return in.nothing()
	}
	if late := pass(ctx, f.after); late != nil {
		return late
	}
	if f.lost && err == nil {
		return apierrors.NewTimeoutError("the request was sent and no answer came", 1)
	}
	return err
}

// nothing blocks the calls of a dead process until it is buried, so that its goroutines
// do not go on meanwhile. Then the calls fail. A millisecond of virtual time passes for
// callers that try again at once after a failure.
func (in *instance) nothing() error {
	<-in.buried
	<-time.After(time.Millisecond)
	return errDead
}

// pass lets time pass, or returns the reason why the caller no longer waits.
func pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
