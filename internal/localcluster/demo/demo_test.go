package demo

import (
	"context"
	"errors"
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

// TestSamplesFitOneNode of the default size, as there may be one only.
func TestSamplesFitOneNode(t *testing.T) {
	var cpu int64
	for _, o := range expect.Get(Read(samples.Files))(t) {
		for _, w := range expect.Get(Workloads([]*unstructured.Unstructured{o}))(t) {
			template, found, err := unstructured.NestedMap(o.Object, "spec", "template")
			if expect.OK(t, err); !found {
				template = o.Object
			}
			var pod corev1.Pod
			expect.OK(t, runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod))
			cpu += int64(w.Pods) * pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	expect.That(t, cpu >= 1000 && cpu <= 6000, "the samples want %dm cpu", cpu)
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

func TestBadExpectationsAreNamed(t *testing.T) {
	for _, value := range []string{"many", "-1", "3"} {
		o := workload(t, "kind: Deployment\nmetadata: {name: d, namespace: ns, annotations: {"+AnnotationExpectPlaced+": \""+value+"\"}}\nspec: {replicas: 2}\n")
		expect.Refused(Workloads([]*unstructured.Unstructured{o}))(t, "Deployment ns/d: annotation "+AnnotationExpectPlaced+": \""+value+"\"")
	}
	o := workload(t, "kind: Job\nmetadata: {name: j}\nspec: {parallelism: two}\n")
	expect.Refused(Workloads([]*unstructured.Unstructured{o}))(t, "spec.parallelism")
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

func TestApplyNamesTheObject(t *testing.T) {
	a, _ := applier()
	o := workload(t, "apiVersion: example.com/v1\nkind: Strange\nmetadata: {name: x, namespace: ns}\n")
	expect.Refused(a.Apply(context.Background(), []*unstructured.Unstructured{o}))(t, "Strange ns/x")
}

// samplePod is a pod of a sample workload; without a node it has a condition that says why.
func samplePod(namespace, name, node string, labels map[string]string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Spec: corev1.PodSpec{NodeName: node}}
	if node == "" {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "queue is full"}}
	}
	return p
}

func TestAwaitPlaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		deployment := workload(t, "kind: Deployment\nmetadata: {name: d, namespace: ns, annotations: {"+AnnotationExpectPlaced+": \"1\"}}\nspec: {replicas: 2, selector: {matchLabels: {app: d}}}\n")
		job := workload(t, "kind: Job\nmetadata: {name: j, namespace: ns}\nspec: {parallelism: 1}\n")
		pod := workload(t, "kind: Pod\nmetadata: {name: p, namespace: ns}\n")
		workloads := expect.Get(Workloads([]*unstructured.Unstructured{deployment, job, pod}))(t)
		app := map[string]string{"app": "d"}
		client := fake.NewClientset(samplePod("ns", "d1", "node", app), samplePod("ns", "d2", "", app), samplePod("ns", "p", "", nil),
			samplePod("ns", "j1", "node", map[string]string{"batch.kubernetes.io/job-name": "j"}), samplePod("ns", "other", "", nil))
		looks := 0
		report := func(p []Placement) {
			looks++
			if looks == 3 {
				bound := samplePod("ns", "p", "node", nil)
				expect.Get(client.CoreV1().Pods("ns").Update(context.Background(), bound, metav1.UpdateOptions{}))(t)
			}
			d := p[0]
			expect.That(t, d.Done() && d.Made == 2 && d.OnNode == 1 && d.Reason == "queue is full",
				"unexpected placement %+v", d)
		}
		expect.Holds(t, AwaitPlaced(context.Background(), client, workloads, time.Minute, report))
		expect.Same(t, "looks", 4, looks)
	})
}

func TestAwaitPlacedGivesUpWithTheReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := workload(t, "kind: Pod\nmetadata: {name: p, namespace: ns}\n")
		workloads := expect.Get(Workloads([]*unstructured.Unstructured{pod}))(t)
		began := time.Now()
		err := AwaitPlaced(context.Background(), fake.NewClientset(samplePod("ns", "p", "", nil)), workloads, time.Minute, func([]Placement) {})
		var missing *NotPlacedError
		expect.That(t, errors.As(err, &missing), "got %v", err)
		expect.Fails(t, err, "Pod ns/p: 0 of 1 pods have a node: queue is full")
		took := time.Since(began)
		expect.That(t, took >= time.Minute && took <= 62*time.Second, "gave up after %v", took)
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
