// Pairs runs the benchmarks of package perf with upstream's configuration and with ours
// in turn, and compares each pair, because the speed of a machine varies with time, but
// mostly not between two consecutive runs.
//
//	go test -c -tags perf -o bin/perf.test ./test/perf
//	go build -o bin/localplane ./cmd/localplane
//	go run ./test/perf/pairs -pairs 10
//	go run ./test/perf/pairs -pairs 3 -cases .
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	o := options{}
	flag.StringVar(&o.cases, "cases", "^Queues$", "which cases to run, a pattern; "+caseNames())
	flag.BoolVar(&o.large, "large", false, "also run cases of 5,000 nodes that match")
	flag.IntVar(&o.pairs, "pairs", 10, "how many pairs to run of each case")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

type options struct {
	cases string
	large bool
	pairs int
	dir   string // for logs
}

func run(ctx context.Context, o options) error {
	chosen, err := choose(o.cases, o.large)
	if err != nil {
		return err
	}
	if o.dir, err = os.MkdirTemp("", "pairs"); err != nil {
		return err
	}
	fmt.Printf("logs: %s\n\n| case | pair | base pods/s | ours pods/s | ratio | base CPU s | ours CPU s | ratio | base time s | ours time s | load before |\n|---|---|---|---|---|---|---|---|---|---|---|\n", o.dir)
	table, failed := tableHeader, []error(nil)
	for _, c := range chosen {
		all, err := o.pairsOf(ctx, c)
		if len(all) > 0 {
			table += row(c.name, all)
		}
		if err != nil { // the other cases would take hours
			failed = append(failed, fmt.Errorf("%s: %w", c.name, err))
		}
	}
	fmt.Printf("\n%s\n", table)
	return errors.Join(failed...)
}

// pairsOf runs the pairs of a case, until one fails.
func (o options) pairsOf(ctx context.Context, c benchmark) (all []pairOf, err error) {
	for i := range o.pairs {
		pair, err := o.pair(ctx, c, i)
		if err != nil {
			return all, err
		}
		all = append(all, pair)
	}
	return all, nil
}

// measured is the measurements of one run of one side. The CPU time is that of the whole
// process (API server, scheduler and the creation of pods), in the part of the run for
// which the speed is measured. Other load on the machine affects it far less than the
// speed.
type measured struct {
	podsPerSecond float64
	cpu           float64 // seconds
	length        float64 // seconds of the measured part
}

// pairOf is a run of each side, one after the other.
type pairOf struct{ base, ours measured }

// pair runs both configurations, every other time in reverse order.
func (o options) pair(ctx context.Context, c benchmark, i int) (p pairOf, err error) {
	load := loadAverage()
	order := []string{c.base, c.ours}
	if i%2 == 1 {
		order = []string{c.ours, c.base}
	}
	sides := map[string]measured{}
	for _, path := range order {
		label := fmt.Sprintf("%s-%s-%d", c.name, path[strings.LastIndex(path, "/")+1:], i)
		if sides[path], err = o.measure(ctx, path, label); err != nil {
			return pairOf{}, err
		}
	}
	p = pairOf{sides[c.base], sides[c.ours]}
	fmt.Printf("| %s | %d | %.1f | %.1f | %.3f | %.1f | %.1f | %.3f | %.1f | %.1f | %s |\n", c.name, i+1,
		p.base.podsPerSecond, p.ours.podsPerSecond, speed(p), p.base.cpu, p.ours.cpu, cost(p), p.base.length, p.ours.length, load)
	return p, nil
}

var (
	throughput = regexp.MustCompile(`([\d.]+) SchedulingThroughput/Average`)
	cpuTime    = regexp.MustCompile(`measured part: ([\d.]+) s CPU in ([\d.]+) s`)
)

// measure runs one benchmark. It writes its files, above all etcd's data, to memory if
// the machine has a file system there, because the speed of disks also varies with time.
func (o options) measure(ctx context.Context, benchmark, label string) (measured, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	path := filepath.Join(o.dir, label+".log")
	log, err := os.Create(path)
	if err != nil {
		return measured{}, err
	}
	defer func() { _ = log.Close() }() // read below
	cmd := exec.CommandContext(ctx, "../../bin/perf.test", "-test.run=^$", "-test.benchtime=1ns", "-test.timeout=20m",
		"-test.bench=^"+strings.ReplaceAll(benchmark, "/", "$/^")+"$", "-data-items-dir="+o.dir)
	cmd.Dir = "test/perf"
	cmd.Env = append(os.Environ(), "KUBE_CACHE_MUTATION_DETECTOR=false")
	if dir, err := os.MkdirTemp("/dev/shm", "pairs"); err == nil {
		cmd.Env = append(cmd.Env, "TMPDIR="+dir)
		defer func() { _ = os.RemoveAll(dir) }() // of no use
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		return measured{}, fmt.Errorf("run %s: %w; see %s", label, err, path)
	}
	out, err := os.ReadFile(path)
	if err != nil {
		return measured{}, err
	}
	found := throughput.FindSubmatch(out)
	if found == nil {
		return measured{}, fmt.Errorf("run %s: no throughput in %s", label, path)
	}
	used := cpuTime.FindSubmatch(out)
	if used == nil {
		return measured{}, fmt.Errorf("run %s: no CPU time in %s", label, path)
	}
	var m measured
	var err1, err2, err3 error
	m.podsPerSecond, err1 = strconv.ParseFloat(string(found[1]), 64)
	m.cpu, err2 = strconv.ParseFloat(string(used[1]), 64)
	m.length, err3 = strconv.ParseFloat(string(used[2]), 64)
	return m, errors.Join(err1, err2, err3)
}

func loadAverage() string {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "?"
	}
	return strings.Join(strings.Fields(string(b))[:1], "")
}
