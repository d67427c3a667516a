package metrics

import (
	"slices"

	"k8s.io/component-base/metrics"
)

// subsystem is the first part of the names of our metrics.
const subsystem = "paddock"

// Kind is the type of a metric, as Prometheus calls it.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Entry describes a metric to people: a line of docs/metrics.md.
type Entry struct {
	// Name is without the subsystem.
	Name   string
	Kind   Kind
	Labels []string
	// Help is a sentence.
	Help string
}

// FullName is the name on /metrics.
func (e Entry) FullName() string { return subsystem + "_" + e.Name }

// Table lists every metric once, in the order of docs/metrics.md.
func Table() []Entry { return slices.Clone(table) }

var table = []Entry{
	{"queue_resource", Gauge, []string{"queue", "resource", "state"},
		"What a queue is guaranteed, may use at most, uses and waits for: cores of vcore, bytes of memory and storage, else counts."},
	{"queue_applications", Gauge, []string{"queue", "state"},
		"Applications of a queue and those below it: all that have pods, those that count as running, and how many may."},
	{"queues_shown", Gauge, nil, "Queues that have series of their own."},
	{"queues_hidden", Gauge, nil, "Queues that have no series of their own, because there are too many queues; those above them include them."},
	{"queue_unmet_guarantee_seconds_total", Counter, []string{"queue", "reason"},
		"For how long a queue was under its guarantee while pods waited that preemption could lawfully make room for, by what they waited for."},
	{"time_to_guarantee_seconds", Histogram, nil, "For how long each time a queue was under its guarantee while pods waited that preemption could lawfully make room for."},
	{"gated_pods", Gauge, []string{"reason"}, "Pods of queues that are kept out of the scheduler's own queue, by the reason."},
	{"holds", Gauge, []string{"kind", "state"}, "Nodes held for pods, by the kind of pod, and whether the victims are gone."},
	{"longest_clear_hold_timestamp_seconds", Gauge, []string{"kind"}, "Unix time since which the hold that has been clear for longest waits for no pod; 0 if no hold is clear."},
	{"hold_duration_seconds", Histogram, []string{"kind", "end"}, "How long nodes were held, by the kind of pod, and how the hold ended."},
	{"holds_lost_total", Counter, []string{"kind", "reason"},
		"Holds that were lost: pods went, the node was kept clear until the time-out, or the plan could not be carried out, and the pod did not get the room. By the reason."},
	{"preemption_decisions_total", Counter, []string{"kind", "outcome", "reason"},
		"Decisions whether to make room for a pod, by outcome, and by the rule or reason that stopped them."},
	{"preemption_rejected_candidates_total", Counter, []string{"kind", "rule"}, "Pods that decisions found could not go, by the law or rule that protects them, once for each decision."},
	{"preemption_victims_total", Counter, []string{"queue", "kind", "class"}, "Pods that were preempted, by their queue, the kind of pod that preempted them, and their role in their application."},
	{"preemption_plan_duration_seconds", Histogram, []string{"kind"}, "How long it took to decide whether room can be made for a pod."},
	{"config_last_reload_success", Gauge, nil, "Whether the last read of the queue configuration gave a usable one (1) or not (0)."},
	{"config_last_reload_success_timestamp_seconds", Gauge, nil, "Unix time of the last read that gave a usable queue configuration."},
	{"config_reload_failures_total", Counter, nil, "How often the queue configuration was read and could not be used."},
	{"decision_steps_lost_total", Counter, nil, "Steps of decisions that were not recorded, because there were too many at a time."},
	{"store_drift_total", Counter, []string{"kind"}, "How often the scheduler's books were found to differ from what the API server says; anything above 0 is a mistake of the scheduler."},
}

// entry is the line of the table with a name; a name that it does not have is a
// mistake of this package.
func entry(name string) Entry {
	i := slices.IndexFunc(table, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		panic("metrics: " + name + " is not in the table")
	}
	return table[i]
}

func describe(name string) *metrics.Desc {
	e := entry(name)
	return metrics.NewDesc(e.FullName(), e.Help, e.Labels, nil, metrics.ALPHA, "")
}

func newGauge(name string) *metrics.Gauge {
	return metrics.NewGauge(&metrics.GaugeOpts{Subsystem: subsystem, Name: name, Help: entry(name).Help, StabilityLevel: metrics.ALPHA})
}

func newCounter(name string) *metrics.Counter {
	return metrics.NewCounter(&metrics.CounterOpts{Subsystem: subsystem, Name: name, Help: entry(name).Help, StabilityLevel: metrics.ALPHA})
}

func newHistogramVec(name string, buckets []float64) *metrics.HistogramVec {
	e := entry(name)
	return metrics.NewHistogramVec(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: name, Help: e.Help, Buckets: buckets, StabilityLevel: metrics.ALPHA,
	}, e.Labels)
}

func newHistogram(name string, buckets []float64) *metrics.Histogram {
	return metrics.NewHistogram(&metrics.HistogramOpts{
		Subsystem: subsystem, Name: name, Help: entry(name).Help, Buckets: buckets, StabilityLevel: metrics.ALPHA,
	})
}

func newCounters(name string) *metrics.CounterVec {
	e := entry(name)
	return metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: subsystem, Name: name, Help: e.Help, StabilityLevel: metrics.ALPHA}, e.Labels)
}

func gauge(ch chan<- metrics.Metric, d *metrics.Desc, value float64, labels ...string) {
	ch <- metrics.NewLazyConstMetric(d, metrics.GaugeValue, value, labels...)
}
