package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// refuse makes the API server refuse requests that a rule matches and that do not fulfil
// a CEL expression; this takes effect a moment later. allow ends it.
func (e *env) refuse(name string, rule admissionv1.RuleWithOperations, expression, message string) (allow func()) {
	e.Helper()
	fail := admissionv1.Fail
	policies := suite.client.AdmissionregistrationV1().ValidatingAdmissionPolicies()
	bindings := suite.client.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	_, err := policies.Create(e.Context(), &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy:    &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: rule}}},
			Validations:      []admissionv1.Validation{{Expression: expression, Message: message}},
		},
	}, metav1.CreateOptions{})
	e.ok(err)
	_, err = bindings.Create(e.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	e.ok(err)
	allow = sync.OnceFunc(func() {
		expect.Holds(e, bindings.Delete(context.Background(), name, metav1.DeleteOptions{}))
		expect.Holds(e, policies.Delete(context.Background(), name, metav1.DeleteOptions{}))
	})
	e.Cleanup(allow)
	return allow
}

// asScheduler is a client with the rights of the scheduler.
func (e *env) asScheduler() kubernetes.Interface {
	e.Helper()
	config := expect.Get(clientcmd.BuildConfigFromFlags("", suite.cluster.KubeconfigPath(localcluster.UserScheduler)))(e)
	client := expect.Get(kubernetes.NewForConfig(config))(e)
	return client
}

// awaitRefusal waits until the API server refuses a request, which is a dry run.
func (e *env) awaitRefusal(what string, ask func() error) {
	e.Helper()
	eventually(e, patience, "the scheduler may not "+what, func() (bool, string) {
		err := ask()
		return apierrors.IsForbidden(err) || apierrors.IsInvalid(err), fmt.Sprint(err)
	})
}

// dryRun makes the API server judge a request without effect.
var dryRun = []string{metav1.DryRunAll}

// protect makes the API server forbid the scheduler to delete a pod. It returns when that
// is in force; allow ends it.
func (e *env) protect(p *corev1.Pod) (allow func()) {
	e.Helper()
	allow = e.refuse(e.id+"-protect", admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Delete},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}, fmt.Sprintf("request.userInfo.username != 'system:kube-scheduler' || oldObject.metadata.uid != '%s'", p.UID), "this pod is protected")
	scheduler := e.asScheduler()
	e.awaitRefusal("delete "+p.Name, func() error {
		return scheduler.CoreV1().Pods(p.Namespace).Delete(e.Context(), p.Name, metav1.DeleteOptions{DryRun: dryRun})
	})
	return allow
}

// TestPlanThatFails checks a plan when the API server refuses the deletion of its victim:
// the plan fails, events and conditions say so, the hold is released, and no other pod is
// preempted instead.
func TestPlanThatFails(t *testing.T) {
	e := setup(t, preemptionQueues, preemption("retryInterval", "500ms"), func(s *settings) { s.refused = true })
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	e.fill("older", 3, inQueue("root.borrows"))
	kept := e.createLater(e.pod("kept", "kept", inQueue("root.borrows")))
	e.expect("kept", 1, 0, "")
	e.protect(kept)

	asker := e.createPod(e.pod("asker", "asker", inQueue("root.owed")))
	e.awaitPod(asker, "holds the node no more", func(p *corev1.Pod) bool { return conditionIs(p, held, corev1.ConditionFalse) })
	e.awaitNote(asker, kept.Name, "protected")
	e.awaitExplained(asker, reasons.HoldGivenUp)
	e.awaitPod(kept, "is not to go any more", func(p *corev1.Pod) bool { return !conditionIs(p, corev1.DisruptionTarget, corev1.ConditionTrue) })
	c.expectNoMore(2*time.Second, 0, "older", "kept")
	e.expectBooks()
	e.checkAlive(kept)
}

// checkAlive checks that a pod runs and is not being deleted.
func (e *env) checkAlive(p *corev1.Pod) {
	e.Helper()
	if now := e.get(p); now.UID != p.UID || now.DeletionTimestamp != nil || now.Status.Phase != corev1.PodRunning {
		e.Errorf("pod %s was to stay, and is %s", p.Name, describe(e.Context(), now))
	}
}
