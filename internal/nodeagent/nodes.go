package nodeagent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

func (a *Agent) nodeSeen(o any) {
	node := o.(*corev1.Node)
	for _, key := range a.ledger.setNode(node) {
		a.podQueue.Add(key)
	}
	a.nodeQueue.Add(node.Name)
}

func (a *Agent) nodeGone(o any) {
	if node, ok := deleted[*corev1.Node](o); ok {
		a.ledger.dropNode(node.Name)
	}
}

// reconcileNode keeps the status of a node Ready.
func (a *Agent) reconcileNode(ctx context.Context, name string) error {
	node, err := a.nodes.Get(name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up node %s: %w", name, err)
	}
	report, err := nodeReport(node, a.kubeletVersion, time.Now())
	if err != nil || report == nil {
		return err
	}
	if _, err := a.client.CoreV1().Nodes().PatchStatus(ctx, name, report); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch status of node %s: %w", name, err)
	}
	return nil
}
