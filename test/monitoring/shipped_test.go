package monitoring

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/promqltest"
	"gopkg.in/yaml.v3"
)

// all are our metrics and the queried ones of upstream.
func all(t *testing.T) map[string]metric {
	t.Helper()
	known := exported(t)
	maps.Copy(known, upstream)
	return known
}

func TestRulesLoad(t *testing.T) {
	known, docs, names := all(t), inDocs(t), map[string]bool{}
	for _, r := range alerts(t) {
		err := check(known, r.Expr, docs)
		that(t, err == nil, "%s: %v", r.Alert, err)
		that(t, !names[r.Alert] && strings.HasPrefix(r.Alert, "Paddock"),
			"%q is twice there, or does not say whose it is", r.Alert)
		names[r.Alert] = true
		told := r.Annotations["summary"] != "" && r.Annotations["description"] != "" &&
			r.Labels["severity"] != ""
		that(t, told, "%s does not say what happened, what to do, and how bad it is", r.Alert)
	}
	that(t, len(names) >= 4, "there are %d alerts", len(names))
}

// alerts are the shipped ones.
func alerts(t *testing.T) (rules []rulefmt.Rule) {
	t.Helper()
	groups, errs := rulefmt.Parse([]byte(read(t, "manifests/monitoring/rules.yaml")), false)
	if len(errs) > 0 {
		t.Fatalf("the rules do not load: %v", errs)
	}
	for _, g := range groups.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

// dashboard is the part of Grafana's format that matters here.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, Definition string }
	}
	Panels []panel
}

type panel struct {
	ID          int
	Type, Title string
	Description string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ Expr string }
}

func TestDashboardLoads(t *testing.T) {
	var d dashboard
	err := json.Unmarshal([]byte(read(t, "manifests/monitoring/dashboard.json")), &d)
	that(t, err == nil, "the dashboard does not load: %v", err)
	named := d.Title != "" && d.UID != "" && d.SchemaVersion != 0
	that(t, named, "no dashboard: %s %s %d", d.Title, d.UID, d.SchemaVersion)
	known, docs := all(t), inDocs(t)
	var variables []string
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			expr, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")"), ", ")
			err := check(known, "sum by ("+label+") ("+filled(expr, "")+")", docs)
			that(t, err == nil, "variable %s: %v", v.Name, err)
		}
		variables = append(variables, v.Name)
	}
	ids, used := map[int]bool{}, ""
	covered := map[[2]int]string{}
	for _, p := range d.Panels {
		that(t, !ids[p.ID] && p.Title != "", "panel %d %q is twice there, or has no title", p.ID, p.Title)
		ids[p.ID] = true
		asks := len(p.Targets) > 0 && p.Description != ""
		that(t, p.Type == "row" || asks, "panel %q asks for nothing, or does not say for what", p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := covered[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies upon %q, or beside the page", p.Title, other)
				}
				covered[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			err := check(known, filled(target.Expr, "root"), docs)
			that(t, err == nil, "panel %q: %v", p.Title, err)
			used += target.Expr
		}
	}
	for _, v := range variables {
		that(t, v == "datasource" || strings.Contains(used, "$"+v), "nothing depends on variable %s", v)
	}
	used += read(t, "manifests/monitoring/rules.yaml")
	for name := range exported(t) {
		direct := strings.HasPrefix(name, "paddock_config_reload") || // for direct queries
			strings.HasSuffix(name, "timestamp_seconds") || name == "paddock_queues_shown"
		shown := strings.Contains(used, name)
		that(t, direct || shown, "%s is neither in the dashboard nor in the alerts", name)
	}
}

// filled is an expression as Grafana sends it.
func filled(expr, queue string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$queue", queue).Replace(expr)
}

var (
	sample    = regexp.MustCompile(`(?m)^(\w+)(\{.*\})? `)
	labelName = regexp.MustCompile(`(\w+)="`)
)

// TestYuniKornsDashboard checks the queries of YuniKorn's shipped dashboard, as far as
// YuniKorn has not renamed its metrics since.
func TestYuniKornsDashboard(t *testing.T) {
	page, docs := read(t, "pkg/metrics/testdata/page.txt"), read(t, "docs/metrics.md")
	known := map[string]metric{}
	for _, s := range sample.FindAllStringSubmatch(page, -1) {
		var m metric
		for _, l := range labelName.FindAllStringSubmatch(s[2], -1) {
			m.labels = append(m.labels, l[1])
		}
		known[s[1]] = m
	}
	known["yunikorn_scheduler_trypreemption_latency_milliseconds"] = metric{histogram: true}
	anything := func(string) bool { return true }
	var queries struct{ Served, NotServed []string }
	err := yaml.Unmarshal([]byte(read(t, "test/monitoring/testdata/yunikorn.yaml")), &queries)
	that(t, err == nil, "the queries do not load: %v", err)
	that(t, len(queries.Served) > 0 && len(queries.NotServed) > 0, "no queries")
	for _, q := range queries.Served {
		err := check(known, q, anything)
		that(t, err == nil, "%s: %v", q, err)
	}
	for _, q := range queries.NotServed {
		that(t, check(known, q, anything) != nil, "%s is served", q)
		name := q[strings.Index(q, "yunikorn_"):strings.Index(q, "_bucket")]
		that(t, strings.Contains(docs, "| `"+name), "docs/metrics.md does not say why %s is not served", name)
	}
}

// TestAlertsFire uses Prometheus' own engine to check when the alerts fire. Times are in
// seconds since 1970, a sample a minute.
//
// A hold is stuck if it is unused for long: many holds that wait a moment each are none.
// Where any count is a fault, one violation is enough. A series is only useful if it is
// scraped at 0 first, so those series exist from the start.
func TestAlertsFire(t *testing.T) {
	const (
		stuck = `paddock_longest_clear_hold_timestamp_seconds{job="p",kind="queue"} `
		bound = `paddock_longest_clear_hold_timestamp_seconds{job="p",kind="required"} `
		drift = `paddock_store_drift_total{job="p",instance="a",kind="pods"} `
		lost  = `paddock_decision_steps_lost_total{job="p",instance="a"} `
		taken = `paddock_holds_lost_total{job="p",instance="a",kind="queue",reason="HoldSuperseded"} `
		late  = `paddock_holds_lost_total{job="p",instance="a",kind="required",reason="HoldTimedOut"} `
		off   = `paddock_hold_duration_seconds_count{job="p",instance="a",kind="queue",end="given up"} `
		unmet = `paddock_queue_unmet_guarantee_seconds_total{job="p",instance="a",queue="root.a",reason="NoNodeFits"} `
		delay = `paddock_queue_unmet_guarantee_seconds_total{job="p",instance="a",queue="root.a",reason="PreemptionDelayed"} `
	)
	exprs := map[string]string{}
	for _, r := range alerts(t) {
		exprs[r.Alert] = r.Expr
	}
	for _, c := range []struct {
		name, alert, series string
		after               time.Duration
		want                string
	}{
		{"no hold", "PaddockHoldStuck", stuck + "0x30", 20 * time.Minute, ""},
		{"one hold, early", "PaddockHoldStuck", stuck + "60x30", 8 * time.Minute, ""},
		{"one hold, late", "PaddockHoldStuck", stuck + "60x30", 10 * time.Minute, `{job="p",kind="queue"} 540`},
		{"one of another kind", "PaddockHoldStuck", stuck + "0x30\n\t" + bound + "60x30",
			10 * time.Minute, `{job="p",kind="required"} 540`},
		{"each minute another hold", "PaddockHoldStuck", stuck + "0+60x30", 20 * time.Minute, ""},
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
		t.Run(c.name, func(t *testing.T) {
			if exprs[c.alert] == "" {
				t.Fatalf("there is no alert %s", c.alert)
			}
			input := fmt.Sprintf("load 1m\n\t%s\n\neval instant at %gm %s\n\t%s\n",
				c.series, c.after.Minutes(), exprs[c.alert], c.want)
			promqltest.RunTest(t, input, promql.NewEngine(promql.EngineOpts{
				MaxSamples: 1000, Timeout: time.Minute, EnableAtModifier: true, EnableNegativeOffset: true,
			}))
		})
	}
}
