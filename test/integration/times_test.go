package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
)

// stopsAfter gives a pod a long grace period, of which it uses the given time.
func stopsAfter(d time.Duration) podOption {
	return func(p *corev1.Pod) {
		withGrace(int64(d/time.Second) + 30)(p)
		p.Annotations[nodeagent.AnnotationStopAfter] = d.String()
	}
}

// onNode makes a pod run on one node only. It is not a required node, which a DaemonSet
// would name in an affinity.
func onNode(name string) podOption {
	return func(p *corev1.Pod) { p.Spec.NodeSelector[corev1.LabelHostname] = name }
}

// fill makes n pods of a group in a queue and waits until they run.
func (e *env) fill(of string, n int, options ...podOption) {
	e.Helper()
	e.ok(e.createAtOnce(of, 0, n, options...))
	e.expect(of, n, 0, "")
}

// timeToGuarantee is how long after the delay the victim of a pod is chosen at the latest.
const timeToGuarantee = 3 * time.Second

// TestTimeToGuarantee checks how long a queue waits for its guarantee: ten of its pods find four full
// nodes, and their ten victims are chosen soon after the delay. After that /metrics has every gauge and
// histogram but that of pods that are held back, and YuniKorn's names are there, too.
func TestTimeToGuarantee(t *testing.T) {
	const delay, pods = 5 * time.Second, 10
	e := setup(t, owedQueues(pods, delay))
	e.useNodes(4, localcluster.NodeSpec{CPU: "10"})
	c := e.keepHistory()
	e.fill("victim", 40, inQueue("root.borrows"), stopsAfter(500*time.Millisecond))
	e.ok(e.createAtOnce("asker", 0, pods, inQueue("root.owed")))
	_, askers := e.podsOf("asker")
	victims := c.expectEvicted("victim", pods)
	e.expect("asker", pods, 0, "")

	slices.SortFunc(askers, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var took []time.Duration
	for i, v := range victims { // one for each asker
		after := v.at.Sub(askers[i].CreationTimestamp.Time)
		expect.That(t, after >= delay,
			"%d victims were chosen %v after the creation of as many askers, the delay is %v", i+1, after, delay)
		took = append(took, after-delay)
	}
	end := askers[pods-1].CreationTimestamp.Add(delay)
	first, all := victims[0].at.Sub(end), victims[pods-1].at.Sub(end)
	var bound time.Time
	for _, a := range askers {
		if _, at := c.boundAt(a.UID); at.After(bound) {
			bound = at
		}
	}
	t.Logf("after the delay: first victim chosen %v, tenth %v, last asker bound %v", first, all, bound.Sub(end))
	// A busy machine makes some victims late, but not half of them. Each time is up to a
	// second too long, because creation times are in whole seconds.
	slices.Sort(took)
	expect.That(t, took[pods/2] <= timeToGuarantee,
		"half of the victims were chosen more than %v after the delay: %v", timeToGuarantee, took)
	c.expectNoMore(calm, pods, "victim")
	e.expectBooks()

	eventually(t, patience, "the log has the end of each hold", func() (bool, string) {
		ended := e.logLines(`"A hold has ended"`, `pod="`+e.ns+`/asker-`, `ended="bound"`)
		return len(ended) == pods, strings.Join(ended, "\n")
	})
	e.awaitMetric(`paddock_hold_duration_seconds_count{end="bound",kind="queue"}`, fmt.Sprint(pods))
	e.awaitMetric(`paddock_time_to_guarantee_seconds_count`, "1")
	shown := e.metrics()
	for _, m := range metrics.Table() {
		name, must := m.FullName(), m.Kind != metrics.Counter
		expect.That(t, !must || name == "paddock_gated_pods" || strings.Contains(shown, "\n"+name),
			"%s is not there", name)
	}
	e.awaitText("/ws/v1/metrics", `yunikorn_queue_resource{queue="root.owed",resource="vcore",state="allocated"} 10000`)
	e.checkBuild()
}
