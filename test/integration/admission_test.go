package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// policed is a namespace of a cluster with the policies.
type policed struct {
	*testing.T
	ns string
}

// applyPolicies applies objects, and removes them when the test ends.
func applyPolicies(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	a := newApplier(t)
	t.Cleanup(func() {
		for _, o := range objects {
			expect.Holds(t, a.delete(context.Background(), o))
		}
		// The API server drops the policies a moment later, and the next test may make such pods.
		m := marks{markQueueNote: "root..x", markInfo: "nonsense", "annotation large": strings.Repeat("x", 1<<17)}
		dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
		succeeds(t, "the policies are gone", func() error {
			_, err := suite.client.CoreV1().Pods(metav1.NamespaceDefault).Create(context.Background(), m.pod("free", profile), dry)
			return err
		})
	})
	for _, o := range objects {
		expect.Get(a.apply(t.Context(), o, false))(t)
	}
	expect.Same(t, "warnings of the API server", []string(nil), a.warned())
}

// newPoliced makes a namespace with annotations. The name gets a prefix and is unique,
// because the namespace of a test that has just ended may still exist.
func newPoliced(t *testing.T, prefix string, annotations map[string]string) policed {
	t.Helper()
	ns := fmt.Sprintf("%s-%d", prefix, tests.Add(1))
	e := &env{T: t, id: ns}
	e.namespace(ns, annotations)
	t.Cleanup(func() {
		expect.Holds(t, suite.client.CoreV1().Namespaces().Delete(context.Background(), ns, metav1.DeleteOptions{}))
	})
	return policed{t, ns}
}

func (p policed) annotate(key, value string) {
	p.Helper()
	change := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, key, value)
	expect.Get(suite.client.CoreV1().Namespaces().Patch(p.Context(), p.ns, types.MergePatchType, change, metav1.PatchOptions{}))(p)
}

// as returns a client of a user, or of a service account like "system:serviceaccount:ns:name".
func (p policed) as(user string) kubernetes.Interface {
	p.Helper()
	return p.asMember(user, groupsOf(user))
}

// groupsOf are the groups of a user without other groups.
func groupsOf(user string) []string {
	out := []string{"system:authenticated"}
	if account, is := strings.CutPrefix(user, "system:serviceaccount:"); is {
		ns, _, _ := strings.Cut(account, ":")
		out = append(out, "system:serviceaccounts", "system:serviceaccounts:"+ns)
	}
	return out
}

// asMember is as for a user with these groups.
func (p policed) asMember(user string, groups []string) kubernetes.Interface {
	p.Helper()
	return expect.Get(kubernetes.NewForConfig(access(user, groups)))(p)
}

// access is the access of a user with these groups.
func access(user string, groups []string) *clientrest.Config {
	config := suite.cluster.AdminConfig()
	config.Impersonate = clientrest.ImpersonationConfig{UserName: user, Groups: groups}
	return config
}

func (p policed) allow(user, role string) {
	p.Helper()
	expect.Get(suite.client.RbacV1().RoleBindings(p.ns).Create(p.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}, metav1.CreateOptions{}))(p)
}

// marks are labels and annotations, by "label KEY" or "annotation KEY".
type marks map[string]string

const (
	markInfo        = "annotation " + placement.KeyUserInfo
	markUsername    = "label " + placement.KeyUsername
	markQueue       = "label " + placement.KeyQueue
	markQueueNote   = "annotation " + placement.KeyQueue
	markLegacyQueue = "label " + placement.KeyLegacyQueue
	markApp         = "label " + placement.KeyApplicationID
	markAppNote     = "annotation " + placement.KeyApplicationID
)

func (m marks) meta() metav1.ObjectMeta {
	out := metav1.ObjectMeta{Labels: map[string]string{"app": "x"}, Annotations: map[string]string{}}
	for key, value := range m {
		if name, is := strings.CutPrefix(key, "label "); is {
			out.Labels[name] = value
		} else {
			out.Annotations[strings.TrimPrefix(key, "annotation ")] = value
		}
	}
	return out
}

func podSpec(scheduler string) corev1.PodSpec {
	return corev1.PodSpec{
		SchedulerName: scheduler, RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{pool: "nobody"},
		Containers: []corev1.Container{{Name: "c", Image: "none"}},
	}
}

// pod is a pod of a scheduler with these marks.
func (m marks) pod(name, scheduler string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: m.meta(), Spec: podSpec(scheduler)}
	pod.Name = name
	return pod
}

// create makes a pod of our profile with these marks, as an administrator.
func (p policed) create(name string, m marks) {
	p.Helper()
	expect.Get(suite.client.CoreV1().Pods(p.ns).Create(p.Context(), m.pod(name, profile), metav1.CreateOptions{}))(p)
}

func (p policed) patch(client kubernetes.Interface, pod, change string, subresources ...string) error {
	p.Helper()
	pods := client.CoreV1().Pods(p.ns)
	_, err := pods.Patch(p.Context(), pod, types.MergePatchType, []byte(change), metav1.PatchOptions{}, subresources...)
	return err
}

// dryRun creates, in a dry run, a pod of a scheduler with these marks.
func (p policed) dryRun(client kubernetes.Interface, scheduler string, m marks, changes ...func(*corev1.Pod)) (*corev1.Pod, error) {
	p.Helper()
	pod := m.pod("x", scheduler)
	for _, change := range changes {
		change(pod)
	}
	return client.CoreV1().Pods(p.ns).Create(p.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// try is dryRun as an administrator.
func (p policed) try(scheduler string, m marks) error {
	p.Helper()
	_, err := p.dryRun(suite.client, scheduler, m)
	return err
}

// make requests, as a user and as a dry run, an object of a kind with pods that have these marks.
func (p policed) make(user, kind string, m marks) error {
	p.Helper()
	_, err := p.ask(user, kind, m)
	return err
}

const selects = `{"selector":{"matchLabels":{"app":"x"}},"template":%s}`

// kinds are the kinds that make pods, with their specs around a template of pods, and Pod.
var kinds = map[string]struct{ version, spec string }{
	"Pod": {}, "Deployment": {"apps/v1", selects}, "DaemonSet": {"apps/v1", selects}, "StatefulSet": {"apps/v1", selects}, "ReplicaSet": {"apps/v1", selects},
	"ReplicationController": {"v1", `{"selector":{"app":"x"},"template":%s}`},
	"Job":                   {"batch/v1", `{"template":%s}`},
	"CronJob":               {"batch/v1", `{"schedule":"@daily","jobTemplate":{"spec":{"template":%s}}}`},
}

// ask is make, and returns the annotations of the pod, or of the template, that results.
func (p policed) ask(user, kind string, m marks) (map[string]string, error) {
	p.Helper()
	if kind == "Pod" {
		made, err := p.dryRun(p.as(user), profile, m)
		return made.Annotations, err
	}
	template := corev1.PodTemplateSpec{ObjectMeta: m.meta(), Spec: podSpec(profile)}
	if template.Spec.RestartPolicy = corev1.RestartPolicyAlways; strings.HasSuffix(kind, "Job") {
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	pods, o := expect.Get(json.Marshal(template))(p), &unstructured.Unstructured{}
	expect.OK(p, o.UnmarshalJSON(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"name":"x"},"spec":`+kinds[kind].spec+`}`, kinds[kind].version, kind, pods)))
	client := expect.Get(dynamic.NewForConfig(access(user, groupsOf(user))))(p)
	resource := o.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(kind) + "s")
	made, err := client.Resource(resource).Namespace(p.ns).Create(p.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	path := []string{"spec", "template", "metadata", "annotations"}
	if kind == "CronJob" {
		path = append([]string{"spec", "jobTemplate"}, path...)
	}
	annotations, _, err := unstructured.NestedStringMap(made.Object, path...)
	return annotations, err
}

// expectAnswer compares an answer with the expected one: part of the message of a refusal, or empty.
func (p policed) expectAnswer(what string, err error, says string) {
	p.Helper()
	refused := err != nil && strings.Contains(err.Error(), says)
	expect.That(p, refused == (says != ""), "%s: got %v, want %q in the refusal, or none if that is empty",
		what, err, says)
}

// awaitPolicies waits until the policies refuse a request with these words: the API
// server applies policies and roles a moment after they are created.
func (p policed) awaitPolicies(says string, refused func() error) {
	p.Helper()
	eventually(p, patience, "the policies are in force", func() (bool, string) {
		err := refused()
		return err != nil && strings.Contains(err.Error(), says), fmt.Sprint(err)
	})
}

// awaitValidation waits until both policies of admission.yaml are in force, in whatever
// order the API server applies them. The user may make pods only under the user's own
// name. The pod of the first request says that name, because another policy can require
// it, and the answer of that policy may come first.
func (p policed) awaitValidation(user string) {
	p.Helper()
	own := fmt.Sprintf(`{"user":%q,"groups":["system:authenticated"]}`, user)
	p.awaitPolicies("cannot be", func() error { return p.make(user, "Pod", marks{markQueueNote: "root..x", markInfo: own}) })
	p.awaitPolicies("may not say", func() error { return p.make(user, "Pod", marks{markInfo: aliceInfo}) })
}

const (
	aliceInfo = `{"user":"alice","groups":["staff"]}`
	bobInfo   = `{"user":"bob","groups":["system:authenticated"]}` // as bob may write it
)

// TestAccountsThatMaySetTheUser is a table of requests: the account that makes an object, the user
// that the pods name, and the answer of the API server.
func TestAccountsThatMaySetTheUser(t *testing.T) {
	applyPolicies(t, installed(t, "admission.yaml"))
	p := newPoliced(t, "policed-user", nil)
	const anybody, trusted = "bob", "operator"
	for _, user := range []string{anybody, trusted} {
		p.allow(user, "admin")
	}
	p.allow(trusted, "paddock-set-user")
	info := marks{markInfo: aliceInfo}
	p.awaitPolicies("bob may not say", func() error { return p.make(anybody, "Pod", info) })
	succeeds(t, "the operator may", func() error { return p.make(trusted, "Pod", info) })
	const (
		replicaSets = "system:serviceaccount:kube-system:replicaset-controller"
		mayNot      = "bob may not say whose pods these are"
		looks       = `must look like {"user":"name","groups":["group"]}`
	)
	for kind := range kinds {
		p.expectAnswer(kind+" of nobody", p.make(anybody, kind, nil), "")
		p.expectAnswer(kind+" with user.info", p.make(anybody, kind, info), mayNot)
		p.expectAnswer(kind+" with username", p.make(anybody, kind, marks{markUsername: "alice"}), mayNot)
		p.expectAnswer(kind+" by the operator", p.make(trusted, kind, info), "")
		p.expectAnswer(kind+" by the operator, wrong", p.make(trusted, kind, marks{markInfo: `alice`}), looks)
		p.expectAnswer(kind+" of oneself", p.make(anybody, kind, marks{markInfo: bobInfo}), "")
		p.expectAnswer(kind+" of oneself by name alone", p.make(anybody, kind, marks{markUsername: "bob"}), mayNot+": label yunikorn.apache.org/username alone leaves out the groups")
		p.expectAnswer(kind+" of oneself by name, too", p.make(anybody, kind, marks{markInfo: bobInfo, markUsername: "bob"}), "")
		p.expectAnswer(kind+" by the operator, by name alone", p.make(trusted, kind, marks{markUsername: "alice"}), "")
	}
	for what, m := range map[string]marks{
		"another user":           {markInfo: `{"user":"alice","groups":["system:authenticated"]}`},
		"other groups":           {markInfo: `{"user":"bob","groups":["system:authenticated","admins"]}`},
		"no groups":              {markInfo: `{"user":"bob","groups":[]}`},
		"groups left out":        {markInfo: `{"user":"bob"}`},
		"a second user":          {markInfo: `{"user":"bob","groups":["system:authenticated"],"user":"alice"}`},
		"a second USER":          {markInfo: `{"user":"bob","groups":["system:authenticated"],"USER":"alice"}`},
		"a first User":           {markInfo: `{"User":"alice","user":"bob","groups":["system:authenticated"]}`},
		"oneself and by another": {markInfo: `{"user":"bob","groups":["system:authenticated"]}`, markUsername: "alice"},
	} {
		p.expectAnswer(what, p.make(anybody, "Pod", m), mayNot)
		p.expectAnswer(what+", what to write", p.make(anybody, "Pod", m), `must be exactly {"user":"bob","groups":["system:authenticated"]}`)
	}
	// A name with quotes that would yield another JSON document.
	const odd = `eve","groups":["system:authenticated"],"user":"alice`
	p.allow(odd, "admin")
	succeeds(t, "eve may make pods", func() error { return p.make(odd, "Pod", nil) })
	p.expectAnswer("a name with quotes", p.make(odd, "Pod", marks{markInfo: `{"user":"` + odd + `","groups":["system:authenticated"]}`}), "may not say whose pods these are")
	p.expectAnswer("empty user.info", p.make(anybody, "Pod", marks{markInfo: ""}), "")
	p.expectAnswer("a pod by a controller", p.make(replicaSets, "Pod", info), "")
	p.expectAnswer("a pod by an administrator", p.try(profile, info), "")
	for text, says := range map[string]string{
		`{"user":"alice"}`:                        "",
		"{\n \"groups\": [],\n \"user\" : \"a\"}": "",
		`{"user":""}`:                             looks,
		`{"groups":["a"]}`:                        looks,
		`["alice"]`:                               looks,
	} {
		p.expectAnswer(text, p.make(trusted, "Pod", marks{markInfo: text}), says)
	}
	p.checkYuniKorn(anybody)
	p.checkUserUpdates(anybody, trusted)
	p.checkTypes("paddock-user", "paddock-names")
}

func (p policed) checkUserUpdates(anybody, trusted string) {
	p.create("there", marks{markInfo: aliceInfo})
	set := func(user, kind, key, value string, subresources ...string) error {
		change := fmt.Sprintf(`{"metadata":{%q:{%q:%s}}}`, kind, key, value)
		return p.patch(p.as(user), "there", change, subresources...)
	}
	const cannot = "the user of a pod cannot be changed"
	const nodes, bob = "system:serviceaccount:kube-system:node-controller", `"{\"user\":\"bob\"}"`
	for _, user := range []string{anybody, trusted} {
		name := `"` + user + `"`
		p.expectAnswer(user+" changes user.info", set(user, "annotations", placement.KeyUserInfo, bob), cannot)
		p.expectAnswer(user+" removes user.info", set(user, "annotations", placement.KeyUserInfo, "null"), cannot)
		p.expectAnswer(user+" adds username", set(user, "labels", placement.KeyUsername, name), cannot)
		p.expectAnswer(user+" changes something else", set(user, "annotations", "note", name), "")
	}
	p.expectAnswer("the status is a way round", set(nodes, "annotations", placement.KeyUserInfo, bob, "status"), cannot)

	deployments := suite.client.AppsV1().Deployments(p.ns)
	template := corev1.PodTemplateSpec{ObjectMeta: marks{markInfo: aliceInfo}.meta(), Spec: podSpec(profile)}
	template.Spec.RestartPolicy = corev1.RestartPolicyAlways
	d := expect.Get(deployments.Create(p.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "there"}, Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(0)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}, Template: template,
	}}, metav1.CreateOptions{}))(p)
	update := func(user string, change func(*appsv1.Deployment)) error {
		changed := d.DeepCopy()
		changed.ResourceVersion = ""
		change(changed)
		_, err := p.as(user).AppsV1().Deployments(p.ns).Update(p.Context(), changed, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	toBob := func(d *appsv1.Deployment) {
		d.Spec.Template.Annotations[placement.KeyUserInfo] = `{"user":"bob"}`
	}
	p.expectAnswer("another template", update(anybody, toBob), "bob may not say whose pods these are")
	p.expectAnswer("another template by the operator", update(trusted, toBob), "")
	p.expectAnswer("the same user", update(anybody, func(d *appsv1.Deployment) { d.Spec.Paused = true }), "")
	byName := func(d *appsv1.Deployment) {
		delete(d.Spec.Template.Annotations, placement.KeyUserInfo)
		d.Spec.Template.Labels[placement.KeyUsername] = anybody
	}
	p.expectAnswer("oneself by name alone", update(anybody, byName), "leaves out the groups")
	p.expectAnswer("oneself by name, too", update(anybody, func(d *appsv1.Deployment) {
		byName(d)
		d.Spec.Template.Annotations[placement.KeyUserInfo] = bobInfo
	}), "")
	// Without a version, because the status that the controller writes meanwhile would conflict.
	write := func() {
		d.ResourceVersion = ""
		d = expect.Get(deployments.Update(p.Context(), d, metav1.UpdateOptions{}))(p)
	}
	// The update removes the annotation, and leaves only the label that stood beside it.
	byName(d)
	d.Spec.Template.Annotations[placement.KeyUserInfo] = aliceInfo
	write()
	p.expectAnswer("the label is left alone", update(anybody, byName), "leaves out the groups")
	byName(d)
	write() // as before the policies
	p.expectAnswer("alone as before", update(anybody, func(d *appsv1.Deployment) { d.Spec.Paused = true }), "")
	p.expectAnswer("no user any more", update(anybody, func(d *appsv1.Deployment) { delete(d.Spec.Template.Annotations, placement.KeyUserInfo) }), "")
}

// checkTypes waits for the controller that checks the types of expressions, and expects no findings.
func (p policed) checkTypes(policies ...string) {
	p.Helper()
	for _, name := range policies {
		eventually(p, patience, "the types of "+name+" are checked", func() (bool, string) {
			policy, err := suite.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(p.Context(), name, metav1.GetOptions{})
			if err != nil || policy.Status.TypeChecking == nil {
				return false, fmt.Sprint(err)
			}
			for _, w := range policy.Status.TypeChecking.ExpressionWarnings {
				p.Errorf("%s: %s: %s", name, w.FieldRef, w.Warning)
			}
			return true, ""
		})
	}
}

// TestNamesOfQueues is a table of names. A pod that is older than the policies can still be changed.
func TestNamesOfQueues(t *testing.T) {
	p := newPoliced(t, "policed-names", nil)
	p.create("old", marks{markQueueNote: "root..x", markAppNote: "a b", markInfo: "nonsense"})
	applyPolicies(t, installed(t, "admission.yaml"))
	const user = "bob"
	p.allow(user, "admin")
	long := strings.Repeat("a", 65)
	p.awaitValidation(user)
	p.expectAnswer("a pod from before", p.patch(p.as(user), "old", `{"metadata":{"annotations":{"note":"x"}}}`), "")
	for _, c := range []struct {
		m    marks
		says string
	}{
		{nil, ""},
		{marks{markQueue: "root.team.queue"}, ""},
		{marks{markLegacyQueue: "team"}, ""},
		{marks{markQueueNote: "root.a:b.c/d.e#f.g@h"}, ""},
		{marks{markQueueNote: "team.with.dots"}, ""}, // one name: the dots are replaced
		{marks{markQueueNote: "root..x"}, `queue "root..x" cannot be`},
		{marks{markQueueNote: "root."}, `queue "root." cannot be`},
		{marks{markQueueNote: "root.a b"}, `queue "root.a b" cannot be`},
		{marks{markQueueNote: "root." + long}, "1 to 64 letters"},
		{marks{markQueueNote: "root" + strings.Repeat(".a", 64)}, "cannot be"},
		{marks{markQueueNote: "root" + strings.Repeat(".a", 63)}, ""},
		{marks{markQueueNote: "root.@recovery@"}, "for running pods that no other queue takes"},
		{marks{markQueueNote: "root..x", markQueue: "root.x"}, ""}, // the label wins
		{marks{markQueueNote: "root..x", markLegacyQueue: "x"}, `queue "root..x" cannot be`},
		{marks{markApp: "app-1"}, ""},
		{marks{markAppNote: "app-1.x_y"}, ""},
		{marks{markAppNote: "spaces in it"}, `application "spaces in it" of annotation yunikorn.apache.org/app-id cannot be`},
		{marks{markAppNote: strings.Repeat("a", 64)}, "1 to 63"},
	} {
		p.expectAnswer(fmt.Sprint(c.m), p.make(user, "Pod", c.m), c.says)
	}
	// Pods of other schedulers may have any queue name.
	_, err := p.dryRun(p.as(user), corev1.DefaultSchedulerName, marks{markQueueNote: "root..x"})
	p.expectAnswer("a pod of another scheduler", err, "")
}
