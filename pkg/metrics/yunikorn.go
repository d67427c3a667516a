package metrics

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"
	"k8s.io/component-base/metrics"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// YuniKorn's buckets of latencies, in seconds whatever the name says.
var yunikornBuckets = []float64{0.0001, 0.001, 0.01, 0.1, 1, 10, 100, 1000}

var tryPreemption = metrics.NewHistogram(&metrics.HistogramOpts{
	Namespace: "yunikorn", Subsystem: "scheduler", Name: "trypreemption_latency_milliseconds", Buckets: yunikornBuckets,
	Help: "How long it took to decide whether room can be made for a pod, in seconds.", StabilityLevel: metrics.ALPHA,
})

// process is what YuniKorn's page has of the process itself.
var process = sync.OnceValue(func() metrics.KubeRegistry {
	r := metrics.NewKubeRegistry()
	r.MustRegister(tryPreemption)
	r.RawMustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	return r
})

// observePlan notes a decision under YuniKorn's name.
func observePlan(took time.Duration) {
	process()
	tryPreemption.Observe(took.Seconds())
}

// WriteYuniKorn writes a view under YuniKorn's names, in the text format of Prometheus. All
// queues are there. An error is that metrics of the process could not be gathered; nothing is
// written then. Errors of the writer, such as a reader that has gone away, are not returned.
func WriteYuniKorn(w io.Writer, v *inventory.View) error {
	families, err := process().Gather()
	if err != nil {
		return fmt.Errorf("gather the metrics of the process: %w", err)
	}
	p := &page{Writer: bufio.NewWriterSize(w, pageBuffer)}
	p.queues(v)
	p.applications(v)
	p.nodes(v)
	for _, f := range families {
		_, _ = expfmt.MetricFamilyToText(p, f)
	}
	_ = p.Flush()
	return nil
}

// pageBuffer is how much is written at a time.
const pageBuffer = 64 << 10

// page writes metrics as text.
type page struct{ *bufio.Writer }

func (p *page) family(name, kind, help string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

var escape = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// sample writes a value; labels are pairs of name and value.
func (p *page) sample(name string, value int64, labels ...string) {
	line := append(p.AvailableBuffer(), name...)
	before := byte('{')
	for i := 0; i < len(labels); i += 2 {
		line = append(append(append(line, before), labels[i]...), '=', '"')
		line = append(append(line, escape.Replace(labels[i+1])...), '"')
		before = ','
	}
	if len(labels) > 0 {
		line = append(line, '}')
	}
	_, _ = p.Write(append(strconv.AppendInt(append(line, ' '), value, 10), '\n'))
}

// queues writes what queues have, in YuniKorn's units: thousandths of cores.
func (p *page) queues(v *inventory.View) {
	const name = "yunikorn_queue_resource"
	p.family(name, "gauge", "Resources of a queue and those below it: guaranteed, max, allocated, pending, preempting, and maxRunningApps.")
	preempting := v.Preempting()
	for q := range v.Queues.All() {
		show := func(resource string, amount resources.Amount, state string) {
			p.sample(name, int64(amount), "queue", q.Path, "resource", resource, "state", state)
		}
		show("apps", resources.Amount(q.MaxApplications), "maxRunningApps")
		limit := v.Queues.ShownMax(q)
		for _, resource := range typesOf(q) {
			if g, ok := q.Guaranteed.Get(resource); ok {
				show(resource, g, "guaranteed")
			}
			if most, ok := limit.Get(resource); ok {
				show(resource, most, "max")
			}
			show(resource, q.Allocated.Get(resource), "allocated")
			show(resource, q.Pending.Get(resource), "pending")
			show(resource, preempting[q.ID].Get(resource), "preempting")
		}
	}
}

// applications writes how many there are, and were, and of pods how many were
// allocated.
func (p *page) applications(v *inventory.View) {
	type states struct{ accepted, running int64 }
	of, running := map[string]states{}, int64(0)
	for _, a := range v.Applications {
		s := of[a.Queue]
		if a.Running.IsZero() {
			s.accepted++
		} else {
			s.running++
			running++
		}
		of[a.Queue] = s
	}
	p.family("yunikorn_queue_app", "gauge", "Applications of a queue itself that have pods: accepted, and running from the first that is bound.")
	for _, queue := range slices.Sorted(maps.Keys(of)) {
		p.sample("yunikorn_queue_app", of[queue].accepted, "queue", queue, "state", "accepted")
		p.sample("yunikorn_queue_app", of[queue].running, "queue", queue, "state", "running")
	}
	p.family("yunikorn_scheduler_application_total", "gauge", "Applications that run, and how many have ended since this process started.")
	p.sample("yunikorn_scheduler_application_total", int64(v.Counts.Completed), "state", "completed")
	p.sample("yunikorn_scheduler_application_total", running, "state", "running")
	p.family("yunikorn_scheduler_application_submission_total", "counter", "Applications that were given a queue since this process started.")
	p.sample("yunikorn_scheduler_application_submission_total", int64(v.Counts.Accepted), "result", "accepted")
	p.sample("yunikorn_scheduler_application_submission_total", int64(v.Counts.Accepted), "result", "new")
	p.family("yunikorn_scheduler_container_allocation_attempt_total", "counter", "Pods of queues that got a node, and left it, since this process started.")
	p.sample("yunikorn_scheduler_container_allocation_attempt_total", int64(v.Counts.Allocated), "state", "allocated")
	p.sample("yunikorn_scheduler_container_allocation_attempt_total", int64(v.Counts.Released), "state", "released")
}

// ranges are the tenths that nodes have in use.
var ranges = [...]string{
	"[0,10%]", "(10%,20%]", "(20%,30%]", "(30%,40%]", "(40%,50%]", "(50%,60%]", "(60%,70%]", "(70%,80%]", "(80%,90%]", "(90%,100%]",
}

// nodes writes how many nodes there are, and how much of them pods of queues use.
func (p *page) nodes(v *inventory.View) {
	var active, draining int64
	for _, n := range v.Nodes {
		if n.Schedulable {
			active++
		} else {
			draining++
		}
	}
	p.family("yunikorn_scheduler_node", "gauge", "Nodes that take new pods (active), and cordoned ones (draining).")
	p.sample("yunikorn_scheduler_node", active, "state", "active")
	p.sample("yunikorn_scheduler_node", draining, "state", "draining")
	usage := v.Tenths()
	for _, resource := range slices.Sorted(maps.Keys(usage)) {
		name, ok := usageName(resource)
		if !ok {
			continue
		}
		p.family(name, "gauge", "Nodes by how much of the resource pods of queues use.")
		for i, nodes := range usage[resource] {
			p.sample(name, int64(len(nodes)), "range", ranges[i])
		}
	}
}

// usageName returns the name of a metric for a type of resource. It returns false for types
// with characters other than a to z and the dash, because two types could get the same name.
func usageName(resource string) (string, bool) {
	for _, c := range resource {
		if c != '-' && (c < 'a' || c > 'z') {
			return "", false
		}
	}
	return "yunikorn_scheduler_" + strings.ReplaceAll(resource, "-", "_") + "_node_usage_total", true
}
