package monitoring

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
)

// exprOf returns the expression of a shipped alert.
func exprOf(t *testing.T, alert string) string {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(read(t, "manifests/monitoring/rules.yaml")), false)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, r := range groups.Groups[0].Rules {
		if r.Alert == alert {
			return r.Expr
		}
	}
	t.Fatalf("there is no alert %s", alert)
	return ""
}

// evaluate compares the result of an expression at a time with the expected one, which is
// empty for an alert that does not fire.
func evaluate(t *testing.T, series string, after time.Duration, expr, want string) {
	t.Helper()
	input := "load 1m\n\t" + series + "\n\neval instant at " + fmt.Sprintf("%gm", after.Minutes()) + " " + expr + "\n\t" + want + "\n"
	promqltest.RunTest(t, input, promql.NewEngine(promql.EngineOpts{MaxSamples: 1000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true}))
}

// TestHoldStuck uses Prometheus' own engine to check when the alert fires: it fires for
// one hold that is unused for long, and not for many holds that wait a moment each. Times
// are in seconds since 1970, a sample a minute.
func TestHoldStuck(t *testing.T) {
	expr := exprOf(t, "PaddockHoldStuck")
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
			evaluate(t, c.series, c.after, expr, want)
		})
	}
}

// TestCountersThatAlert checks the same for the alerts on counters. Where any count is a
// fault, one violation is enough. A series is only useful if it is scraped at 0 first, so
// those series exist from the start.
func TestCountersThatAlert(t *testing.T) {
	const (
		drift = `paddock_store_drift_total{job="p",instance="a",kind="pods"} `
		lost  = `paddock_decision_steps_lost_total{job="p",instance="a"} `
		taken = `paddock_holds_lost_total{job="p",instance="a",kind="queue",reason="HoldSuperseded"} `
		late  = `paddock_holds_lost_total{job="p",instance="a",kind="required",reason="HoldTimedOut"} `
		off   = `paddock_hold_duration_seconds_count{job="p",instance="a",kind="queue",end="given up"} `
		unmet = `paddock_queue_unmet_guarantee_seconds_total{job="p",instance="a",queue="root.a",reason="NoNodeFits"} `
		delay = `paddock_queue_unmet_guarantee_seconds_total{job="p",instance="a",queue="root.a",reason="PreemptionDelayed"} `
	)
	for _, c := range []struct {
		name, alert, series string
		after               time.Duration
		want                string
	}{
		{"no drift", "PaddockStoreDrift", drift + "0x90", time.Hour, ""},
		{"books that differ", "PaddockStoreDrift", drift + "0x10 3x80", time.Hour, `{job="p",kind="pods"} 3`},
		{"books that differed long ago", "PaddockStoreDrift", drift + "0x10 3x200", 3 * time.Hour, ""},
		{"no step lost", "PaddockDecisionsNotRecorded", lost + "0x90", time.Hour, ""},
		{"steps lost", "PaddockDecisionsNotRecorded", lost + "0x10 7x80", time.Hour, `{job="p"} 7`},
		{"no room lost", "PaddockPreemptionGivenUp", taken + "0x90", time.Hour, ""},
		{"a room lost now and then", "PaddockPreemptionGivenUp", taken + "0x30 1x10 2x10 3x40", time.Hour, ""},
		// Losses of one pod at 0, 15, 45, 105, 225 and 465 s, and its losses after that.
		{"one pod that loses each room", "PaddockPreemptionGivenUp", taken + "0x40 3 4 5 5 5 5 6x40", time.Hour, `{job="p"} 6`},
		{"for several reasons", "PaddockPreemptionGivenUp", taken + "0x40 2x40\n\t" + late + "0x45 2x40", time.Hour, `{job="p"} 4`},
		{"rooms that were lost long ago", "PaddockPreemptionGivenUp", taken + "0x10 6x200", 2 * time.Hour, ""},
		{"plans that were off", "PaddockPreemptionGivenUp", off + "0x40 9x40", time.Hour, ""},
		{"many plans that were off", "PaddockPreemptionGivenUp", off + "0x40 12x40", time.Hour, `{job="p"} 12`},
		{"a guarantee that is met", "PaddockGuaranteeNotMet", unmet + "0x90", time.Hour, ""},
		{"a guarantee that is not met", "PaddockGuaranteeNotMet", unmet + "0+60x90", time.Hour, `{job="p",queue="root.a"} 1`},
		{"half of the time", "PaddockGuaranteeNotMet", unmet + "0+30x90", time.Hour, ""},
		{"for two reasons by turns", "PaddockGuaranteeNotMet", unmet + "0+30x90\n\t" + strings.Replace(unmet, "NoNodeFits", "OverMax", 1) + "0+30x90", time.Hour, `{job="p",queue="root.a"} 1`},
		{"of hidden queues together", "PaddockGuaranteeNotMet", strings.Replace(unmet, "root.a", "other", 1) + "0+60x90", time.Hour, ""},
		{"while the delay runs", "PaddockGuaranteeNotMet", delay + "0+60x90", time.Hour, ""},
	} {
		t.Run(c.name, func(t *testing.T) { evaluate(t, c.series, c.after, exprOf(t, c.alert), c.want) })
	}
}
