package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// SamplePods returns all pods of the samples' namespaces, by namespace and name.
func SamplePods(ctx context.Context, client kubernetes.Interface) ([]corev1.Pod, error) {
	namespaces, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{LabelSelector: OwnerLabel + "=" + OwnerValue})
	if err != nil {
		return nil, fmt.Errorf("list namespaces of the samples: %w", err)
	}
	var out []corev1.Pod
	for i := range namespaces.Items {
		name := namespaces.Items[i].Name
		pods, err := client.CoreV1().Pods(name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, fmt.Errorf("list pods of namespace %s: %w", name, err)
		}
		out = append(out, pods.Items...)
	}
	slices.SortFunc(out, func(a, b corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// ErrNotPlaced is the error of AwaitPlaced after its patience.
var ErrNotPlaced = errors.New("not all sample pods were placed, or it is not known why the others wait")

// AwaitPlaced waits until so many sample pods have a node, finished ones included, and the others a
// reason. It returns all sample pods, and how many have a node, also after the patience.
func AwaitPlaced(ctx context.Context, client kubernetes.Interface, want int, patience time.Duration) (pods []corev1.Pod, placed int, err error) {
	err = wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, patience, true, func(ctx context.Context) (_ bool, err error) {
		if pods, err = SamplePods(ctx, client); err != nil {
			return false, err
		}
		placed = 0
		known := true
		for i := range pods {
			if pods[i].Spec.NodeName != "" {
				placed++
			} else if Waits(&pods[i]) == "" {
				known = false
			}
		}
		return placed >= want && known, nil
	})
	switch {
	case ctx.Err() != nil:
		return pods, placed, context.Cause(ctx)
	case wait.Interrupted(err):
		return pods, placed, ErrNotPlaced
	}
	return pods, placed, err
}

// PrintPods writes a table, one line per pod in the order given, with the reason of pods
// without a node.
func PrintPods(w io.Writer, pods []corev1.Pod) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAMESPACE\tNAME\tPHASE\tNODE\tWHY IT WAITS")
	for i := range pods {
		p := &pods[i]
		node, why := cmp.Or(p.Spec.NodeName, "-"), cmp.Or(Waits(p), "-")
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", p.Namespace, p.Name, p.Status.Phase, node, why)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("print pods: %w", err)
	}
	return nil
}

// Waits returns in one line why a pod has no node: by the queues (condition
// paddock.io/Admitted), or by the scheduler (PodScheduled) if the queues admitted the pod
// or do not know it. It is empty for a pod that has a node, and when there is no
// condition yet.
func Waits(p *corev1.Pod) string {
	if p.Spec.NodeName != "" {
		return ""
	}
	for _, kind := range []corev1.PodConditionType{reasons.AdmittedCondition, corev1.PodScheduled} {
		if _, c := podutil.GetPodCondition(&p.Status, kind); c != nil && c.Status == corev1.ConditionFalse {
			return strings.Join(strings.Fields(cmp.Or(c.Message, c.Reason)), " ")
		}
	}
	return ""
}

// Scale sets the number of replicas, from 0 on, of a Deployment and returns the number before.
func Scale(ctx context.Context, client kubernetes.Interface, namespace, name string, replicas int32) (before int32, err error) {
	deployments := client.AppsV1().Deployments(namespace)
	d, err := deployments.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return 0, fmt.Errorf("scale Deployment %s/%s: %w", namespace, name, err)
	}
	before = ptr.Deref(d.Spec.Replicas, 1) // the API server's default
	patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas)
	if _, err := deployments.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return before, fmt.Errorf("scale Deployment %s/%s: %w", namespace, name, err)
	}
	return before, nil
}
