package nodeagent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func (a *Agent) nodeSeen(o any) {
	node := o.(*corev1.Node)
	if !managed(node) {
		a.nodeGone(node) // the label was taken off
		return
	}
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
	if apierrors.IsNotFound(err) || (err == nil && !managed(node)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look up node %s: %w", name, err)
	}
	if err := a.completeLabels(ctx, node); err != nil {
		return err
	}
	report, err := nodeReport(node, a.options.KubeletVersion, time.Now())
	if err != nil || report == nil {
		return err
	}
	if _, err := a.client.CoreV1().Nodes().PatchStatus(ctx, name, report); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch status of node %s: %w", name, err)
	}
	return nil
}

func (a *Agent) completeLabels(ctx context.Context, node *corev1.Node) error {
	patch, err := missingLabels(node)
	if err != nil || patch == nil {
		return err
	}
	_, err = a.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("label node %s: %w", node.Name, err)
	}
	return nil
}

func managed(node *corev1.Node) bool { return node.Labels[LabelNode] == LabelNodeValue }
