package metrics

import (
	"bytes"
	"errors"
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
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
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

// yunikornPage is the page of a cluster in which a pod of b makes room for one of a.
func yunikornPage(t *testing.T) string {
	t.Helper()
	s := newStore(t, "root\n  a guaranteed.vcore=2 max.memory=64 maxapps=7 props=preemption.delay:1s\n  b")
	s.UpsertNode("n1", queuestest.Vector("vcore=2 memory=64 ephemeral-storage=9 pods=10 nvidia.com/gpu=1"), now)
	s.UpsertNode("n2", queuestest.Vector("pods=0"), now)
	s.SetNodeSchedulable("n2", false, now)
	add(s, "b1", "root.b", "vcore=1", "n1")
	add(s, "b2", "root.b", "vcore=1", "n1")
	add(s, "b3", "root.b", "vcore=1", "n1")
	s.Delete("b3", now)
	add(s, "a1", "root.a", "vcore=2 memory=8", "")
	s.NoNode("a1", "", reasons.Brief(reasons.NoNodeFits), now)
	preempt(t, s, "a1", now.Add(2*time.Second))
	observePlan(time.Millisecond)
	var out bytes.Buffer
	expect.OK(t, WriteYuniKorn(&out, inventory.New(s).View()))
	return out.String()
}

func TestYuniKorn(t *testing.T) {
	page := yunikornPage(t)
	at := strings.Index(page, "# HELP go_")
	expect.That(t, at >= 0 && strings.Contains(page, "\nprocess_start_time_seconds "),
		"nothing is said of the process itself")
	want, err := os.ReadFile("testdata/page.txt")
	if *rewrite {
		want, err = []byte(page[:at]), os.WriteFile("testdata/page.txt", []byte(page[:at]), 0o644)
	}
	expect.OK(t, err)
	expect.Same(t, "the page", string(want), page[:at])
}

// TestYuniKornsNames holds the page against YuniKorn's: each of its metrics is
// there with its type and labels, or docs/metrics.md says why not.
func TestYuniKornsNames(t *testing.T) {
	parser := expfmt.NewTextParser(model.LegacyValidation)
	served := expect.Get(parser.TextToMetricFamilies(strings.NewReader(yunikornPage(t))))(t)
	theirs := expect.Get(os.ReadFile("testdata/yunikorn.txt"))(t)
	docs := expect.Get(os.ReadFile(pagePath))(t)
	known := map[string]bool{}
	for _, line := range strings.Split(string(theirs), "\n") {
		fields := append(strings.Fields(line), "", "", "")
		name, kind := fields[0], fields[1]
		if name == "" || name == "#" {
			continue
		}
		known[name] = true
		f := served[name]
		if f == nil {
			expect.That(t, strings.Contains(string(docs), "| `"+name),
				"%s is not served, and the page does not say why", name)
			continue
		}
		expect.Same(t, "type of "+name, kind, strings.ToLower(f.GetType().String()))
		for _, m := range f.GetMetric() {
			expect.Same(t, "labels of "+name, fields[2], strings.Join(labels(m), ","))
		}
	}
	for name := range served {
		expect.That(t, !strings.HasPrefix(name, "yunikorn_") || known[name],
			"%s is served, and YuniKorn does not have it", name)
	}
}

var errFull = errors.New("full")

func TestYuniKornTellsOfErrors(t *testing.T) {
	v := inventory.New(newStore(t, "root")).View()
	before := process
	defer func() { process = before }()
	broken := metrics.NewKubeRegistry()
	broken.RawMustRegister(prometheus.CollectorFunc(func(ch chan<- prometheus.Metric) {
		ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("x", "x", nil, nil), errFull)
	}))
	process = func() metrics.KubeRegistry { return broken }
	var out bytes.Buffer
	err := WriteYuniKorn(&out, v)
	expect.That(t, errors.Is(err, errFull) && out.Len() == 0, "error %v after %d bytes", err, out.Len())
}
