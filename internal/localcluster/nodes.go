package localcluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	nodeutil "k8s.io/kubernetes/pkg/util/node"

	"github.com/paddock-scheduler/paddock/internal/nodeagent"
)

// NodeSpec describes simulated nodes.
type NodeSpec = nodeagent.NodeSpec

// AddNodes creates n nodes, waits until they are Ready and no controller taints them, and
// returns their names. The numbers in the names continue where the last call with the
// same prefix ended.
func (c *Cluster) AddNodes(ctx context.Context, spec NodeSpec, n int) ([]string, error) {
	prefix := spec.Name(0)
	c.mu.Lock()
	first := c.nextNode[prefix]
	c.nextNode[prefix] = first + n
	c.mu.Unlock()
	names := make([]string, n)
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range n {
		if groupCtx.Err() != nil {
			break
		}
		group.Go(func() error {
			node, err := spec.Node(first + i)
			if err != nil {
				return err
			}
			names[i] = node.Name
			if _, err := c.client.CoreV1().Nodes().Create(groupCtx, node, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create node %s: %w", node.Name, err)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return names, c.AwaitNodes(ctx, names...)
}

// AwaitNodes waits until the nodes are Ready and no controller taints them.
func (c *Cluster) AwaitNodes(ctx context.Context, names ...string) error {
	interval := 100 * time.Millisecond
	if len(names) > 300 {
		interval = time.Second // each poll reads all nodes
	}
	patience := time.Minute + time.Duration(len(names))*100*time.Millisecond
	var missing string
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := poll(ctx, interval, func(ctx context.Context) (bool, error) {
		nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, fmt.Errorf("list nodes: %w", err)
		}
		usable := map[string]bool{}
		for i := range nodes.Items {
			usable[nodes.Items[i].Name] = nodeUsable(&nodes.Items[i])
		}
		for _, name := range names {
			if !usable[name] {
				missing = name
				return false, nil
			}
		}
		return true, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("node %s is not usable after %v, see the logs of %s and %s: %w", missing, patience, Nodes, ControllerManager, err)
	}
	return err
}

// nodeUsable tells whether a node is Ready and has no taint of the node controllers.
func nodeUsable(node *corev1.Node) bool {
	return nodeutil.IsNodeReady(node) && !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return strings.HasPrefix(t.Key, "node.kubernetes.io/")
	})
}
