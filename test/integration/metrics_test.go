package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
)

// TestMetrics checks that /metrics has every gauge and histogram after a preemption, and
// that YuniKorn's names are there. No pod is held back at that time.
func TestMetrics(t *testing.T) {
	// Queues below their guarantee are looked at once a second.
	e := setup(t, strings.Replace(preemptionQueues, "preemption.delay: 1s", "preemption.delay: 2s", 1))
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	first := e.create("first", 1, inQueue("root.borrows"), requests("cpu", "2"))[0]
	second := e.create("second", 1, inQueue("root.borrows"), requests("cpu", "2"))[0]
	e.awaitRunning(first)
	e.awaitRunning(second)
	asker := e.create("asker", 1, inQueue("root.owed"), requests("cpu", "2"))[0]
	e.awaitRunning(asker)
	e.awaitMetric(`paddock_hold_duration_seconds_count{end="bound",kind="queue"}`, "1")
	e.awaitMetric(`paddock_time_to_guarantee_seconds_count`, "1")
	all := e.metrics()
	for _, m := range metrics.Table() {
		if m.Kind != metrics.Counter && m.FullName() != "paddock_gated_pods" && !strings.Contains(all, "\n"+m.FullName()) {
			t.Errorf("%s is not there", m.FullName())
		}
	}
	page, err := fetch(e.Context(), http.DefaultClient, "http://"+e.rest+"/ws/v1/metrics")
	e.ok(err)
	if line := `yunikorn_queue_resource{queue="root.owed",resource="vcore",state="allocated"} 2000`; !strings.Contains(string(page), "\n"+line) {
		t.Errorf("not at /ws/v1/metrics: %s", line)
	}
	e.checkBuild()
}
