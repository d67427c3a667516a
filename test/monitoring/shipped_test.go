package monitoring

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/rulefmt"
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
	groups, errs := rulefmt.Parse([]byte(read(t, "manifests/monitoring/rules.yaml")), false)
	for _, err := range errs {
		t.Error(err)
	}
	known, docs, names := all(t), inDocs(t), map[string]bool{}
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if err := check(known, r.Expr, docs); err != nil {
				t.Errorf("%s: %v", r.Alert, err)
			}
			if names[r.Alert] || !strings.HasPrefix(r.Alert, "Paddock") {
				t.Errorf("%q is twice there, or does not say whose it is", r.Alert)
			}
			names[r.Alert] = true
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
				t.Errorf("%s does not say what happened, what to do, and how bad it is", r.Alert)
			}
		}
	}
	if len(names) < 4 {
		t.Errorf("there are %d alerts", len(names))
	}
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
	Targets     []struct{ Expr, LegendFormat string }
	Panels      []panel
}

func TestDashboardLoads(t *testing.T) {
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, "manifests/monitoring/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || d.SchemaVersion == 0 {
		t.Errorf("no dashboard: %s %s %d", d.Title, d.UID, d.SchemaVersion)
	}
	known, docs := all(t), inDocs(t)
	var variables []string
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			expr, label, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(v.Definition, "label_values("), ")"), ", ")
			if err := check(known, "sum by ("+label+") ("+filled(expr, "")+")", docs); err != nil {
				t.Errorf("variable %s: %v", v.Name, err)
			}
		}
		variables = append(variables, v.Name)
	}
	ids, used := map[int]bool{}, ""
	covered := map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q is twice there, or has no title", p.ID, p.Title)
		}
		ids[p.ID] = true
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("panel %q asks for nothing, or does not say for what", p.Title)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := covered[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("panel %q lies upon %q, or beside the page", p.Title, other)
				}
				covered[[2]int{x, y}] = p.Title
			}
		}
		for _, target := range p.Targets {
			if err := check(known, filled(target.Expr, "root"), docs); err != nil {
				t.Errorf("panel %q: %v", p.Title, err)
			}
			used += target.Expr
		}
	}
	for _, v := range variables {
		if v != "datasource" && !strings.Contains(used, "$"+v) {
			t.Errorf("nothing depends on variable %s", v)
		}
	}
	for name := range exported(t) {
		if strings.HasPrefix(name, "paddock_config_reload") || strings.HasSuffix(name, "timestamp_seconds") || name == "paddock_queues_shown" {
			continue // for direct queries
		}
		if !strings.Contains(used+read(t, "manifests/monitoring/rules.yaml"), name) {
			t.Errorf("%s is neither in the dashboard nor in the alerts", name)
		}
	}
}

// filled is an expression as Grafana sends it.
func filled(expr, queue string) string {
	return strings.NewReplacer("$__rate_interval", "5m", "$job", ".*", "$queue", queue).Replace(expr)
}

// TestYuniKornsDashboard checks the queries of YuniKorn's shipped dashboard, as far as
// YuniKorn has not renamed its metrics since.
func TestYuniKornsDashboard(t *testing.T) {
	page, docs := read(t, "pkg/metrics/testdata/page.txt"), read(t, "docs/metrics.md")
	known := map[string]metric{}
	for _, line := range strings.Split(page, "\n") {
		if fields := strings.Fields(line); len(fields) == 4 && fields[1] == "TYPE" {
			known[fields[2]] = metric{}
		}
	}
	for line := range strings.SplitSeq(page, "\n") {
		name, rest, has := strings.Cut(line, "{")
		if !has || strings.HasPrefix(line, "#") {
			continue
		}
		m := known[name]
		m.labels = nil
		for part := range strings.SplitSeq(rest[:strings.LastIndex(rest, "}")], `",`) {
			label, _, _ := strings.Cut(part, "=")
			m.labels = append(m.labels, label)
		}
		known[name] = m
	}
	known["yunikorn_scheduler_trypreemption_latency_milliseconds"] = metric{histogram: true}
	anything := func(string) bool { return true }
	var queries struct{ Served, NotServed []string }
	if err := yaml.Unmarshal([]byte(read(t, "test/monitoring/testdata/yunikorn.yaml")), &queries); err != nil {
		t.Fatal(err)
	}
	if len(queries.Served) == 0 || len(queries.NotServed) == 0 {
		t.Fatal("no queries")
	}
	for _, q := range queries.Served {
		if err := check(known, q, anything); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
	for _, q := range queries.NotServed {
		if check(known, q, anything) == nil {
			t.Errorf("%s is served", q)
		}
		name := q[strings.Index(q, "yunikorn_"):strings.Index(q, "_bucket")]
		if !strings.Contains(docs, "| `"+name) {
			t.Errorf("docs/metrics.md does not say why %s is not served", name)
		}
	}
}
