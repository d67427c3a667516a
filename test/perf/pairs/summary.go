package main

import (
	"fmt"
	"math"
	"math/big"
	"slices"
)

// tableHeader is the header of the table with a row for each case.
const tableHeader = "| case | pairs | base pods/s | ours pods/s | ratio | CPU of the process, ratio | CPU of all pairs, ratio | time, ratio |\n|---|---|---|---|---|---|---|---|\n"

// row is the line of a case: medians of the speeds, and of the ratios of speed and cost
// with their intervals. Beside the cost is the ratio of the CPU times of all pairs: where
// single pairs differ by a fifth, it varies less than the median. The time is that of the
// measured part, from its first pod to the last that gets a node: the speeds leave out what
// follows the last sample, which is taken once a second.
func row(name string, pairs []pairOf) string {
	var all pairOf
	for _, p := range pairs {
		all.base.cpu, all.ours.cpu = all.base.cpu+p.base.cpu, all.ours.cpu+p.ours.cpu
	}
	return fmt.Sprintf("| %s | %d | %.0f | %.0f | %s | %s | %.3f | %s |\n", name, len(pairs),
		median(sorted(pairs, func(p pairOf) float64 { return p.base.podsPerSecond })),
		median(sorted(pairs, func(p pairOf) float64 { return p.ours.podsPerSecond })),
		summary(sorted(pairs, speed)), summary(sorted(pairs, cost)), cost(all), summary(sorted(pairs, length)))
}

// The compared figures of a pair: ours divided by base.
func speed(p pairOf) float64  { return p.ours.podsPerSecond / p.base.podsPerSecond }
func cost(p pairOf) float64   { return p.ours.cpu / p.base.cpu }
func length(p pairOf) float64 { return p.ours.length / p.base.length }

func sorted(pairs []pairOf, of func(pairOf) float64) []float64 {
	var values []float64
	for _, p := range pairs {
		values = append(values, of(p))
	}
	slices.Sort(values)
	return values
}

// summary is the median of the ratios with an interval that contains the true median in
// at least 95 of 100 such series, whatever the distribution: the smallest one between two
// of the sorted ratios that are equally far from both ends. With fewer than six ratios
// there is no such interval, and it reports the smallest and the largest.
func summary(sorted []float64) string {
	if len(sorted) == 0 {
		return "none"
	}
	out := fmt.Sprintf("%.3f", median(sorted))
	if drop, confidence := interval(len(sorted)); drop >= 0 {
		return out + fmt.Sprintf(" (%.1f %%: %.3f to %.3f)", 100*confidence, sorted[drop], sorted[len(sorted)-1-drop])
	}
	return out + fmt.Sprintf(" (all: %.3f to %.3f)", sorted[0], sorted[len(sorted)-1])
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// interval returns how many of n sorted values may be left out at either end so
// that the rest spans the median with a confidence of 95 % or more, and that
// confidence; -1 if none may.
func interval(n int) (drop int, confidence float64) {
	drop = -1
	tail := 0.0 // probability that at most drop+1 values lie on one side of the median
	for k := range n / 2 {
		ways, _ := new(big.Int).Binomial(int64(n), int64(k)).Float64()
		tail += ways / math.Exp2(float64(n))
		if 1-2*tail < 0.95 {
			break
		}
		drop, confidence = k, 1-2*tail
	}
	return drop, confidence
}
