package integration

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/events"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// group is the label that distinguishes the groups of pods of one test.
const group = "integration/group"

// beat is the polling interval.
const beat = 25 * time.Millisecond

// eventually polls until check returns true. The last text that check returned is shown
// at the time-out.
func eventually(t testing.TB, within time.Duration, what string, check func() (bool, string)) {
	t.Helper()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for deadline := time.Now().Add(within); ; <-ticker.C {
		done, state := check()
		if done {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s; last seen: %s", within, what, state)
		}
	}
}

// throughout polls for a while and fails as soon as check returns false.
func throughout(t testing.TB, period time.Duration, what string, check func() (bool, string)) {
	t.Helper()
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for end := time.Now().Add(period); time.Now().Before(end); <-ticker.C {
		if ok, state := check(); !ok {
			t.Fatalf("does not stay so: %s; seen: %s", what, state)
		}
	}
}

type podOption func(*corev1.Pod)

func inQueue(path string) podOption {
	return func(p *corev1.Pod) { p.Labels[placement.KeyQueue] = path }
}

func ofProfile(name string) podOption {
	return func(p *corev1.Pod) { p.Spec.SchedulerName = name }
}

func requests(list ...string) podOption {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = amounts(list...) }
}

func withGrace(seconds int64) podOption {
	return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
}

// amounts makes a resource list of names and quantities: "cpu", "1".
func amounts(list ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i+1 < len(list); i += 2 {
		out[corev1.ResourceName(list[i])] = resource.MustParse(list[i+1])
	}
	return out
}

// pod makes a pod of a group without creating it: one core, in profile
// yunikorn, on the nodes of the test. Each group is an application of its own:
// without a name, all pods of the namespace would be one, in one queue.
func (e *env) pod(name, of string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.ns, Name: name, Annotations: map[string]string{},
			Labels: map[string]string{label: e.id, group: of, placement.KeyApplicationID: of},
		},
		Spec: corev1.PodSpec{
			SchedulerName: profile, NodeSelector: map[string]string{pool: e.nodePool},
			Containers: []corev1.Container{{Name: "main", Image: "none"}},
		},
	}
	for _, o := range append([]podOption{withGrace(0), requests("cpu", "1")}, options...) {
		o(p)
	}
	return p
}

// create makes n pods NAME-0, NAME-1 ... of group NAME.
func (e *env) create(name string, n int, options ...podOption) []*corev1.Pod {
	e.Helper()
	out := make([]*corev1.Pod, n)
	for i := range out {
		out[i] = e.createPod(e.pod(fmt.Sprintf("%s-%d", name, i), name, options...))
	}
	return out
}

// createAtOnce makes n pods side by side, numbered from first. It may be called
// outside of the goroutine of the test.
func (e *env) createAtOnce(name string, first, n int, options ...podOption) error {
	var group errgroup.Group
	for i := range n {
		p := e.pod(fmt.Sprintf("%s-%d", name, first+i), name, options...)
		group.Go(func() error {
			_, err := suite.client.CoreV1().Pods(p.Namespace).Create(e.Context(), p, metav1.CreateOptions{})
			return err
		})
	}
	return group.Wait()
}

func (e *env) createPod(p *corev1.Pod) *corev1.Pod {
	e.Helper()
	return expect.Get(suite.client.CoreV1().Pods(p.Namespace).Create(e.Context(), p, metav1.CreateOptions{}))(e)
}

func (e *env) delete(p *corev1.Pod) {
	e.Helper()
	e.ok(suite.client.CoreV1().Pods(p.Namespace).Delete(e.Context(), p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}}))
}

// endAtOnce removes a pod without its grace period.
func (e *env) endAtOnce(p *corev1.Pod) {
	e.Helper()
	e.ok(suite.client.CoreV1().Pods(p.Namespace).Delete(e.Context(), p.Name,
		metav1.DeleteOptions{GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &p.UID}}))
}

func (e *env) get(p *corev1.Pod) *corev1.Pod {
	e.Helper()
	return expect.Get(suite.client.CoreV1().Pods(p.Namespace).Get(e.Context(), p.Name, metav1.GetOptions{}))(e)
}

func (e *env) patch(p *corev1.Pod, patch string) {
	e.Helper()
	expect.Get(suite.client.CoreV1().Pods(p.Namespace).Patch(e.Context(), p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}))(e)
}

func (e *env) listPods(ctx context.Context) ([]corev1.Pod, error) {
	list, err := suite.client.CoreV1().Pods("").List(ctx, metav1.ListOptions{LabelSelector: label + "=" + e.id})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	return list.Items, nil
}

// podsOf returns the running pods of a group, and the others.
func (e *env) podsOf(of string) (running, waiting []*corev1.Pod) {
	e.Helper()
	pods := expect.Get(e.listPods(e.Context()))(e)
	for i := range pods {
		p := &pods[i]
		switch {
		case p.Labels[group] != of, p.Status.Phase == corev1.PodSucceeded:
		case p.Spec.NodeName == "":
			waiting = append(waiting, p)
		default:
			running = append(running, p)
		}
	}
	return running, waiting
}

// expect waits until exactly so many pods of a group run and so many wait, all of these
// with the reason in their condition. It fails at once if more pods run.
func (e *env) expect(of string, run, wait int, why reasons.Code) {
	e.Helper()
	what := fmt.Sprintf("%d pods of group %s run and %d wait with reason %s", run, of, wait, why)
	eventually(e, patience, what, func() (bool, string) {
		running, waiting := e.podsOf(of)
		state := fmt.Sprintf("%d run, %d wait", len(running), len(waiting))
		if len(running) > run {
			e.Fatalf("%s: too many: %s", what, state)
		}
		started := 0
		for _, p := range running {
			if p.Status.Phase == corev1.PodRunning {
				started++
			}
		}
		if started != run || len(waiting) != wait {
			return false, state
		}
		for _, p := range waiting {
			if c := conditionOf(p, events.Admitted); why != "" && (c == nil || c.Status != corev1.ConditionFalse || c.Reason != string(why)) {
				return false, fmt.Sprintf("%s, %s has condition %v", state, p.Name, c)
			}
		}
		return true, state
	})
}

func (e *env) expectNone(of string) {
	e.Helper()
	eventually(e, patience, "no pod of group "+of+" is left", func() (bool, string) {
		running, waiting := e.podsOf(of)
		return len(running)+len(waiting) == 0, fmt.Sprintf("%d run, %d wait", len(running), len(waiting))
	})
}

// expectStill is expect, and then checks for a while that nothing changes.
func (e *env) expectStill(of string, run, wait int, why reasons.Code) {
	e.Helper()
	e.expect(of, run, wait, why)
	throughout(e, calm, fmt.Sprintf("%d pods of group %s run, %d wait", run, of, wait), func() (bool, string) {
		running, waiting := e.podsOf(of)
		return len(running) == run && len(waiting) == wait, fmt.Sprintf("%d run, %d wait", len(running), len(waiting))
	})
}

// awaitPod waits until a pod fulfils a condition and returns it.
func (e *env) awaitPod(p *corev1.Pod, what string, check func(*corev1.Pod) bool) *corev1.Pod {
	e.Helper()
	var now *corev1.Pod
	eventually(e, patience, "pod "+p.Name+": "+what, func() (bool, string) {
		now = e.get(p)
		return check(now), fmt.Sprintf("phase %s, node %q, %v", now.Status.Phase, now.Spec.NodeName, conditionOf(now, events.Admitted))
	})
	return now
}

func (e *env) awaitRunning(p *corev1.Pod) *corev1.Pod {
	e.Helper()
	return e.awaitPod(p, "runs", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
}

// removePods removes all pods of the test at once and waits until they are gone.
func (e *env) removePods(ctx context.Context) {
	e.Helper()
	options := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	ours := metav1.ListOptions{LabelSelector: label + "=" + e.id}
	eventually(e, cleaningUp, "all pods of the test are removed", func() (bool, string) {
		pods, err := e.listPods(ctx)
		if err != nil {
			return false, err.Error()
		}
		in := map[string]bool{}
		for i := range pods {
			in[pods[i].Namespace] = true
		}
		for ns := range in { // what fails is tried again
			err = cmp.Or(err, suite.client.CoreV1().Pods(ns).DeleteCollection(ctx, options, ours))
		}
		return len(pods) == 0, fmt.Sprintf("%d pods, %v", len(pods), err)
	})
}

func (e *env) selector(of string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{label: e.id, group: of}}
}

// inBackground deletes a controller's object, and its pods with it.
func inBackground() metav1.DeleteOptions {
	background := metav1.DeletePropagationBackground
	return metav1.DeleteOptions{PropagationPolicy: &background}
}
