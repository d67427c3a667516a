//go:build perf

package perf

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/component-base/metrics"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"
	"k8s.io/kubernetes/test/utils/ktesting"
)

// meter measures the CPU time of the process in the measured part of a run: API server,
// scheduler and the creation of pods. Scheduler_perf reads the metrics registry when that
// part begins and when it ends; the meter is in the registry and reads the clocks
// whenever it is collected.
type meter struct {
	metrics.BaseStableCollector

	// mu guards benchmark and looks.
	mu        sync.Mutex
	benchmark *testing.B // the one that scheduler_perf made for the workload
	looks     []look
}

var cpu = &meter{}

// DescribeWithStability describes a metric, because the registry requires one of every
// collector.
func (*meter) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- metrics.NewDesc("paddock_perf_meter", "Nothing; it is read to see when.", nil, nil, metrics.ALPHA, "")
}

// CollectWithStability reads the clocks. A sample of scheduler_perf may read the timer at
// the moment when it is stopped; span detects the inconsistency.
func (m *meter) CollectWithStability(chan<- metrics.Metric) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.benchmark != nil {
		m.looks = append(m.looks, look{time.Now(), time.Duration(used.Utime.Nano() + used.Stime.Nano()), m.benchmark.Elapsed()})
	}
}

// follow makes the meter read the timer of a benchmark, starting without looks.
func (m *meter) follow(b *testing.B) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.benchmark, m.looks = b, nil
}

// seen returns the looks, and ends their collection.
func (m *meter) seen() []look {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.benchmark = nil
	return m.looks
}

// measure runs the case of a file, calls atEnd before its cluster is gone, and prints the
// CPU time of its measured part.
func measure(b *testing.B, file, name string, atEnd func(ktesting.TContext)) {
	b.Helper()
	perf.RunBenchmarkPerfScheduling(b, file, name, registry, perf.WithPrepareFn(func(tCtx ktesting.TContext) error {
		workload, ok := tCtx.TB().(*testing.B)
		if !ok {
			return fmt.Errorf("scheduler_perf runs a workload in a %T", tCtx.TB())
		}
		cpu.follow(workload)
		if atEnd != nil {
			tCtx.CleanupCtx(atEnd)
		}
		return nil
	}))
	used, length, err := span(cpu.seen())
	if err != nil {
		b.Error(err)
		return
	}
	fmt.Printf("measured part: %.3f s CPU in %.3f s\n", used.Seconds(), length.Seconds())
}
