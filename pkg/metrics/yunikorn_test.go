package metrics

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/component-base/metrics"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

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

// full is a disk that is.
type full struct{}

var errFull = errors.New("full")

func (full) Write([]byte) (int, error) { return 0, errFull }

func TestYuniKornTellsOfErrors(t *testing.T) {
	v := inventory.New(newStore(t, "root")).View()
	err := WriteYuniKorn(full{}, v)
	expect.That(t, errors.Is(err, errFull), "the writer's: error %v", err)
	before := process
	defer func() { process = before }()
	broken := metrics.NewKubeRegistry()
	broken.RawMustRegister(prometheus.CollectorFunc(func(ch chan<- prometheus.Metric) {
		ch <- prometheus.NewInvalidMetric(prometheus.NewDesc("x", "x", nil, nil), errFull)
	}))
	process = func() metrics.KubeRegistry { return broken }
	var out bytes.Buffer
	err = WriteYuniKorn(&out, v)
	expect.That(t, errors.Is(err, ErrGather) && out.Len() == 0, "error %v after %d bytes", err, out.Len())
}
