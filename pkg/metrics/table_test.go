package metrics

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/testutil"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/record"
)

// everything has all that there may be on /metrics there.
func everything(t *testing.T) map[string]*dto.MetricFamily {
	t.Helper()
	s := newStore(t, "root\n  a max.vcore=1")
	s.UpsertNode("n1", queuestest.Vector("vcore=1 memory=64 pods=9"), now)
	add(s, "running", "root.a", "vcore=1", "n1")
	add(s, "over", "root.a", "vcore=1", "")
	Audited([]string{"pod"})
	c := NewDecisions()
	for _, step := range steps() {
		c.Count(&step)
	}
	Planned(record.Queue, time.Millisecond)
	unmetTime.add(countKey{"root.a", "InOrder"}, int64(time.Second))
	return series(t)
}

// TestMetricsAreNamedWell looks at every metric of ours that is registered.
func TestMetricsAreNamedWell(t *testing.T) {
	found := everything(t)
	var text strings.Builder
	for name, f := range found {
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %s %s\n", name, f.GetHelp(), name, strings.ToLower(f.GetType().String()))
		if f.GetType() == dto.MetricType_HISTOGRAM {
			fmt.Fprintf(&text, "%s_bucket{le=\"+Inf\"} 1\n%s_sum 1\n%s_count 1\n", name, name, name)
		} else {
			fmt.Fprintf(&text, "%s 1\n", name)
		}
		if !strings.HasPrefix(f.GetHelp(), "[ALPHA] ") || !strings.HasSuffix(f.GetHelp(), ".") {
			t.Errorf("%s: help is no sentence with a stability: %q", name, f.GetHelp())
		}
	}
	lint(t, text.String(), 0)
	lint(t, "# HELP paddock_reloads Reloads.\n# TYPE paddock_reloads counter\npaddock_reloads 1\n", 1) // without _total
}

// TestTableIsWhatIsExported compares kinds, labels and helps with what a scrape has.
func TestTableIsWhatIsExported(t *testing.T) {
	found := everything(t)
	expect.Same(t, "number of exported metrics", len(Table()), len(found))
	for _, e := range Table() {
		f := found[e.FullName()]
		if f == nil {
			t.Errorf("%s is not exported", e.FullName())
			continue
		}
		if kind := Kind(strings.ToLower(f.GetType().String())); kind != e.Kind || f.GetHelp() != "[ALPHA] "+e.Help {
			t.Errorf("%s is a %s: %s", e.FullName(), kind, f.GetHelp())
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
			if !slices.Equal(labels, slices.Sorted(slices.Values(e.Labels))) {
				t.Errorf("%s has the labels %v, the table %v", e.FullName(), labels, e.Labels)
			}
		}
	}
}

func lint(t *testing.T, text string, want int) {
	t.Helper()
	problems, err := testutil.NewPromLinter(strings.NewReader(text)).Lint()
	if err != nil || len(problems) != want {
		t.Errorf("lint: %d problems %v, error %v; want %d problems in\n%s", len(problems), problems, err, want, text)
	}
}

var rewrite = flag.Bool("rewrite", false, "write the list of metrics as the table has it")

const (
	pagePath = "../../docs/metrics.md"
	listHead = "<!-- The list is made from pkg/metrics/table.go: go test ./pkg/metrics -rewrite -->\n"
	listEnd  = "<!-- end of the list -->\n"
)

// list is the table as docs/metrics.md has it.
func list() string {
	var b strings.Builder
	b.WriteString("| metric | type | labels | what it is |\n|---|---|---|---|\n")
	for _, e := range Table() {
		labels := ""
		if len(e.Labels) > 0 {
			labels = "`" + strings.Join(e.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.FullName(), e.Kind, labels, e.Help)
	}
	return b.String()
}

func TestPageSaysWhatTheTableSays(t *testing.T) {
	text := expect.Get(os.ReadFile(pagePath))(t)
	before, rest, ok := strings.Cut(string(text), listHead)
	_, after, ended := strings.Cut(rest, listEnd)
	if !ok || !ended {
		t.Fatalf("%s has no place for the list", pagePath)
	}
	want := before + listHead + list() + listEnd + after
	if *rewrite {
		expect.OK(t, os.WriteFile(pagePath, []byte(want), 0o644))
		text = []byte(want)
	}
	expect.Same(t, "the page and the table (-) differ; make it anew with: go test ./pkg/metrics -rewrite", want, string(text))
}
