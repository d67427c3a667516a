package integration

import (
	"context"
	"encoding/json"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster/demo"
	"github.com/paddock-scheduler/paddock/manifests/install"
)

// installed reads a file of manifests/install.
func installed(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	text := expect.Get(install.Files.ReadFile(name))(t)
	return expect.Get(demo.Read(fstest.MapFS{name: {Data: text}}))(t)
}

// applier applies objects of any kind as an administrator, and notes the warnings
// of the API server.
type applier struct {
	client   dynamic.Interface
	mapper   meta.RESTMapper
	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeader records a warning.
func (a *applier) HandleWarningHeader(_ int, _, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.warnings = append(a.warnings, text)
}

// warned returns the warnings since the last call.
func (a *applier) warned() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.warnings
	a.warnings = nil
	return out
}

func newApplier(t *testing.T) *applier {
	t.Helper()
	a := &applier{}
	admin := suite.cluster.AdminConfig()
	admin.WarningHandler = a
	discoverer := expect.Get(discovery.NewDiscoveryClientForConfig(admin))(t)
	a.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))
	a.client = expect.Get(dynamic.NewForConfig(admin))(t)
	return a
}

// apply applies an object as "kubectl apply --server-side" does, and returns the object
// of the API server. An unknown field is an error.
func (a *applier) apply(ctx context.Context, o *unstructured.Unstructured, dry bool) (*unstructured.Unstructured, error) {
	client, err := a.of(o)
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: "integration", FieldValidation: metav1.FieldValidationStrict, Force: new(true)}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return client.Patch(ctx, o.GetName(), "application/apply-patch+yaml", data, options)
}

func (a *applier) delete(ctx context.Context, o *unstructured.Unstructured) error {
	client, err := a.of(o)
	if err != nil {
		return err
	}
	return notFoundIsFine(client.Delete(ctx, o.GetName(), metav1.DeleteOptions{}))
}

// notFoundIsFine is the error of a delete, if the object was there.
func notFoundIsFine(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (a *applier) of(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return a.client.Resource(mapping.Resource).Namespace(o.GetNamespace()), nil
	}
	return a.client.Resource(mapping.Resource), nil
}

// TestInstall shows that the API server accepts all manifests that users apply, and the static pod
// of the control plane as the kubelet shows it there, knows every field, and gives no warnings.
func TestInstall(t *testing.T) {
	a := newApplier(t)
	files := expect.Get(fs.Glob(install.Files, "*.yaml"))(t)
	expect.That(t, len(files) >= 6, "there are only %q", files)
	served := expect.Get(suite.client.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1"))(t)
	mutates := slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Kind == "MutatingAdmissionPolicy" })
	accepts := func(name string, objects ...*unstructured.Unstructured) {
		for _, o := range objects {
			_, err := a.apply(t.Context(), o, true)
			expect.That(t, err == nil, "%s: %s %s: %v", name, o.GetKind(), o.GetName(), err)
		}
		expect.Same(t, name+": warnings of the API server", []string(nil), a.warned())
	}
	for _, file := range files {
		if file == "admission-mutating.yaml" && !mutates {
			continue // of version v1, which this API server does not have; TestSetSchedulerName tests v1beta1
		}
		accepts(file, installed(t, file)...)
	}
	pod := staticPod(t)
	// The kubelet's needs no service account, but any other pod does.
	expect.OK(t, unstructured.SetNestedField(pod.Object, "default", "spec", "serviceAccountName"))
	accepts("static-pod.yaml", pod)
	// The test finds a planted mistake.
	wrong := installed(t, "second-scheduler.yaml")
	for _, o := range wrong {
		if o.GetKind() == "Deployment" {
			expect.OK(t, unstructured.SetNestedField(o.Object, "yes", "spec", "template", "spec", "readOnly"))
			expect.Refused(a.apply(t.Context(), o, true))(t, "readOnly")
		}
	}
}

// deploymentOf returns the Deployment among the objects of an installation.
func deploymentOf(t *testing.T, objects []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == "Deployment" {
			d := &appsv1.Deployment{}
			expect.OK(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, d))
			return d
		}
	}
	t.Fatalf("%d objects, and no Deployment", len(objects))
	return nil
}

// filesWithDeployment are the files of manifests/install with a Deployment.
func filesWithDeployment(t *testing.T) []string {
	t.Helper()
	files := expect.Get(fs.Glob(install.Files, "*.yaml"))(t)
	return slices.DeleteFunc(files, func(file string) bool {
		return !slices.ContainsFunc(installed(t, file), func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" })
	})
}

// TestRestrictedPods shows that the pods of all installations are allowed under the
// restricted Pod Security Standard, and that the standard is enforced: without any one of
// these settings they are refused.
func TestRestrictedPods(t *testing.T) {
	ns := "restricted-install"
	expect.Get(suite.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: ns, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{}))(t)
	t.Cleanup(func() {
		expect.Holds(t, suite.client.CoreV1().Namespaces().Delete(context.Background(), ns, metav1.DeleteOptions{}))
	})
	serviceAccount(t, ns, accountName)
	create := func(file string, change func(*corev1.PodSpec)) error {
		template := deploymentOf(t, installed(t, file)).Spec.Template
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: template.Labels}, Spec: template.Spec}
		change(&p.Spec)
		_, err := suite.client.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	deployed := filesWithDeployment(t)
	expect.That(t, slices.Contains(deployed, "second-scheduler.yaml") && len(deployed) >= 5,
		"only %q have a Deployment", deployed)
	for _, file := range deployed {
		err := create(file, func(*corev1.PodSpec) {})
		expect.That(t, err == nil, "%s: %v", file, err)
	}
	for name, change := range map[string]func(*corev1.PodSpec){
		"runAsNonRoot":             func(s *corev1.PodSpec) { s.SecurityContext.RunAsNonRoot = nil },
		"seccompProfile":           func(s *corev1.PodSpec) { s.SecurityContext.SeccompProfile = nil },
		"allowPrivilegeEscalation": func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil },
		"capabilities":             func(s *corev1.PodSpec) { s.Containers[0].SecurityContext.Capabilities = nil },
	} {
		expect.Fails(t, create("second-scheduler.yaml", change), name)
	}
}
