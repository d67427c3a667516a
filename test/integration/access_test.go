package integration

import (
	"context"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestAccessOfScheduler checks that the scheduler of these tests is the user
// system:kube-scheduler, that this user has few rights, and that they suffice for all
// writes of the scheduler. That nothing was forbidden is checked at the end of every
// test.
func TestAccessOfScheduler(t *testing.T) {
	e := setup(t, oneLeaf("1"), twoProfiles)
	clientConfig, err := clientcmd.BuildConfigFromFlags("", suite.cluster.KubeconfigPath(localcluster.UserScheduler))
	e.ok(err)
	client, err := kubernetes.NewForConfig(clientConfig)
	e.ok(err)
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	e.ok(err)
	if name := self.Status.UserInfo.Username; name != "system:kube-scheduler" {
		t.Errorf("the scheduler runs as %q", name)
	}
	for _, c := range []struct {
		namespace, verb, group, resource, subresource string
		may                                           bool
	}{
		{e.configNamespace(), "watch", "", "configmaps", "", true},
		{"yunikorn", "watch", "", "configmaps", "", true},
		{e.ns, "patch", "", "pods", "status", true},
		{e.ns, "delete", "", "pods", "", true},
		{"", "watch", "policy", "poddisruptionbudgets", "", true},
		{"", "list", "scheduling.k8s.io", "priorityclasses", "", true},
		{"", "watch", "scheduling.k8s.io", "priorityclasses", "", true},
		{"", "update", "scheduling.k8s.io", "priorityclasses", "", false},
		{"", "list", "apps", "daemonsets", "", true},
		{"", "watch", "apps", "daemonsets", "", true},
		{e.ns, "update", "apps", "daemonsets", "", false},
		{e.ns, "create", "events.k8s.io", "events", "", true},
		{e.ns, "watch", "", "configmaps", "", false},
		{e.configNamespace(), "update", "", "configmaps", "", false},
		{e.ns, "create", "", "pods", "", false},
		{e.ns, "update", "", "namespaces", "", false},
		{"", "patch", "", "nodes", "", true},
		{e.ns, "update", "", "nodes", "", false},
		{e.ns, "list", "", "secrets", "", false},
	} {
		review, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: c.namespace, Verb: c.verb, Group: c.group, Resource: c.resource, Subresource: c.subresource,
			}},
		}, metav1.CreateOptions{})
		e.ok(err)
		if review.Status.Allowed != c.may {
			t.Errorf("the scheduler may %s %s/%s in %s: %t, want %t", c.verb, c.resource, c.subresource, c.namespace, review.Status.Allowed, c.may)
		}
	}

	// Every kind of write once: bind, condition, events on pod and ConfigMap.
	e.create("p", 2, inQueue("root.a"))
	e.expect("p", 1, 1, reasons.OverMax)
	_, waiting := e.podsOf("p")
	e.awaitEvent(waiting[0], string(reasons.OverMax), "root.a")
	e.configure("partitions: none")
	configMap, err := suite.client.CoreV1().ConfigMaps(e.configNamespace()).Get(t.Context(), config.QueuesConfigMap, metav1.GetOptions{})
	e.ok(err)
	e.awaitEvent(configMap, string(reasons.ConfigurationInvalid), "")
	if line, found := e.logLine("forbidden"); found {
		t.Errorf("the log says %s", line)
	}
}

// TestStartsWithoutPriorityClasses runs the scheduler with only upstream's roles and
// access to the queues: it logs what is missing, places pods, and reads the
// PriorityClasses as soon as it may.
func TestStartsWithoutPriorityClasses(t *testing.T) {
	bindings := suite.client.RbacV1().ClusterRoleBindings()
	shipped, err := bindings.Get(t.Context(), "paddock-scheduler-priorityclasses", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	grant := func(ctx context.Context) error {
		again := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: shipped.Name}, Subjects: shipped.Subjects, RoleRef: shipped.RoleRef,
		}
		_, err := bindings.Create(ctx, again, metav1.CreateOptions{})
		return err
	}
	t.Cleanup(func() {
		if err := grant(context.Background()); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Error(err)
		}
	})
	if err := bindings.Delete(t.Context(), shipped.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, "PriorityClasses are forbidden", func() (bool, string) {
		answer, err := suite.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: "system:kube-scheduler", ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "list", Group: "scheduling.k8s.io", Resource: "priorityclasses",
			}},
		}, metav1.CreateOptions{})
		return err == nil && !answer.Status.Allowed, fmt.Sprint(err)
	})

	e := setup(t, oneLeaf("1"), func(s *settings) { s.refused = true })
	logged := func(text string) {
		t.Helper()
		eventually(t, patience, "the log says "+text, func() (bool, string) {
			line, found := e.logLine(text)
			return found, line
		})
	}
	logged("PriorityClasses cannot be read")
	e.create("p", 2, inQueue("root.a"))
	e.expect("p", 1, 1, reasons.OverMax)
	e.ok(grant(t.Context()))
	logged(`"Caches populated" type="*v1.PriorityClass"`)
}
