package main

import (
	"fmt"
	"math"
	"slices"
)

// summary is the median of the ratios with an interval that contains the true
// median in at least 95 of 100 such series, whatever the distribution: the
// smallest one between two of the sorted ratios, as many from either end.
func summary(ratios []float64) string {
	if len(ratios) == 0 {
		return "no pairs"
	}
	sorted := slices.Sorted(slices.Values(ratios))
	out := fmt.Sprintf("median ratio %.3f of %d pairs", median(sorted), len(sorted))
	if drop, confidence := interval(len(sorted)); drop >= 0 {
		return out + fmt.Sprintf(", %.1f %% interval %.3f to %.3f", 100*confidence, sorted[drop], sorted[len(sorted)-1-drop])
	}
	return out + ", too few for an interval"
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
		tail += binomial(n, k) / math.Exp2(float64(n))
		if 1-2*tail < 0.95 {
			break
		}
		drop, confidence = k, 1-2*tail
	}
	return drop, confidence
}

func binomial(n, k int) float64 {
	b := 1.0
	for i := range k {
		b = b * float64(n-i) / float64(i+1)
	}
	return b
}
