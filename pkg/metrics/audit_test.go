package metrics

import (
	"testing"

	"k8s.io/component-base/metrics/testutil"
)

// TestFindingsAreCounted by law and kind; what is looked after is there with 0 before.
func TestFindingsAreCounted(t *testing.T) {
	Audited([]string{"5"}, []string{"quota"})
	value := func(law, kind string) (violations, differences float64) {
		t.Helper()
		violations, err := testutil.GetCounterMetricValue(lawsBroken.WithLabelValues(law))
		if err != nil {
			t.Fatal(err)
		}
		if differences, err = testutil.GetCounterMetricValue(drifts.WithLabelValues(kind)); err != nil {
			t.Fatal(err)
		}
		return violations, differences
	}
	v, d := value("5", "quota") // not 0 where the test runs again
	LawBroken("5")
	Drifted("quota")
	Drifted("quota")
	if nv, nd := value("5", "quota"); nv != v+1 || nd != d+2 {
		t.Errorf("%v violations after %v, %v differences after %v", nv, v, nd, d)
	}
}

// TestLostStepsAreCounted: one by one, though they are told many at a time.
func TestLostStepsAreCounted(t *testing.T) {
	Register()
	before, err := testutil.GetCounterMetricValue(lost)
	if err != nil {
		t.Fatal(err)
	}
	StepsLost(3)
	if after, err := testutil.GetCounterMetricValue(lost); err != nil || after != before+3 {
		t.Errorf("%v steps lost after %v, error %v; three were", after, before, err)
	}
}
