package integration

import (
	"context"
	"fmt"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// The service account of manifests/rbac/second-scheduler.yaml.
const accountNamespace, accountName = "yunikorn", "paddock-scheduler"

// asServiceAccount runs the scheduler as from the shipped manifest: under its service
// account, with the ConfigMap in its namespace, and leader election, with a lease without
// holder at the start. The lease is so long that a busy machine does not lose it: a test
// that kills the leader calls forgetLease.
func asServiceAccount(t *testing.T) func(*settings) {
	t.Helper()
	kubeconfig, err := suite.cluster.ServiceAccountKubeconfig(t.Context(), accountNamespace, accountName)
	if err != nil {
		t.Fatal(err)
	}
	forgetLease(t)
	t.Cleanup(func() { forgetLease(t) })
	return func(s *settings) {
		s.configNamespace = accountNamespace
		s.launch = localcluster.SchedulerOptions{Kubeconfig: kubeconfig, LeaderElection: true, Args: []string{
			"--leader-elect-lease-duration=2m", "--leader-elect-renew-deadline=90s", "--leader-elect-retry-period=500ms",
		}}
	}
}

// TestServiceAccount checks that the shipped RBAC manifest suffices for a second
// scheduler: to lead, to place pods by queues, and to take over the lease of a killed
// one. That nothing was forbidden is checked at the end, as in every test.
func TestServiceAccount(t *testing.T) {
	access := asServiceAccount(t)
	e := setup(t, oneLeaf("2"), access)
	t.Cleanup(e.deleteConfigMapOfAccount)
	e.checkIdentity()

	first := e.awaitLeader("")
	e.create("p", 4, inQueue("root.a"))
	e.expect("p", 2, 2, reasons.OverMax)
	e.awaitMetric(reloadSuccess, "1")
	running, _ := e.podsOf("p")
	before := where(running)

	e.kill()
	forgetLease(t)
	e.delete(running[0]) // while no scheduler runs
	e.start()
	second := e.awaitLeader(first)
	t.Logf("led by %s until it was killed, then by %s", first, second)
	e.expect("p", 2, 1, reasons.OverMax)
	running, _ = e.podsOf("p")
	if now := where(running); len(now) != 2 || !shares(before, now) {
		t.Errorf("pods were on %v before the restart, are on %v after it", before, now)
	}
	e.configure(oneLeaf("3"))
	e.expectStill("p", 3, 0, "")
	e.expectBooks()
	if line, found := e.logLine("forbidden"); found {
		t.Errorf("the log says %s", line)
	}
}

// shares tells whether some pod is on the same node in both.
func shares(a, b map[string]string) bool {
	for uid, node := range a {
		if b[uid] == node {
			return true
		}
	}
	return false
}

// checkIdentity checks that the kubeconfig is that of the service account.
func (e *env) checkIdentity() {
	e.Helper()
	clientConfig, err := clientcmd.BuildConfigFromFlags("", e.settings.launch.Kubeconfig)
	e.ok(err)
	client, err := kubernetes.NewForConfig(clientConfig)
	e.ok(err)
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(e.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	e.ok(err)
	if name := self.Status.UserInfo.Username; name != "system:serviceaccount:"+accountNamespace+":"+accountName {
		e.Fatalf("the scheduler runs as %q", name)
	}
}

// awaitLeader waits until the lease has a holder other than the one before, and returns
// it.
func (e *env) awaitLeader(before string) string {
	e.Helper()
	holder := ""
	eventually(e, patience, "the scheduler leads", func() (bool, string) {
		lease, err := suite.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(e.Context(), "paddock-scheduler", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false, fmt.Sprint(err)
		}
		holder = *lease.Spec.HolderIdentity
		return holder != "" && holder != before, holder
	})
	return holder
}

// deleteConfigMapOfAccount removes the queues from a namespace that stays.
func (e *env) deleteConfigMapOfAccount() {
	err := suite.client.CoreV1().ConfigMaps(accountNamespace).Delete(context.Background(), config.QueuesConfigMap, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		e.Error(err)
	}
}
