//go:build perf

package perf

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// meter measures the CPU time that the process spends in the measured part of a
// run: API server, scheduler and what creates pods. Scheduler_perf tells when that
// is by the way it reads the registry of metrics: many times at once when it begins
// and when it ends, and once a second in between. The meter is in the registry and
// looks at the clock whenever it is read.
type meter struct {
	metrics.BaseStableCollector

	// mu guards looks.
	mu    sync.Mutex
	looks []look
}

// look is how late it was, and the CPU time of the process until then.
type look struct {
	at  time.Time
	cpu time.Duration
}

var cpu = &meter{}

// DescribeWithStability serves the registry, which wants something of everybody.
func (*meter) DescribeWithStability(ch chan<- *metrics.Desc) {
	ch <- metrics.NewDesc("paddock_perf_meter", "Nothing; it is read to see when.", nil, nil, metrics.ALPHA, "")
}

// CollectWithStability serves the registry.
func (m *meter) CollectWithStability(chan<- metrics.Metric) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks = append(m.looks, look{time.Now(), time.Duration(used.Utime.Nano() + used.Stime.Nano())})
}

// measure runs f and prints the CPU time of its measured part.
func (m *meter) measure(b *testing.B, f func()) {
	b.Helper()
	m.mu.Lock()
	m.looks = nil
	m.mu.Unlock()
	f()
	m.mu.Lock()
	defer m.mu.Unlock()
	begin, end, err := span(m.looks)
	if err != nil {
		b.Error(err)
		return
	}
	fmt.Printf("measured part: %.3f s CPU in %.3f s\n", (end.cpu - begin.cpu).Seconds(), end.at.Sub(begin.at).Seconds())
}

// span finds begin and end of the measured part: the first look that none follows
// for a while, and the one after the last that none came before for a while.
func span(looks []look) (begin, end look, err error) {
	const tick = 700 * time.Millisecond // less than the second between two looks
	first, last := -1, -1
	for i := 1; i < len(looks); i++ {
		if looks[i].at.Sub(looks[i-1].at) < tick {
			continue
		}
		if first < 0 {
			first = i - 1
		}
		last = i
	}
	if first < 0 {
		return look{}, look{}, fmt.Errorf("the metrics were read %d times and never once a second: is it still so that scheduler_perf measures?", len(looks))
	}
	return looks[first], looks[min(last+1, len(looks)-1)], nil
}

func registerMeter() { legacyregistry.CustomMustRegister(cpu) }
