package nodeagent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestNextStep(t *testing.T) {
	now := t0.Add(time.Minute)
	annotated := func(pod *corev1.Pod, pairs ...string) *corev1.Pod {
		for i := 0; i < len(pairs); i += 2 {
			pod.Annotations[pairs[i]] = pairs[i+1]
		}
		return pod
	}
	phase := func(pod *corev1.Pod, p corev1.PodPhase) *corev1.Pod {
		pod.Status.Phase = p
		return pod
	}
	p := func() *corev1.Pod { return testPod("p", "n") }
	tests := []struct {
		name  string
		pod   *corev1.Pod
		where standing
		want  step
	}{
		{"waiting pods wait", p(), waiting, step{}},
		{"admitted pods start", p(), admitted, step{do: doStart}},
		{"refused pods are rejected", p(), refused, step{do: doReject}},
		{"a terminal phase is final", phase(p(), corev1.PodFailed), refused, step{}},
		{"running pods run", running(p(), t0), admitted, step{}},

		{"before completion", annotated(running(p(), t0), AnnotationCompleteAfter, "90s"), admitted, step{wait: 30 * time.Second}},
		{"completion", annotated(running(p(), t0), AnnotationCompleteAfter, "60s"), admitted, step{do: doSucceed}},

		{"within the grace period", deleting(running(p(), t0), now.Add(-4*time.Second), 10), admitted, step{wait: 6 * time.Second}},
		{"grace period over", deleting(running(p(), t0), now.Add(-10*time.Second), 10), admitted, step{do: doTerminate}},
		{"stops early", annotated(deleting(running(p(), t0), now.Add(-2*time.Second), 10), AnnotationStopAfter, "3s"), admitted, step{wait: time.Second}},
		{"stopping late is cut off", annotated(deleting(running(p(), t0), now.Add(-10*time.Second), 10), AnnotationStopAfter, "1h"), admitted, step{do: doTerminate}},
		{"stopping beats completing", annotated(deleting(running(p(), t0), now, 10), AnnotationCompleteAfter, "1s"), admitted, step{wait: 10 * time.Second}},
		{"deleted before the node took it", deleting(p(), now, 30), waiting, step{do: doTerminate}},
		{"deleted after refusal", deleting(p(), now, 30), refused, step{do: doTerminate}},
		{"deleted after its end", deleting(phase(running(p(), t0), corev1.PodSucceeded), now, 30), ended, step{do: doRemove}},
		{"held by finalizers only", deleting(phase(running(p(), t0), corev1.PodFailed), now, 0), ended, step{}},
	}
	for _, test := range tests {
		s := expect.Get(parseScript(test.pod.Annotations))(t)
		var deletedAt time.Time
		if test.pod.DeletionTimestamp != nil {
			deletedAt = test.pod.DeletionTimestamp.Add(-time.Duration(*test.pod.DeletionGracePeriodSeconds) * time.Second)
		}
		got := nextStep(test.pod, test.where, s, deletedAt, now)
		expect.Same(t, test.name, test.want, got, cmp.AllowUnexported(step{}))
	}
}

// TestDeletionBeforeItsEvent: the lister shows a deletion before the agent's handler is
// called, and until then it is unknown how much of its grace period the pod has had.
func TestDeletionBeforeItsEvent(t *testing.T) {
	now := time.Unix(1000, 0)
	pod := deleting(running(testPod("p", "n"), now.Add(-time.Minute)), now, 30)
	got := nextStep(pod, admitted, script{}, time.Time{}, now)
	expect.Same(t, "nothing, as the agent comes again when it is told", step{}, got, cmp.AllowUnexported(step{}))
}

func TestParseScriptNamesTheAnnotation(t *testing.T) {
	s, err := parseScript(map[string]string{AnnotationCompleteAfter: "soon", AnnotationStopAfter: "-1s"})
	expect.Fails(t, err, AnnotationCompleteAfter)
	expect.Fails(t, err, AnnotationStopAfter)
	expect.That(t, s == (script{}), "got %+v, want nothing", s)
	s, err = parseScript(map[string]string{AnnotationCompleteAfter: "soon", AnnotationStopAfter: "2s"})
	expect.That(t, err != nil && s.complete == nil && s.stop != nil && *s.stop == 2*time.Second,
		"got %+v, %v, want only stop after 2s", s, err)
}

func TestEndedStatus(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	pod := testPod("p", "n")
	pod.Spec.InitContainers = []corev1.Container{{Name: "first"}, {Name: "side", RestartPolicy: &always}}
	status := runningStatus(pod, "10.128.0.7", t0)
	first, side := status.InitContainerStatuses[0].State, status.InitContainerStatuses[1].State
	expect.That(t, first.Terminated != nil && side.Running != nil,
		"running pod: init container must have ended, sidecar must run: %+v, %+v", first, side)
	expect.That(t, status.PodIP == "10.128.0.7" && status.PodIPs[0].IP == "10.128.0.7" && status.HostIP != "",
		"addresses are wrong: %+v", status)
	pod.Status = status
	for code, phase := range map[int32]corev1.PodPhase{0: corev1.PodSucceeded, exitKilled: corev1.PodFailed} {
		end := endedStatus(pod, code, t0.Add(time.Minute))
		main, inits := end.ContainerStatuses[0].State.Terminated, end.InitContainerStatuses
		codes := []int32{inits[0].State.Terminated.ExitCode, inits[1].State.Terminated.ExitCode, main.ExitCode}
		expect.Same(t, "phase", phase, end.Phase)
		expect.Same(t, "exit codes", []int32{0, code, code}, codes)
		expect.Same(t, "start", t0, main.StartedAt.Time)
		expect.Same(t, "end", t0.Add(time.Minute), main.FinishedAt.Time)
	}
}
