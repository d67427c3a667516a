package localcluster

import (
	"context"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/paddock-scheduler/paddock/internal/localcluster/demo"
	"github.com/paddock-scheduler/paddock/manifests/rbac"
)

// accessNamespace is where the shipped manifest lets the scheduler read ConfigMaps.
const accessNamespace = "yunikorn"

// grantScheduler applies the RBAC manifest that users apply. UserScheduler gets all the
// rights that the manifest gives its service account, and the service account gets them
// too.
func (c *Cluster) grantScheduler(ctx context.Context) error {
	objects, err := schedulerAccess()
	if err != nil {
		return err
	}
	return c.grant(ctx, accessNamespace, objects)
}

// GrantConfigNamespace lets UserScheduler read ConfigMaps in an existing namespace, as
// the shipped manifest does in namespace yunikorn: it is for a scheduler with argument
// configNamespace. It returns when the API server agrees.
func (c *Cluster) GrantConfigNamespace(ctx context.Context, namespace string) error {
	objects, err := schedulerAccess()
	if err != nil {
		return err
	}
	return c.grant(ctx, namespace, movedTo(objects, namespace))
}

// grant applies the objects and waits until the API server has seen them.
func (c *Cluster) grant(ctx context.Context, namespace string, objects []*unstructured.Unstructured) error {
	applier, err := demo.NewApplier(c.admin)
	if err != nil {
		return err
	}
	if _, err := applier.Apply(ctx, objects); err != nil {
		return fmt.Errorf("grant the scheduler access: %w", err)
	}
	return c.awaitGranted(ctx, namespace)
}

// awaitGranted waits until UserScheduler may watch ConfigMaps, which is the last thing granted.
func (c *Cluster) awaitGranted(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               identities[UserScheduler].name,
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "watch", Resource: "configmaps"},
	}}
	err := poll(ctx, 10*time.Millisecond, func(ctx context.Context) (bool, error) {
		answer, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed, err
	})
	if err != nil {
		return fmt.Errorf("wait until the scheduler may read ConfigMaps of namespace %s: %w", namespace, err)
	}
	return nil
}

// schedulerAccess reads the shipped manifest and adds UserScheduler to the subjects of all its bindings.
func schedulerAccess() ([]*unstructured.Unstructured, error) {
	objects, err := demo.Read(rbac.Files)
	if err != nil {
		return nil, err
	}
	user := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": identities[UserScheduler].name}
	for _, o := range objects {
		subjects, found, err := unstructured.NestedSlice(o.Object, "subjects")
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if found {
			o.Object["subjects"] = append(subjects, user)
		}
	}
	return objects, nil
}

// movedTo returns the roles and bindings of accessNamespace, moved to another namespace.
// The subjects stay.
func movedTo(objects []*unstructured.Unstructured, namespace string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range objects {
		if o.GetNamespace() != accessNamespace || o.GetKind() == "ServiceAccount" {
			continue
		}
		o = o.DeepCopy()
		o.SetNamespace(namespace)
		out = append(out, o)
	}
	return out
}
