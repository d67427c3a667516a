package monitoring

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// TestHoldStuck asks Prometheus' own engine when the alert fires: for one hold that
// nobody uses for long, and never for many that wait a moment each. Times are in
// seconds since 1970, a sample a minute.
func TestHoldStuck(t *testing.T) {
	groups, errs := rulefmt.Parse([]byte(read(t, "manifests/monitoring/rules.yaml")), false)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var expr string
	for _, r := range groups.Groups[0].Rules {
		if r.Alert == "PaddockHoldStuck" {
			expr = r.Expr
		}
	}
	for _, c := range []struct {
		name, series string
		after        time.Duration
		fires        bool
	}{
		{"none", `paddock_longest_clear_hold_timestamp_seconds{job="p",kind="queue"} 0x30`, 20 * time.Minute, false},
		{"one, early", `paddock_longest_clear_hold_timestamp_seconds{job="p",kind="queue"} 60x30`, 8 * time.Minute, false},
		{"one, late", `paddock_longest_clear_hold_timestamp_seconds{job="p",kind="queue"} 60x30`, 10 * time.Minute, true},
		{"of another kind", "paddock_longest_clear_hold_timestamp_seconds{job=\"p\",kind=\"queue\"} 0x30\n\tpaddock_longest_clear_hold_timestamp_seconds{job=\"p\",kind=\"required\"} 60x30", 10 * time.Minute, true},
		{"a busy cluster: each minute another one", `paddock_longest_clear_hold_timestamp_seconds{job="p",kind="queue"} 0+60x30`, 20 * time.Minute, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want string
			if c.fires {
				kind := "queue"
				if c.name == "of another kind" {
					kind = "required"
				}
				want = fmt.Sprintf("{job=%q,kind=%q} %g", "p", kind, (c.after - time.Minute).Seconds())
			}
			input := "load 1m\n\t" + c.series + "\n\neval instant at " + fmt.Sprintf("%gm", c.after.Minutes()) + " " + expr + "\n\t" + want + "\n"
			promqltest.RunTest(t, input, promql.NewEngine(promql.EngineOpts{MaxSamples: 1000, Timeout: time.Minute}))
		})
	}
}
