package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/component-helpers/auth/rbac/validation"

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

// applier applies objects of any kind as an administrator, and notes the warnings of the API server.
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
	data, _ := json.Marshal(o.Object) // no error, as it was read from YAML
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

// TestRestrictedPods shows that the pods of all installations are allowed under the
// restricted Pod Security Standard, and that the standard is enforced: without any one of
// these settings they are refused.
func TestRestrictedPods(t *testing.T) {
	ns := "restricted-install"
	made(t, suite.client.CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: ns, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}})
	serviceAccount(t, ns, accountName)
	create := func(file string, change func(*corev1.PodSpec)) error {
		template := deploymentOf(t, installed(t, file)).Spec.Template
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: template.Labels}, Spec: template.Spec}
		change(&p.Spec)
		_, err := suite.client.CoreV1().Pods(ns).Create(t.Context(), p, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	isDeployment := func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" }
	deployed := slices.DeleteFunc(expect.Get(fs.Glob(install.Files, "*.yaml"))(t), func(file string) bool {
		return !slices.ContainsFunc(installed(t, file), isDeployment)
	})
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

// audited is the group of users that are no service accounts and are audited, too.
const audited = "audited"

// auditPolicy makes the API server log all requests of service accounts before it
// answers, except those of controllers.
const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  userGroups: ["system:serviceaccounts:kube-system"]
- level: Metadata
  userGroups: ["system:serviceaccounts", ` + audited + `]
- level: None
`

// auditArgs writes the policy, and returns the API server's flags for it.
func auditArgs(dir string) ([]string, error) {
	suite.audit = filepath.Join(dir, "audit.log")
	policy := filepath.Join(dir, "audit-policy.yaml")
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + suite.audit}, os.WriteFile(policy, []byte(auditPolicy), 0o600)
}

// accountsOf is the prefix of the user names of a namespace's service accounts.
func accountsOf(namespace string) string { return "system:serviceaccount:" + namespace + ":" }

// asked returns the requests to the API server of users with names of this prefix.
func asked(t *testing.T, users string) []auditv1.Event {
	t.Helper()
	log := expect.Get(os.ReadFile(suite.audit))(t)
	var out []auditv1.Event
	for line := range bytes.Lines(log) {
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			continue // the last line, which is still being written
		}
		if strings.HasPrefix(event.User.Username, users) {
			out = append(out, event)
		}
	}
	return out
}

// right is one verb of one of our rules, for one kind of object; name is empty if the
// rule names none, and namespace if it holds in all.
type right struct {
	role, namespace, verb, group, resource, name string
}

// bound is one of our roles that the service account has, and the namespace in which it
// holds; empty means all.
type bound struct {
	role, namespace string
	rules           []rbacv1.PolicyRule
}

// boundRoles returns the roles that bindings among the objects bind, and the names of
// bound roles of the API server.
func boundRoles(t *testing.T, objects []*unstructured.Unstructured) (ours []bound, upstream []string) {
	t.Helper()
	for _, binding := range objects {
		kind, _, _ := unstructured.NestedString(binding.Object, "roleRef", "kind")
		name, found, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
		if !found {
			continue
		}
		i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == kind && o.GetName() == name && o.GetNamespace() == binding.GetNamespace()
		})
		if i < 0 {
			upstream = append(upstream, name)
			continue
		}
		var role rbacv1.ClusterRole // the rules of a Role are in the same place
		expect.OK(t, runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &role))
		ours = append(ours, bound{name, binding.GetNamespace(), role.Rules})
	}
	return ours, upstream
}

// rights are all rights of a role, one by one.
func (b bound) rights() (all []right) {
	for _, rule := range b.rules {
		for _, one := range validation.BreakdownRule(rule) {
			if len(one.Resources) > 0 {
				name := strings.Join(one.ResourceNames, "") // at most one
				all = append(all, right{b.role, b.namespace, one.Verbs[0], one.APIGroups[0], one.Resources[0], name})
			}
		}
	}
	return all
}

func (r right) usedBy(event *auditv1.Event) bool {
	o := event.ObjectRef
	return o != nil && event.Verb == r.verb && o.APIGroup == r.group && o.Resource == r.resource && o.Subresource == "" &&
		(r.namespace == "" || o.Namespace == r.namespace) && (r.name == "" || o.Name == r.name) && allowedBy(event, r.role)
}

// allowedBy tells whether a role is the recorded reason for which a request was allowed. That is never
// our role if one of upstream's, with a binding of the same kind, allows the same.
func allowedBy(event *auditv1.Event, role string) bool {
	return event.Annotations["authorization.k8s.io/decision"] == "allow" &&
		strings.Contains(event.Annotations["authorization.k8s.io/reason"], fmt.Sprintf("Role %q", role))
}

// superfluous returns the rights that no request needed, and the upstream roles that no request needed.
func superfluous(events []auditv1.Event, ours []bound, upstream []string) []string {
	var out []string
	for _, b := range ours {
		for _, r := range b.rights() {
			if !slices.ContainsFunc(events, func(e auditv1.Event) bool { return r.usedBy(&e) }) {
				out = append(out, fmt.Sprintf("%+v", r))
			}
		}
	}
	for _, role := range upstream {
		if !slices.ContainsFunc(events, func(e auditv1.Event) bool { return allowedBy(&e, role) }) {
			out = append(out, role)
		}
	}
	return out
}

// checkRights checks the requests of an installation's service account: none was refused,
// and each right was used. With a role, it checks the rights of that role only, because a
// test that does less needs less.
func checkRights(t *testing.T, i installation, role string) {
	t.Helper()
	events := asked(t, accountsOf(i.namespace))
	checkNothingForbidden(t, events)
	ours, upstream := boundRoles(t, i.objects)
	expect.That(t, len(ours) >= 3 && len(upstream) == 3,
		"bound are %d roles of ours and %q", len(ours), upstream)
	if role != "" {
		upstream = nil
		ours = slices.DeleteFunc(ours, func(b bound) bool { return !strings.HasSuffix(b.role, role) })
	}
	checkNeeded(t, events, ours, upstream)
}

// checkNothingForbidden checks that there were requests, and that none was refused.
func checkNothingForbidden(t *testing.T, events []auditv1.Event) {
	t.Helper()
	expect.That(t, len(events) != 0, "the API server has written nothing down")
	for _, e := range events {
		expect.That(t, e.Annotations["authorization.k8s.io/decision"] != "forbid",
			"the API server refused %s %s", e.Verb, e.RequestURI)
	}
}

// checkNeeded checks that each right was used.
func checkNeeded(t *testing.T, events []auditv1.Event, ours []bound, upstream []string) {
	t.Helper()
	expect.Same(t, "what nothing needs, so remove it", []string(nil), superfluous(events, ours, upstream))
	if t.Failed() {
		return
	}
	// The check finds two planted rights.
	planted := bound{ours[0].role, ours[0].namespace, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}}
	found := superfluous(events, append(ours, planted), append(upstream, "system:node"))
	expect.That(t, len(found) == 2, "of two rights that are not needed are found %q", found)
}
