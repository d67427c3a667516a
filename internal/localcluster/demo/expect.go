package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// AnnotationExpectPlaced on an object that makes pods says how many of them must be
// placed; absent means all.
const AnnotationExpectPlaced = "local.paddock.io/expect-placed"

// Workload is an object of the samples that makes pods, or is one.
type Workload struct {
	// Kind, Namespace and Name are those of the object.
	Kind, Namespace, Name string
	// Pods is how many pods it makes, Placed how many of them must get a node.
	Pods, Placed int
	selector     labels.Selector // nil: the pod with this name
}

// String returns "Kind namespace/name".
func (w Workload) String() string { return w.Kind + " " + w.Namespace + "/" + w.Name }

// Workloads picks Deployments, Jobs and Pods from the objects, in their order. The error
// names the object with invalid numbers.
func Workloads(objects []*unstructured.Unstructured) ([]Workload, error) {
	var out []Workload
	for _, o := range objects {
		w := Workload{Kind: o.GetKind(), Namespace: o.GetNamespace(), Name: o.GetName()}
		var err error
		switch o.GetKind() {
		case "Deployment":
			w.Pods, err = number(o, 1, "spec", "replicas")
			match, _, _ := unstructured.NestedStringMap(o.Object, "spec", "selector", "matchLabels") // nil for another form
			w.selector = labels.SelectorFromSet(match)
		case "Job":
			w.Pods, err = number(o, 1, "spec", "parallelism")
			w.selector = labels.SelectorFromSet(labels.Set{"batch.kubernetes.io/job-name": w.Name})
		case "Pod":
			w.Pods = 1
		default:
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w, err)
		}
		w.Placed = w.Pods
		if text, ok := o.GetAnnotations()[AnnotationExpectPlaced]; ok {
			if w.Placed, err = strconv.Atoi(text); err != nil || w.Placed < 0 || w.Placed > w.Pods {
				return nil, fmt.Errorf("%s: annotation %s: %q is not a number from 0 to %d", w, AnnotationExpectPlaced, text, w.Pods)
			}
		}
		out = append(out, w)
	}
	return out, nil
}

func number(o *unstructured.Unstructured, absent int, path ...string) (int, error) {
	v, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil || !found {
		return absent, err
	}
	switch n := v.(type) {
	case int64:
		return int(n), nil
	case float64:
		return int(n), nil
	default:
		return 0, fmt.Errorf("%s is %v, want a number", strings.Join(path, "."), v)
	}
}

// Placement is the progress of the pods of one workload.
type Placement struct {
	Workload
	// Made counts the pods that exist, OnNode those that have a node, finished ones included.
	Made, OnNode int
	// Reason is why some pod has no node, by the scheduler's condition; empty without
	// one.
	Reason string
}

// Done tells whether enough pods have a node.
func (p Placement) Done() bool { return p.OnNode >= p.Placed }

// NotPlacedError lists the workloads with pods that were not placed in time.
type NotPlacedError struct{ Missing []Placement }

// Error names every workload, its counts, and the scheduler's reason.
func (e *NotPlacedError) Error() string {
	lines := []string{"not all sample pods were placed:"}
	for _, p := range e.Missing {
		line := fmt.Sprintf("  %s: %d of %d pods have a node", p.Workload, p.OnNode, p.Placed)
		if p.Reason != "" {
			line += ": " + p.Reason
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// AwaitPlaced polls the pods twice per second until all workloads are done. It calls
// report after every poll. After patience it gives up with a *NotPlacedError.
func AwaitPlaced(ctx context.Context, client kubernetes.Interface, workloads []Workload, patience time.Duration, report func([]Placement)) error {
	var missing []Placement
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		placements, err := look(ctx, client, workloads)
		if err != nil {
			return false, err
		}
		report(placements)
		missing = slices.DeleteFunc(slices.Clone(placements), Placement.Done)
		return len(missing) == 0, nil
	})
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case wait.Interrupted(err):
		return &NotPlacedError{missing}
	}
	return err
}

func look(ctx context.Context, client kubernetes.Interface, workloads []Workload) ([]Placement, error) {
	byNamespace := map[string][]corev1.Pod{}
	out := make([]Placement, 0, len(workloads))
	for _, w := range workloads {
		pods, seen := byNamespace[w.Namespace]
		if !seen {
			list, err := client.CoreV1().Pods(w.Namespace).List(ctx, metav1.ListOptions{})
			if err != nil {
				return nil, errors.Join(fmt.Errorf("list pods of namespace %s: %w", w.Namespace, err), context.Cause(ctx))
			}
			pods = list.Items
			byNamespace[w.Namespace] = pods
		}
		out = append(out, count(w, pods))
	}
	return out, nil
}

func count(w Workload, pods []corev1.Pod) Placement {
	p := Placement{Workload: w}
	for i := range pods {
		pod := &pods[i]
		if w.selector == nil && pod.Name != w.Name {
			continue
		}
		if w.selector != nil && !w.selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		p.Made++
		if pod.Spec.NodeName != "" {
			p.OnNode++
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				p.Reason = c.Message
			}
		}
	}
	return p
}
