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
	both := []any{
		map[string]any{"kind": "ServiceAccount", "name": "paddock-scheduler", "namespace": "yunikorn"},
		map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-scheduler"},
	}
	for _, o := range objects {
		if _, isBinding := o.Object["roleRef"]; isBinding {
			expect.Same(t, o.GetName()+": subjects", both, o.Object["subjects"])
		}
	}
	before, moved := names(objects), movedTo(objects, "elsewhere")
	want := []string{"Role elsewhere/paddock-scheduler-queues", "RoleBinding elsewhere/paddock-scheduler-queues"}
	expect.Same(t, "objects in another namespace", want, names(moved))
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
	expect.Holds(t, c.awaitGranted(t.Context(), "ns"))
	expect.Same(t, "questions", 3, asked)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := c.awaitGranted(ctx, "ns"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of patience", err)
	}
}
