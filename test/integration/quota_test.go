package integration

import (
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/pkg/events"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

const quotaQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: cpu
      resources: {max: {vcore: 2}}
    - name: parent
      resources: {max: {vcore: 3}}
      queues:
      - name: a
        resources: {max: {vcore: 2}}
      - name: b
    - name: small
      resources: {max: {vcore: 500m}}
`

// TestMax checks that exactly as many pods run as a max allows, and that each of the
// others says everywhere why it does not run.
func TestMax(t *testing.T) {
	e := setup(t, quotaQueues)
	cases := []struct {
		name, in, cpu string
		pods, run     int
		// what the refusal must name
		queue, used, requested, max string
	}{
		{"leaf", "root.cpu", "1", 5, 2, "root.cpu", "2", "1", "2"},
		{"parent", "root.parent.b", "1500m", 4, 2, "root.parent", "3", "1.5", "3"},
		{"never", "root.small", "1", 1, 0, "root.small", "0", "1", "0.5"},
	}
	for _, c := range cases {
		e.create(c.name, c.pods, inQueue(c.in), requests("cpu", c.cpu))
	}
	for _, c := range cases {
		e.expect(c.name, c.run, c.pods-c.run, reasons.OverMax)
	}
	for _, c := range cases {
		e.run(c.name, func(e *env) {
			e.expectStill(c.name, c.run, c.pods-c.run, reasons.OverMax)
			sentence := regexp.MustCompile("queue " + regexp.QuoteMeta(c.queue) + ": vcore used " + regexp.QuoteMeta(c.used) +
				`( \(with pods about to be placed\))?, requested ` + regexp.QuoteMeta(c.requested) + ", max " + regexp.QuoteMeta(c.max) + `\b`)
			_, waiting := e.podsOf(c.name)
			for _, p := range waiting {
				e.checkTold(p, sentence)
			}
		})
	}
}

// checkTold checks the condition, the event and the whole output of kubectl describe for
// a pod that waits for quota.
func (e *env) checkTold(p *corev1.Pod, sentence *regexp.Regexp) {
	e.Helper()
	c := conditionOf(p, events.Admitted)
	if p.Status.Phase != corev1.PodPending || !sentence.MatchString(c.Message) {
		e.Errorf("pod %s: %s, condition %s %s %q, want %s", p.Name, p.Status.Phase, c.Type, c.Reason, c.Message, sentence)
	}
	if event := e.awaitEvent(p, string(reasons.OverMax)); event.Type != corev1.EventTypeWarning || !sentence.MatchString(event.Message) {
		e.Errorf("pod %s: event %s %q, want %s", p.Name, event.Type, event.Message, sentence)
	}
	text := describe(e.Context(), p)
	if n := len(sentence.FindAllString(text, -1)); n < 2 {
		e.Errorf("described, the pod tells %d times why it waits, want condition and event:\n%s", n, text)
	}
	// A cluster autoscaler adds nodes for pods with this condition; more nodes would not
	// help.
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			e.Errorf("pod %s waits for quota and has condition %s with reason %s", p.Name, c.Type, c.Reason)
		}
	}
}

// releaseBudget bounds the time from the release of quota until the next pod is bound.
// releaseSlack is for a machine on which other work takes both cores: the scheduler, the
// API server and etcd have to run four times in between.
const (
	releaseBudget = time.Second
	releaseSlack  = time.Second
)

// TestReleaseAdmitsNext measures from the moment the API server shows that a pod
// is gone to the moment it shows the next one bound, on the same watch.
func TestReleaseAdmitsNext(t *testing.T) {
	e := setup(t, quotaQueues)
	c := e.keepHistory()
	e.create("p", 9, inQueue("root.cpu"))
	var took []time.Duration
	for left := 9; left > 2; left-- {
		e.expect("p", 2, left-2, reasons.OverMax)
		running, _ := e.podsOf("p")
		before := len(c.boundByNow("p"))
		e.delete(running[0])
		var next sight
		eventually(e, patience, "the next pod is bound", func() (bool, string) {
			bound := c.boundByNow("p")
			if len(bound) > before {
				next = bound[before]
			}
			return len(bound) > before, ""
		})
		ended := c.first(running[0].UID, func(s sight) bool {
			return s.gone || s.pod.Status.Phase == corev1.PodSucceeded || s.pod.Status.Phase == corev1.PodFailed
		})
		took = append(took, next.at.Sub(ended.at))
		if told := e.awaitRunningTold(next.pod.Name); told.Status != corev1.ConditionTrue {
			e.Errorf("pod %s runs, and its condition says %s=%s %s", next.pod.Name, told.Type, told.Status, told.Message)
		}
	}
	slices.Sort(took)
	t.Logf("from release to bind: median %v, longest %v", took[len(took)/2], took[len(took)-1])
	if median := took[len(took)/2]; median > releaseBudget {
		t.Errorf("the median from release to bind is %v, want at most %v", median, releaseBudget)
	}
	if longest := took[len(took)-1]; longest > releaseBudget+releaseSlack {
		t.Errorf("the longest time from release to bind is %v, want at most %v", longest, releaseBudget+releaseSlack)
	}
}

// awaitRunningTold waits until the condition of a pod that waited says that it does not
// wait any more.
func (e *env) awaitRunningTold(name string) *corev1.PodCondition {
	e.Helper()
	p := e.awaitPod(e.pod(name, ""), "runs and "+string(events.Admitted)+" is True", func(p *corev1.Pod) bool {
		c := conditionOf(p, events.Admitted)
		return p.Spec.NodeName != "" && c != nil && c.Status == corev1.ConditionTrue
	})
	return conditionOf(p, events.Admitted)
}
