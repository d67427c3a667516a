package metrics

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
)

// names are the metrics of this package; renaming one breaks dashboards and alerts.
var names = []string{
	"paddock_config_last_reload_success",
	"paddock_config_last_reload_success_timestamp_seconds",
	"paddock_config_reload_failures_total",
	"paddock_decision_steps_lost_total",
	"paddock_gated_pods",
	"paddock_hold_duration_seconds",
	"paddock_holds",
	"paddock_holds_lost_total",
	"paddock_longest_clear_hold_timestamp_seconds",
	"paddock_preemption_decisions_total",
	"paddock_preemption_plan_duration_seconds",
	"paddock_preemption_rejected_candidates_total",
	"paddock_preemption_victims_total",
	"paddock_queue_applications",
	"paddock_queue_resource",
	"paddock_queue_unmet_guarantee_seconds_total",
	"paddock_queues_hidden",
	"paddock_queues_shown",
	"paddock_store_drift_total",
	"paddock_time_to_guarantee_seconds",
}

// wantMetrics compares what the scheduler's /metrics shows with the values.
func wantMetrics(t *testing.T, when, success, timestamp, failures string) {
	t.Helper()
	want := `
# HELP paddock_config_last_reload_success [ALPHA] Whether the last read of the queue configuration gave a usable one (1) or not (0).
# TYPE paddock_config_last_reload_success gauge
paddock_config_last_reload_success ` + success + `
# HELP paddock_config_last_reload_success_timestamp_seconds [ALPHA] When the queue configuration in force was read, in seconds since 1970.
# TYPE paddock_config_last_reload_success_timestamp_seconds gauge
paddock_config_last_reload_success_timestamp_seconds ` + timestamp + `
# HELP paddock_config_reload_failures_total [ALPHA] How often the queue configuration was read and could not be used.
# TYPE paddock_config_reload_failures_total counter
paddock_config_reload_failures_total ` + failures + `
`
	if err := testutil.GatherAndCompare(legacyregistry.DefaultGatherer, strings.NewReader(want),
		"paddock_config_last_reload_success", "paddock_config_last_reload_success_timestamp_seconds", "paddock_config_reload_failures_total"); err != nil {
		t.Errorf("%s: %v", when, err)
	}
}

func TestConfigMetrics(t *testing.T) {
	Register()
	Register() // each profile's plugin does it
	reloadSuccess.Set(0)
	reloadTimestamp.Set(0)
	before, err := testutil.GetCounterMetricValue(reloadFailures) // not 0 where the test runs again
	if err != nil {
		t.Fatal(err)
	}
	failures := func(n int) string { return strconv.Itoa(int(before) + n) }
	wantMetrics(t, "at first", "0", "0", failures(0))
	ConfigFailed()
	wantMetrics(t, "invalid at the start", "0", "0", failures(1))
	ConfigLoaded(time.Unix(1_700_000_000, 999_999_999))
	wantMetrics(t, "repaired", "1", "1.7e+09", failures(1))
	ConfigFailed()
	ConfigFailed()
	wantMetrics(t, "broken twice: the one in force is still the old one", "0", "1.7e+09", failures(3))
	ConfigLoaded(time.Unix(1_700_000_100, 0))
	wantMetrics(t, "repaired again", "1", "1.7000001e+09", failures(3))
}
