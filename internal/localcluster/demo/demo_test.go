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
	"k8s.io/apimachinery/pkg/api/meta"
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
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// readSamples returns the shipped samples.
func readSamples(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return expect.Get(Read(samples.Files))(t)
}

func TestSampleQueuesAreValid(t *testing.T) {
	found := false
	for _, o := range readSamples(t) {
		if o.GetKind() != "ConfigMap" {
			continue
		}
		found = true
		document, _, err := unstructured.NestedString(o.Object, "data", "queues.yaml")
		if err != nil || o.GetNamespace() != "yunikorn" || o.GetName() != "yunikorn-configs" {
			t.Errorf("unexpected %s: %v", describe(o), err)
		}
		expect.Get(config.Parse([]byte(document)))(t)
	}
	if !found {
		t.Error("the samples have no queues")
	}
}

// The samples must fit one node of the default size, for any number of nodes, and must be
// recognisable.
func TestSampleWorkloads(t *testing.T) {
	objects := readSamples(t)
	workloads := expect.Get(Workloads(objects))(t)
	kinds := map[string]int{}
	var pods, placed int
	for _, w := range workloads {
		kinds[w.Kind]++
		pods += w.Pods
		placed += w.Placed
		if !strings.HasPrefix(w.Namespace, "paddock-sample-") {
			t.Errorf("%s is in a namespace that does not look like a sample", w)
		}
	}
	if kinds["Deployment"] < 4 || kinds["Job"] != 1 || kinds["Pod"] != 1 || placed != pods-1 {
		t.Errorf("unexpected samples: %v, %d pods, %d of them to be placed", kinds, pods, placed)
	}
	if cpu := totalCPU(t, objects); cpu > 6000 {
		t.Errorf("the samples want %dm cpu, too much for one node", cpu)
	}
}

// totalCPU sums up the requests of all pods of all workloads, in thousandths.
func totalCPU(t *testing.T, objects []*unstructured.Unstructured) int64 {
	t.Helper()
	var sum int64
	for _, o := range objects {
		template, found, err := unstructured.NestedMap(o.Object, "spec", "template")
		expect.OK(t, err)
		if o.GetKind() == "Pod" {
			template, found = o.Object, true
		}
		if !found {
			continue
		}
		var pod corev1.Pod
		expect.OK(t, runtime.DefaultUnstructuredConverter.FromUnstructured(template, &pod))
		w := expect.Get(Workloads([]*unstructured.Unstructured{o}))(t)
		sum += int64(w[0].Pods) * pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	}
	return sum
}

func TestReadNamesTheFile(t *testing.T) {
	for name, text := range map[string]string{"syntax.yaml": "a: [\n", "kind.yaml": "metadata: {name: x}\n", "name.yaml": "kind: Pod\n"} {
		expect.Refused(Read(fstest.MapFS{name: {Data: []byte(text)}}))(t, name)
	}
	objects, err := Read(fstest.MapFS{
		"b.yaml": {Data: []byte("kind: Pod\nmetadata: {name: third}\n")},
		"a.yaml": {Data: []byte("# a comment\n---\nkind: Pod\nmetadata: {name: first}\n---\nkind: Pod\nmetadata: {name: second}\n---\n")},
	})
	if err != nil || len(objects) != 3 || objects[0].GetName() != "first" || objects[2].GetName() != "third" {
		t.Errorf("got %v, %v", objects, err)
	}
}

// workload decodes one object.
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
		if _, err := Workloads([]*unstructured.Unstructured{o}); err == nil || !strings.Contains(err.Error(), "Deployment ns/d") || !strings.Contains(err.Error(), value) {
			t.Errorf("got %v, want an error that names object and value %s", err, value)
		}
	}
	o := workload(t, "kind: Job\nmetadata: {name: j}\nspec: {parallelism: two}\n")
	expect.Refused(Workloads([]*unstructured.Unstructured{o}))(t, "spec.parallelism")
}

// applier returns an applier on a fake cluster.
func applier(objects ...runtime.Object) (*Applier, *dynamicfake.FakeDynamicClient) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for kind, scope := range map[schema.GroupVersionKind]meta.RESTScope{
		corev1.SchemeGroupVersion.WithKind("Namespace"):    meta.RESTScopeRoot,
		corev1.SchemeGroupVersion.WithKind("ConfigMap"):    meta.RESTScopeNamespace,
		corev1.SchemeGroupVersion.WithKind("Pod"):          meta.RESTScopeNamespace,
		{Group: "apps", Version: "v1", Kind: "Deployment"}: meta.RESTScopeNamespace,
		{Group: "batch", Version: "v1", Kind: "Job"}:       meta.RESTScopeNamespace,
	} {
		mapper.Add(kind, scope)
	}
	client := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, objects...)
	return &Applier{client: client, mapper: mapper}, client
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

func TestApplyAndRemove(t *testing.T) {
	ctx := context.Background()
	theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "yunikorn"}}
	older := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "paddock-sample-shop", Labels: map[string]string{OwnerLabel: OwnerValue}}}
	a, client := applier(theirs, older)
	foreign := expect.Get(a.Apply(ctx, readSamples(t)))(t)
	if len(foreign) != 1 || foreign[0] != "Namespace yunikorn" {
		t.Errorf("foreign objects: %v", foreign)
	}
	made, err := client.Resource(namespaces).Get(ctx, "paddock-sample-research", metav1.GetOptions{})
	if err != nil || made.GetLabels()[OwnerLabel] != OwnerValue {
		t.Errorf("namespace without our label: %v, %v", made, err)
	}
	expect.OK(t, a.Remove(ctx))
	left, err := client.Resource(namespaces).List(ctx, metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].GetName() != "yunikorn" {
		t.Errorf("left are %v, %v", left, err)
	}
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
		if _, err := a.Apply(context.Background(), []*unstructured.Unstructured{pod}); err != nil {
			t.Error(err)
		}
		refusals = 1000
		pod.SetName("q")
		if _, err := a.Apply(context.Background(), []*unstructured.Unstructured{pod}); !apierrors.IsForbidden(err) {
			t.Errorf("got %v, want the refusal after a while", err)
		}
	})
}

func TestApplyNamesTheObject(t *testing.T) {
	a, _ := applier()
	o := workload(t, "apiVersion: example.com/v1\nkind: Strange\nmetadata: {name: x, namespace: ns}\n")
	expect.Refused(a.Apply(context.Background(), []*unstructured.Unstructured{o}))(t, "Strange ns/x")
}

// samplePod is a pod of a sample workload; without a node it has a condition that says
// why.
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
				if _, err := client.CoreV1().Pods("ns").Update(context.Background(), bound, metav1.UpdateOptions{}); err != nil {
					t.Error(err)
				}
			}
			if d := p[0]; !d.Done() || d.Made != 2 || d.OnNode != 1 || d.Reason != "queue is full" {
				t.Errorf("unexpected placement %+v", d)
			}
		}
		if err := AwaitPlaced(context.Background(), client, workloads, time.Minute, report); err != nil || looks != 4 {
			t.Errorf("%d looks, %v", looks, err)
		}
	})
}

func TestAwaitPlacedGivesUpWithTheReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workloads, err := Workloads([]*unstructured.Unstructured{workload(t, "kind: Pod\nmetadata: {name: p, namespace: ns}\n")})
		expect.OK(t, err)
		began := time.Now()
		err = AwaitPlaced(context.Background(), fake.NewClientset(samplePod("ns", "p", "", nil)), workloads, time.Minute, func([]Placement) {})
		var missing *NotPlacedError
		if !errors.As(err, &missing) || !strings.Contains(err.Error(), "Pod ns/p: 0 of 1 pods have a node: queue is full") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took < time.Minute || took > 62*time.Second {
			t.Errorf("gave up after %v", took)
		}
	})
}
