package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// rig is an agent on a fake API server, in a bubble with a clock that moves only when all
// goroutines wait.
type rig struct {
	*testing.T
	client *fake.Clientset
	agent  *Agent
}

// inBubble runs a test with these pods and node n, 4 cores, and with an agent that is stopped
// at the end.
func inBubble(t *testing.T, pods []runtime.Object, test func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(append(pods, testNode(t, "n", "cpu", "4"))...)
		r := &rig{T: t, client: client, agent: New(client, "v1.2.3")}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.agent.Run(ctx) }()
		defer func() {
			cancel()
			expect.Holds(r, <-done)
		}()
		r.advance(2 * time.Second)
		test(r)
	})
}

// advance lets time pass. A second is enough for the agent to notice a change.
func (r *rig) advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func (r *rig) pod(name string) *corev1.Pod {
	r.Helper()
	return expect.Get(r.client.CoreV1().Pods("ns").Get(context.Background(), name, metav1.GetOptions{}))(r)
}

func (r *rig) gone(name string) bool {
	_, err := r.client.CoreV1().Pods("ns").Get(context.Background(), name, metav1.GetOptions{})
	return apierrors.IsNotFound(err)
}

func (r *rig) create(pod *corev1.Pod) {
	r.Helper()
	expect.Get(r.client.CoreV1().Pods("ns").Create(context.Background(), pod, metav1.CreateOptions{}))(r)
	r.advance(time.Second)
}

func (r *rig) update(pod *corev1.Pod) {
	r.Helper()
	expect.Get(r.client.CoreV1().Pods("ns").Update(context.Background(), pod, metav1.UpdateOptions{}))(r)
	synctest.Wait()
}

func (r *rig) node(name string) *corev1.Node {
	r.Helper()
	return expect.Get(r.client.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{}))(r)
}

func (r *rig) wantPhase(name string, phase corev1.PodPhase, reason string) {
	r.Helper()
	s := r.pod(name).Status
	expect.Same(r, "phase and reason of pod "+name, []string{string(phase), reason}, []string{string(s.Phase), s.Reason})
}

func TestPodsStartAndNodesReport(t *testing.T) {
	inBubble(t, []runtime.Object{testPod("early", "n", "cpu", "1")}, func(r *rig) {
		r.create(testPod("late", "n", "cpu", "1"))
		seen := map[string]bool{}
		for _, name := range []string{"early", "late"} {
			r.wantPhase(name, corev1.PodRunning, "")
			p := r.pod(name)
			ready := conditionTrue(p, corev1.PodReady) && conditionTrue(p, corev1.PodScheduled)
			expect.That(r, ready && len(p.Status.ContainerStatuses) == 1,
				"pod %s is not ready: %+v", name, p.Status)
			seen[p.Status.PodIP] = true
		}
		expect.That(r, len(seen) == 2, "addresses are not unique: %v", seen)
		n, s := r.node("n"), r.agent.ledger.stats()
		expect.Same(r, "stale conditions of the node", 0, len(staleConditions(n, metav1.Time{})))
		expect.Same(r, "version of the node", "v1.2.3", n.Status.NodeInfo.KubeletVersion)
		expect.That(r, len(s.Rejections) == 0 && s.OvercommittedNodes == 0, "unexpected stats %+v", s)
	})
}

func answer(agent *Agent, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	agent.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestWhatDoesNotFitIsRejectedAndCounted(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.create(testPod("fits", "n", "cpu", "3"))
		r.create(testPod("too-big", "n", "cpu", "2"))
		r.create(testPod("small", "n", "cpu", "1"))
		r.wantPhase("fits", corev1.PodRunning, "")
		r.wantPhase("too-big", corev1.PodFailed, "OutOfcpu")
		r.wantPhase("small", corev1.PodRunning, "")
		want := "Pod was rejected: Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000"
		expect.Same(r, "message", want, r.pod("too-big").Status.Message)
		var s Stats
		expect.OK(r, json.Unmarshal(answer(r.agent, "/stats").Body.Bytes(), &s))
		expect.That(r, s.Rejections["OutOfcpu"] == 1, "stats %+v", s)
		expect.Same(r, "ready", http.StatusOK, answer(r.agent, "/readyz").Code)
	})
}

func TestNodeIsReadAgainBeforeRejecting(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, testNode(r.T, "n", "cpu", "8"), nil // the watch has not yet shown that the node has grown
		})
		r.create(testPod("big", "n", "cpu", "8"))
		r.wantPhase("big", corev1.PodRunning, "")
		expect.Same(r, "rejected", map[string]int64{}, r.agent.ledger.stats().Rejections)
	})
}

func TestPodsEnd(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		complete := testPod("complete", "n", "cpu", "4")
		complete.Annotations[AnnotationCompleteAfter] = "30s"
		r.create(complete)
		r.advance(26 * time.Second)
		r.wantPhase("complete", corev1.PodRunning, "")
		r.advance(4 * time.Second)
		r.wantPhase("complete", corev1.PodSucceeded, "")
		r.create(testPod("next", "n", "cpu", "4")) // takes its place
		r.wantPhase("next", corev1.PodRunning, "")
	})
}

func TestDeletedPodKeepsItsPlaceForItsGracePeriod(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.create(testPod("old", "n", "cpu", "4"))
		r.update(deleting(r.pod("old"), time.Now(), 10))
		r.advance(9 * time.Second)
		r.wantPhase("old", corev1.PodRunning, "")
		r.create(testPod("hasty", "n", "cpu", "4"))
		r.wantPhase("hasty", corev1.PodFailed, "OutOfcpu")
		expect.Same(r, "after its grace period the pod is gone", true, r.gone("old"))
		r.create(testPod("patient", "n", "cpu", "4"))
		r.wantPhase("patient", corev1.PodRunning, "")
	})
}

func TestDeletionIsPreciseAndEndsThePod(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		pod := testPod("p", "n")
		pod.Annotations[AnnotationStopAfter] = "2500ms"
		r.create(pod)
		r.client.ClearActions()
		r.update(deleting(r.pod("p"), time.Now(), 30))
		r.advance(2400 * time.Millisecond)
		expect.Same(r, "before its time the pod is gone", false, r.gone("p"))
		r.advance(200 * time.Millisecond)
		expect.Same(r, "after its time the pod is gone", true, r.gone("p"))
		var terminal, precise bool
		for _, a := range r.client.Actions() {
			if patch, ok := a.(clienttesting.PatchAction); ok && a.GetResource().Resource == "pods" {
				terminal = strings.Contains(string(patch.GetPatch()), `"phase":"Failed"`) && strings.Contains(string(patch.GetPatch()), `"uid":"uid-p"`)
			}
			if del, ok := a.(clienttesting.DeleteActionImpl); ok {
				o := del.DeleteOptions
				precise = terminal && *o.GracePeriodSeconds == 0 && *o.Preconditions.UID == "uid-p"
			}
		}
		expect.That(r, precise, "no terminal phase, then a precise delete: %v", r.client.Actions())
	})
}

func TestShrunkNodeIsOvercommitted(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		r.create(testPod("a", "n", "cpu", "4"))
		node := r.node("n")
		node.Status.Allocatable = list("cpu", "3", "pods", "110")
		expect.Get(r.client.CoreV1().Nodes().Update(context.Background(), node, metav1.UpdateOptions{}))(r)
		r.advance(time.Second)
		r.wantPhase("a", corev1.PodRunning, "")
		s := r.agent.ledger.stats()
		expect.That(r, s.OvercommittedNodes == 1 && len(s.Rejections) == 0, "unexpected stats %+v", s)
	})
}

func TestNodeBecomesReadyAgain(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		node := r.node("n")
		for i := range node.Status.Conditions {
			node.Status.Conditions[i].Status = corev1.ConditionUnknown
		}
		expect.Get(r.client.CoreV1().Nodes().Update(context.Background(), node, metav1.UpdateOptions{}))(r)
		r.advance(time.Second)
		expect.Same(r, "stale conditions of the node", 0, len(staleConditions(r.node("n"), metav1.Time{})))
	})
}

func TestNodesComeAndGo(t *testing.T) {
	other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	inBubble(t, []runtime.Object{testPod("waits", "new"), testPod("foreign", "other"), other}, func(r *rig) {
		r.wantPhase("waits", corev1.PodPending, "")
		expect.Get(r.client.CoreV1().Nodes().Create(context.Background(), testNode(r.T, "new", "cpu", "4"), metav1.CreateOptions{}))(r)
		r.advance(time.Second)
		r.wantPhase("waits", corev1.PodRunning, "")
		r.wantPhase("foreign", corev1.PodPending, "")
		expect.Same(r, "addresses of the new node", 2, len(r.node("new").Status.Addresses))
		expect.Same(r, "conditions of a node that is not ours", 0, len(r.node("other").Status.Conditions))
		expect.OK(r, r.client.CoreV1().Nodes().Delete(context.Background(), "new", metav1.DeleteOptions{}))
		r.advance(time.Second)
		r.create(testPod("late", "new"))
		r.wantPhase("late", corev1.PodPending, "")
	})
}

func TestFailedCallsAreRepeated(t *testing.T) {
	inBubble(t, nil, func(r *rig) {
		failures := 3
		r.client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			failures--
			return failures >= 0, nil, errors.New("the server is down")
		})
		r.create(testPod("p", "n"))
		r.advance(5 * time.Second)
		r.wantPhase("p", corev1.PodRunning, "")
		expect.Same(r, "failures left", -1, failures)
	})
}

func TestNotReadyBeforeSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := New(fake.NewClientset(), "v1.2.3")
		expect.Same(t, "an agent that never ran is ready", http.StatusServiceUnavailable, answer(agent, "/readyz").Code)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		expect.Holds(t, agent.Run(ctx))
	})
}
