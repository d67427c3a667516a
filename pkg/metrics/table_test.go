package metrics

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/component-base/metrics/legacyregistry"

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
	ours := slices.Collect(maps.Keys(found))
	problems := expect.Get(testutil.GatherAndLint(legacyregistry.DefaultGatherer, ours...))(t)
	expect.That(t, len(problems) == 0, "%v", problems)
	for name, f := range found {
		expect.That(t, strings.HasPrefix(f.GetHelp(), "[ALPHA] ") && strings.HasSuffix(f.GetHelp(), "."),
			"%s: help is no sentence with a stability: %q", name, f.GetHelp())
	}
	wrong := prometheus.NewRegistry()
	reloads := prometheus.CounterOpts{Name: "paddock_reloads", Help: "Reloads."} // without _total
	wrong.MustRegister(prometheus.NewCounter(reloads))
	expect.Same(t, "problems", 1, len(expect.Get(testutil.GatherAndLint(wrong))(t)))
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
		expect.Same(t, e.FullName(), e.Kind, Kind(strings.ToLower(f.GetType().String())))
		expect.Same(t, "help of "+e.FullName(), "[ALPHA] "+e.Help, f.GetHelp())
		for _, m := range f.GetMetric() {
			expect.Same(t, "labels of "+e.FullName(), slices.Sorted(slices.Values(e.Labels)), labels(m))
		}
	}
}

// labels are the names of the labels of a series, in order.
func labels(m *dto.Metric) (names []string) {
	for _, l := range m.GetLabel() {
		names = append(names, l.GetName())
	}
	slices.Sort(names)
	return names
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
