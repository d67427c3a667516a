package integration

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// teamQueues are one queue far below its guarantee, and one that borrows.
const teamQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: team, resources: {guaranteed: {vcore: 100}}, properties: {preemption.delay: 500ms}}
    - {name: evil, properties: {preemption.delay: 500ms}}
`

// takeLease writes another holder into the lease of the scheduler.
func takeLease(ctx context.Context) error {
	leases := suite.client.CoordinationV1().Leases("kube-system")
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		l, err := leases.Get(ctx, "paddock-scheduler", metav1.GetOptions{})
		if err != nil {
			return err
		}
		l.Spec.HolderIdentity, l.Spec.RenewTime = new("thief"), new(metav1.NowMicro())
		_, err = leases.Update(ctx, l, metav1.UpdateOptions{})
		return err
	})
}

// TestLeaseOfAnotherHolder: an account with all rights of a namespace cannot write the
// lease, and a lease of that name in its namespace changes nothing. While an account that
// may write the lease keeps it, the scheduler does nothing: the process that led ends, and
// the one that is started in its place waits. It goes on once the lease has run out.
func TestLeaseOfAnotherHolder(t *testing.T) {
	r, through := newReplica(t, "first")
	r.env = setup(t, teamQueues, through, elected, preemption("retryInterval", "1s"))
	e := r.env
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	tenant := policed{t, e.ns}
	tenant.allow("eve", "admin")
	leases := tenant.as("eve").CoordinationV1()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "paddock-scheduler"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: new("thief"), LeaseDurationSeconds: new(int32(3600))},
	}
	succeeds(e, "a tenant makes a lease of that name in its namespace", func() error {
		_, err := leases.Leases(e.ns).Create(e.Context(), lease, metav1.CreateOptions{})
		return err
	})
	if _, err := leases.Leases("kube-system").Update(e.Context(), lease, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a tenant may write the lease: %v", err)
	}
	e.create("lent", 4, inQueue("root.evil"))
	e.expect("lent", 4, 0, "")

	stolen := time.Now()
	e.ok(takeLease(e.Context()))
	keeping, stop := context.WithCancel(e.Context())
	kept := make(chan error, 1)
	go func() {
		var err error
		for ticker := time.NewTicker(retryPeriod); keeping.Err() == nil && err == nil; <-ticker.C {
			err = takeLease(context.WithoutCancel(keeping))
		}
		kept <- err
	}()
	eventually(e, patience, "the scheduler ends, because it has lost the lease", func() (bool, string) {
		return !e.process.Running(), ""
	})
	if did := r.deeds.between(stolen.Add(renewDeadline+retryPeriod), time.Time{}, deed.acts); len(did) > 0 {
		t.Errorf("long after it lost the lease it did this: %v", did)
	}
	asker := e.create("asker", 1, inQueue("root.team"), requests("cpu", "2"))[0]
	r.restart()
	e.expectBooks() // it has seen the pod
	throughout(e, calm, "the asker waits", func() (bool, string) { return e.get(asker).Spec.NodeName == "", "" })
	c.expectNoMore(calm, 0, "lent")
	if did := r.trespasses(time.Now()); len(did) > 0 {
		t.Errorf("without the lease it did this: %v", did)
	}
	stop()
	e.ok(<-kept)
	e.awaitRunning(asker)
	c.expectNoMore(calm, 2, "lent")
	if last := e.get(asker); !conditionIs(last, held, corev1.ConditionFalse) {
		t.Errorf("the hold has not ended: %v", last.Status.Conditions)
	}
}
