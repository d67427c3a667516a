package evict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

var nodeResource = schema.GroupResource{Resource: "nodes"}

// nodes are node n1 of a cluster: a client, and a lister that sees a change at once, unless
// it is blind.
type nodes struct {
	clientcorev1.NodeInterface
	cluster *cluster

	mu           sync.Mutex   // guards the rest
	have, listed *corev1.Node // nil for none
	version      int
	blind        bool
	hide         func(any) (any, error)
}

// showTo gives a process its node informer with the existing node.
func (n *nodes) showTo(hide func(any) (any, error)) {
	n.mu.Lock()
	n.hide, n.blind = hide, false
	n.mu.Unlock()
	n.look()
}

// look updates the lister.
func (n *nodes) look() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listed = nil
	if n.have != nil {
		shown, _ := n.hide(n.have.DeepCopy())
		n.listed = shown.(*corev1.Node)
	}
}

// update changes the node without a call.
func (n *nodes) update(change func(*corev1.Node)) {
	n.mu.Lock()
	changed := n.have.DeepCopy()
	change(changed)
	n.version++
	changed.ResourceVersion = strconv.Itoa(n.version)
	n.have = changed
	blind := n.blind
	n.mu.Unlock()
	if !blind {
		n.look()
	}
}

func (n *nodes) remove() {
	n.mu.Lock()
	n.have = nil
	n.mu.Unlock()
	n.look()
}

// taints returns the taints of the node as the API server has them.
func (n *nodes) taints() (out []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.have.Spec.Taints {
		out = append(out, t.ToString())
	}
	return out
}

// shown returns the taints of the node as the lister has them.
func (n *nodes) shown() []corev1.Taint {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listed.Spec.Taints
}

func (n *nodes) Get(ctx context.Context, name string, _ metav1.GetOptions) (found *corev1.Node, err error) {
	err = n.cluster.serve(ctx, call{verb: "get", node: name}, func() error {
		n.mu.Lock()
		defer n.mu.Unlock()
		if found = n.have; found == nil {
			return apierrors.NewNotFound(nodeResource, name)
		}
		found = found.DeepCopy()
		return nil
	})
	return found, err
}

func (n *nodes) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, _ metav1.PatchOptions, sub ...string) (written *corev1.Node, err error) {
	var patch corev1.Node
	if err := json.Unmarshal(data, &patch); err != nil || kind != types.MergePatchType || len(sub) > 0 {
		return nil, fmt.Errorf("patch %s of %v: %s: %w", kind, sub, data, errors.Join(err, errors.New("not as expected")))
	}
	made := call{verb: "untaint", node: name, uid: patch.UID}
	for _, t := range patch.Spec.Taints {
		if isHeld(t) {
			made.verb = "taint " + t.Value
		}
	}
	err = n.cluster.serve(ctx, made, func() error {
		n.mu.Lock()
		have := n.have
		n.mu.Unlock()
		switch {
		case have == nil:
			return apierrors.NewNotFound(nodeResource, name)
		case have.UID != patch.UID || have.ResourceVersion != patch.ResourceVersion:
			return apierrors.NewConflict(nodeResource, name, errors.New("the object has been modified"))
		}
		n.update(func(node *corev1.Node) {
			node.Spec.Taints = patch.Spec.Taints
			written = node
		})
		return nil
	})
	return written, err
}

// Lister returns the informer's lister.
func (n *nodes) Lister() nodeLister { return nodeLister{n} }

type nodeLister struct{ *nodes }

func (nodeLister) List(labels.Selector) ([]*corev1.Node, error) {
	return nil, errors.New("nodes are not listed")
}

func (l nodeLister) Get(name string) (*corev1.Node, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listed == nil {
		return nil, apierrors.NewNotFound(nodeResource, name)
	}
	return l.listed, nil
}
