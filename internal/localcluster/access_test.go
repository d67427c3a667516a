package localcluster

import (
	"context"
	"errors"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func names(objects []*unstructured.Unstructured) (out []string) {
	for _, o := range objects {
		out = append(out, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	return out
}

// Every binding keeps the service account of the manifest and gets the user of local clusters.
func TestSchedulerAccess(t *testing.T) {
	objects := expect.Get(schedulerAccess())(t)
	want := []string{
		"Namespace /yunikorn", "ServiceAccount yunikorn/paddock-scheduler",
		"ClusterRoleBinding /paddock-scheduler", "ClusterRoleBinding /paddock-scheduler-volumes",
		"ClusterRole /paddock-scheduler-priorityclasses", "ClusterRoleBinding /paddock-scheduler-priorityclasses",
		"ClusterRole /paddock-scheduler-daemonsets", "ClusterRoleBinding /paddock-scheduler-daemonsets",
		"ClusterRole /paddock-scheduler-holds", "ClusterRoleBinding /paddock-scheduler-holds",
		"Role kube-system/paddock-scheduler-lease", "RoleBinding kube-system/paddock-scheduler-lease",
		"RoleBinding kube-system/paddock-scheduler-authentication",
		"Role yunikorn/paddock-scheduler-queues", "RoleBinding yunikorn/paddock-scheduler-queues",
	}
	expect.Same(t, "objects", want, names(objects))
	both := []any{
		map[string]any{"kind": "ServiceAccount", "name": "paddock-scheduler", "namespace": "yunikorn"},
		map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-scheduler"},
	}
	for _, o := range objects {
		if _, isBinding := o.Object["roleRef"]; !isBinding {
			continue
		}
		expect.Same(t, o.GetName()+": subjects", both, o.Object["subjects"])
	}
}

func TestAccessInAnotherNamespace(t *testing.T) {
	objects := expect.Get(schedulerAccess())(t)
	before := names(objects)
	moved := movedTo(objects, "elsewhere")
	want := []string{"Role elsewhere/paddock-scheduler-queues", "RoleBinding elsewhere/paddock-scheduler-queues"}
	expect.Same(t, "objects", want, names(moved))
	expect.Same(t, "the originals were changed", before, names(objects))
}

func TestAwaitGranted(t *testing.T) {
	c := testCluster(t)
	asked := 0
	answer := func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		if s := review.Spec; s.User != "system:kube-scheduler" || s.ResourceAttributes.Namespace != "ns" {
			t.Errorf("asked about %+v", s)
		}
		asked++
		review.Status.Allowed = asked == 3
		return true, review, nil
	}
	c.client.(*fake.Clientset).PrependReactor("create", "subjectaccessreviews", answer)
	if err := c.awaitGranted(t.Context(), "ns"); err != nil || asked != 3 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.awaitGranted(ctx, "ns"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of patience", err)
	}
}
