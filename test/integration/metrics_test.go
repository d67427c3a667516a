package integration

import (
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
)

// TestMetrics checks /metrics after a preemption, including YuniKorn's names. No pod is
// held back at that time.
func TestMetrics(t *testing.T) {
	// The reasons are looked at once a second.
	e := setup(t, strings.Replace(preemptionQueues, "preemption.delay: 1s", "preemption.delay: 2s", 1))
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	first := e.create("first", 1, inQueue("root.borrows"), requests("cpu", "2"))[0]
	second := e.create("second", 1, inQueue("root.borrows"), requests("cpu", "2"))[0]
	e.awaitRunning(first)
	e.awaitRunning(second)
	asker := e.create("asker", 1, inQueue("root.owed"), requests("cpu", "2"))[0]
	e.awaitRunning(asker)
	e.awaitMetric(`paddock_preemption_victims_total{class="regular",kind="queue",queue="root.borrows"}`, "1")
	e.awaitMetric(`paddock_preemption_decisions_total{kind="queue",outcome="preempt",reason=""}`, "1")
	e.awaitMetric(`paddock_hold_duration_seconds_count{end="bound",kind="queue"}`, "1")
	e.awaitMetric(`paddock_queue_resource{queue="root.owed",resource="vcore",state="allocated"}`, "2")
	e.awaitMetric(`paddock_queue_resource{queue="root.owed",resource="vcore",state="guaranteed"}`, "40")
	e.awaitMetric(`paddock_time_to_guarantee_seconds_count`, "1")
	delayed, err := strconv.ParseFloat(e.metric(`paddock_queue_unmet_guarantee_seconds_total{queue="root.owed",reason="PreemptionDelayed"}`), 64)
	if err != nil || delayed <= 0 {
		t.Errorf("the queue had to wait for its delay for %v s: %v", delayed, err)
	}
	all := e.metrics()
	for _, m := range metrics.Table() {
		if m.Kind != metrics.Counter && m.FullName() != "paddock_gated_pods" && !strings.Contains(all, "\n"+m.FullName()) {
			t.Errorf("%s is not there", m.FullName())
		}
	}
	page, err := fetch(e.Context(), http.DefaultClient, "http://"+e.rest+"/ws/v1/metrics")
	e.ok(err)
	for _, line := range []string{
		`yunikorn_queue_resource{queue="root.owed",resource="vcore",state="allocated"} 2000`,
		`yunikorn_queue_app{queue="root.owed",state="running"} 1`,
		`yunikorn_scheduler_trypreemption_latency_milliseconds_count `,
		`process_start_time_seconds `,
	} {
		if !strings.Contains(string(page), "\n"+line) {
			t.Errorf("not at /ws/v1/metrics: %s", line)
		}
	}
	e.checkBuild()
}
