package monitoring

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// metric is a name that queries may use, with its labels.
type metric struct {
	histogram bool
	labels    []string
}

// upstream are metrics of kube-scheduler that are queried, with their labels.
var upstream = map[string]metric{
	"scheduler_schedule_attempts_total":             {labels: []string{"profile", "result"}},
	"scheduler_scheduling_attempt_duration_seconds": {histogram: true, labels: []string{"profile", "result"}},
}

// target are the labels that Prometheus adds.
var target = []string{"job", "instance", "namespace", "pod"}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile("../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// that is That of internal/expect, which this module does not have.
func that(t *testing.T, holds bool, text string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(text, args...)
	}
}

var quoted = regexp.MustCompile("`([^`]*)`")

// exported reads the list of docs/metrics.md.
func exported(t *testing.T) map[string]metric {
	t.Helper()
	out := map[string]metric{}
	for _, line := range strings.Split(read(t, "docs/metrics.md"), "\n") {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `paddock_") {
			continue
		}
		m := metric{histogram: strings.TrimSpace(cells[2]) == "histogram"}
		for _, l := range quoted.FindAllStringSubmatch(cells[3], -1) {
			m.labels = append(m.labels, l[1])
		}
		out[quoted.FindStringSubmatch(cells[1])[1]] = m
	}
	if len(out) < 10 {
		t.Fatalf("docs/metrics.md lists %d metrics", len(out))
	}
	return out
}

// find returns the metric that a series belongs to.
func find(known map[string]metric, series string) (metric, bool) {
	if m, is := known[series]; is && !m.histogram {
		return m, true
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		if m := known[strings.TrimSuffix(series, suffix)]; m.histogram && strings.HasSuffix(series, suffix) {
			if suffix == "_bucket" {
				m.labels = append(slices.Clone(m.labels), "le")
			}
			return m, true
		}
	}
	return metric{}, false
}

// check returns what is wrong with an expression; value tells whether a label may have a value.
func check(known map[string]metric, expr string, value func(string) bool) error {
	parsed, err := parser.ParseExpr(expr)
	if err != nil {
		return err
	}
	var problem error
	var there []string // the labels of all series
	series := 0
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		s, is := node.(*parser.VectorSelector)
		if !is || problem != nil {
			return nil
		}
		series++
		m, is := find(known, s.Name)
		if !is {
			problem = fmt.Errorf("%s is not exported", s.Name)
			return nil
		}
		has := append(slices.Clone(m.labels), target...)
		there = append(there, has...)
		problem = checkMatchers(s, has, value)
		return nil
	})
	if problem == nil && series == 0 {
		return fmt.Errorf("no metric is asked for")
	}
	parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
		if a, is := node.(*parser.AggregateExpr); is && problem == nil {
			for _, l := range a.Grouping {
				if !slices.Contains(there, l) {
					problem = fmt.Errorf("grouped by %s, which nothing has", l)
				}
			}
		}
		return nil
	})
	return problem
}

func checkMatchers(s *parser.VectorSelector, has []string, value func(string) bool) error {
	for _, m := range s.LabelMatchers {
		if m.Name == labels.MetricName {
			continue
		}
		if !slices.Contains(has, m.Name) {
			return fmt.Errorf("%s has no label %s", s.Name, m.Name)
		}
		open := slices.Contains(target, m.Name) || m.Name == "queue" || m.Name == "resource"
		for _, v := range strings.Split(m.Value, "|") {
			if !open && !value(v) {
				return fmt.Errorf("%s: it is not said that label %s may be %q", s.Name, m.Name, v)
			}
		}
	}
	return nil
}

// inDocs tells whether docs/metrics.md has a value.
func inDocs(t *testing.T) func(string) bool {
	t.Helper()
	docs := read(t, "docs/metrics.md")
	return func(v string) bool { return strings.Contains(docs, "`"+v+"`") }
}

func TestWrongExpressionsAreFound(t *testing.T) {
	known := map[string]metric{"a_total": {labels: []string{"state"}}, "h_seconds": {histogram: true}}
	open := func(v string) bool { return v == "open" }
	for expr, want := range map[string]string{
		`sum by (state) (rate(a_total{state="open",job="x"}[5m]))`:          "",
		`histogram_quantile(0.9, sum by (le) (rate(h_seconds_bucket[5m])))`: "",
		`sum by (state (a_total)`:                                           "parse error",
		`b_total`:                                                           "b_total is not exported",
		`h_seconds`:                                                         "h_seconds is not exported",
		`a_total_count`:                                                     "not exported",
		`a_total{stat="open"}`:                                              "no label stat",
		`a_total{state=~"open|shut"}`:                                       `may be "shut"`,
		`sum by (reason) (a_total)`:                                         "grouped by reason",
		`1 + 1`:                                                             "no metric",
		`sum by (le) (rate(h_seconds_count[5m]))`:                           "grouped by le",
	} {
		err := check(known, expr, open)
		said := err != nil && strings.Contains(err.Error(), want)
		that(t, want == "" && err == nil || want != "" && said, "%s: error %v, want %q", expr, err, want)
	}
}
