package localcluster

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// grantScheduler lets UserScheduler read what our plugins need beyond upstream's role system:kube-scheduler.
func (c *Cluster) grantScheduler(ctx context.Context) error {
	read := []string{"get", "list", "watch"}
	const name = "local-cluster-scheduler"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
		{Verbs: read, APIGroups: []string{""}, Resources: []string{"configmaps", "namespaces"}},
		{Verbs: read, APIGroups: []string{"scheduling.k8s.io"}, Resources: []string{"priorityclasses"}},
		{Verbs: read, APIGroups: []string{"apps"}, Resources: []string{"daemonsets"}},
		{Verbs: append([]string{"create", "update", "patch"}, read...), APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}},
		{Verbs: append([]string{"patch"}, read...), APIGroups: []string{"scheduling.x-k8s.io"}, Resources: []string{"podgroups", "podgroups/status"}},
	}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: identities[UserScheduler].name}},
	}
	if _, err := c.client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("grant the scheduler its role: %w", err)
	}
	if _, err := c.client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("grant the scheduler its role: %w", err)
	}
	return nil
}
