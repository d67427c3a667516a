package metrics

import (
	"testing"

	"k8s.io/component-base/metrics/testutil"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// TestFindingsAreCounted by kind; what is looked after is there with 0 before.
func TestFindingsAreCounted(t *testing.T) {
	Audited([]string{"quota"})
	value := func() float64 {
		t.Helper()
		return expect.Get(testutil.GetCounterMetricValue(drifts.WithLabelValues("quota")))(t)
	}
	before := value() // not 0 where the test runs again
	Drifted("quota")
	Drifted("quota")
	expect.Same(t, "differences", before+2, value())
}

// TestLostStepsAreCounted: one by one, though they are told many at a time.
func TestLostStepsAreCounted(t *testing.T) {
	Register()
	before := expect.Get(testutil.GetCounterMetricValue(lost))(t)
	StepsLost(3)
	if after, err := testutil.GetCounterMetricValue(lost); err != nil || after != before+3 {
		t.Errorf("%v steps lost after %v, error %v; three were", after, before, err)
	}
}
