package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/manifests/samples"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestSamplesFitOneNode of the default size, as there may be one only. One pod gets no node.
func TestSamplesFitOneNode(t *testing.T) {
	var all, cpu int64
	for _, o := range expect.Get(Read(samples.Files))(t) {
		var made struct {
			Spec struct {
				corev1.PodSpec
				Replicas, Parallelism *int64
				Template              corev1.PodTemplateSpec
			}
		}
		expect.OK(t, json.Unmarshal(expect.Get(o.MarshalJSON())(t), &made))
		n := *cmp.Or(made.Spec.Replicas, made.Spec.Parallelism, new(int64(1)))
		for _, c := range slices.Concat(made.Spec.Containers, made.Spec.Template.Spec.Containers) {
			all, cpu = all+n, cpu+n*c.Resources.Requests.Cpu().MilliValue()
		}
	}
	expect.That(t, cpu >= 1000 && cpu <= 6000, "the samples want %dm cpu", cpu)
	expect.Same(t, "sample pods", int64(samples.Placed+1), all)
}

func TestReadNamesTheFile(t *testing.T) {
	for name, text := range map[string]string{"syntax.yaml": "a: [\n", "kind.yaml": "metadata: {name: x}\n", "name.yaml": "kind: Pod\n"} {
		expect.Refused(Read(fstest.MapFS{name: {Data: []byte(text)}}))(t, name)
	}
	objects := expect.Get(Read(fstest.MapFS{
		"b.yaml": {Data: []byte("kind: Pod\nmetadata: {name: third}\n")},
		"a.yaml": {Data: []byte("# a comment\n---\nkind: Pod\nmetadata: {name: first}\n---\nkind: Pod\nmetadata: {name: second}\n---\n")},
	}))(t)
	var names []string
	for _, o := range objects {
		names = append(names, o.GetName())
	}
	expect.Same(t, "objects", []string{"first", "second", "third"}, names)
}

func workload(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	objects, err := decode([]byte(text))
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	return objects[0]
}

func applier(objects ...runtime.Object) (*Applier, *dynamicfake.FakeDynamicClient) {
	client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, objects...)
	return &Applier{client: client, mapper: testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme)}, client
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func TestApplyAndRemove(t *testing.T) {
	ctx := context.Background()
	theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "yunikorn"}}
	older := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "paddock-sample-shop", Labels: map[string]string{OwnerLabel: OwnerValue}}}
	a, client := applier(theirs, older)
	foreign := expect.Get(a.Apply(ctx, expect.Get(Read(samples.Files))(t)))(t)
	expect.Same(t, "foreign objects", []string{"Namespace yunikorn"}, foreign)
	made := expect.Get(client.Resource(namespaces).Get(ctx, "paddock-sample-research", metav1.GetOptions{}))(t)
	expect.Same(t, "label of a namespace", OwnerValue, made.GetLabels()[OwnerLabel])
	expect.OK(t, a.Remove(ctx))
	left := expect.Get(client.Resource(namespaces).List(ctx, metav1.ListOptions{}))(t)
	expect.That(t, len(left.Items) == 1 && left.Items[0].GetName() == "yunikorn", "left are %v", left)
	expect.Holds(t, a.Remove(ctx))
}

func TestApplyWaitsForTheServiceAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, client := applier()
		refusals := 3
		client.PrependReactor("create", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			refusals--
			return refusals >= 0, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "p", errors.New("error looking up service account: serviceaccount \"default\" not found"))
		})
		pod := workload(t, "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: ns}\n")
		expect.Get(a.Apply(context.Background(), []*unstructured.Unstructured{pod}))(t)
		refusals = 1000
		pod.SetName("q")
		_, err := a.Apply(context.Background(), []*unstructured.Unstructured{pod})
		expect.That(t, apierrors.IsForbidden(err), "got %v, want the refusal after a while", err)
	})
}

// TestApplyWaitsForWhatIsBeingDeleted: a namespace that the run before has removed takes a while to go.
func TestApplyWaitsForWhatIsBeingDeleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := metav1.Now()
		leaving := sampleNamespace("ns")
		leaving.DeletionTimestamp, leaving.Finalizers = &now, []string{"kubernetes"}
		a, client := applier(leaving)
		again := workload(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns}\n")
		expect.Refused(a.Apply(t.Context(), []*unstructured.Unstructured{again}))(t, "Namespace ns: it was deleted at ")
		time.AfterFunc(3*time.Second, func() {
			expect.Holds(t, client.Tracker().Delete(namespaces, "", "ns"))
		})
		expect.Get(a.Apply(t.Context(), []*unstructured.Unstructured{again}))(t)
		made := expect.Get(client.Resource(namespaces).Get(t.Context(), "ns", metav1.GetOptions{}))(t)
		expect.That(t, made.GetDeletionTimestamp() == nil, "the namespace that is left is the one that is being deleted")
	})
}

func TestApplyNamesTheObject(t *testing.T) {
	a, _ := applier()
	o := workload(t, "apiVersion: example.com/v1\nkind: Strange\nmetadata: {name: x, namespace: ns}\n")
	expect.Refused(a.Apply(context.Background(), []*unstructured.Unstructured{o}))(t, "Strange ns/x")
}

func TestAwaitPlaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(sampleNamespace("ns"), told("ns", "a", "node", corev1.PodSucceeded),
			told("ns", "b", "", corev1.PodPending), told("ns", "held", "", corev1.PodPending), told("other", "c", "node", corev1.PodRunning))
		update := func(pod *corev1.Pod) {
			expect.Get(client.CoreV1().Pods("ns").Update(context.Background(), pod, metav1.UpdateOptions{}))(t)
		}
		began := time.Now()
		pods, placed, err := AwaitPlaced(t.Context(), client, 2, time.Minute)
		took := time.Since(began)
		expect.That(t, errors.Is(err, ErrNotPlaced) && len(pods) == 3 && placed == 1, "%d of %d, %v", placed, len(pods), err)
		expect.That(t, took >= time.Minute && took <= 62*time.Second, "gave up after %v", took)
		began = time.Now()
		time.AfterFunc(time.Second, func() { update(told("ns", "b", "node", corev1.PodRunning)) })
		time.AfterFunc(5*time.Second, func() {
			update(told("ns", "held", "", corev1.PodPending, [3]string{string(corev1.PodScheduled), "False", "full"}))
		})
		pods, placed, err = AwaitPlaced(t.Context(), client, 2, time.Minute)
		expect.That(t, err == nil && len(pods) == 3 && placed == 2, "%d of %d, %v", placed, len(pods), err)
		took = time.Since(began)
		expect.That(t, took >= 5*time.Second && took <= 6*time.Second, "found after %v, want the time of the last reason", took)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err = AwaitPlaced(ctx, client, 3, time.Minute)
		expect.That(t, errors.Is(err, context.Canceled), "got %v, want the end of the context", err)
	})
}

// told is a pod with conditions, given as type, status, message.
func told(namespace, name, node string, phase corev1.PodPhase, conditions ...[3]string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase},
	}
	for _, c := range conditions {
		p.Status.Conditions = append(p.Status.Conditions,
			corev1.PodCondition{Type: corev1.PodConditionType(c[0]), Status: corev1.ConditionStatus(c[1]), Message: c[2]})
	}
	return p
}

func sampleNamespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{OwnerLabel: OwnerValue}}}
}

func TestPodTable(t *testing.T) {
	const queues, scheduler = reasons.AdmittedCondition, string(corev1.PodScheduled)
	client := fake.NewClientset(
		sampleNamespace("two"), sampleNamespace("one"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}},
		told("two", "runs", "node-1", corev1.PodRunning, [3]string{queues, "False", "long ago"}),
		told("two", "held", "", corev1.PodPending, [3]string{scheduler, "False", "gated"}, [3]string{queues, "False", "queue root.a\nis full"}),
		told("one", "tried", "", corev1.PodPending, [3]string{queues, "True", "welcome"}, [3]string{scheduler, "False", "0/3 nodes"}),
		told("one", "new", "", corev1.PodPending),
		told("theirs", "foreign", "", corev1.PodPending),
	)
	pods := expect.Get(SamplePods(t.Context(), client))(t)
	var out strings.Builder
	expect.OK(t, PrintPods(&out, pods))
	want := `NAMESPACE   NAME    PHASE     NODE     WHY IT WAITS
one         new     Pending   -        -
one         tried   Pending   -        0/3 nodes
two         held    Pending   -        queue root.a is full
two         runs    Running   node-1   -
`
	expect.Same(t, "table", want, out.String())
}
