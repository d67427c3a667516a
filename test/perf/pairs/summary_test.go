package main

import (
	"math"
	"testing"
)

func TestSummary(t *testing.T) {
	for _, tt := range []struct {
		ratios []float64
		want   string
	}{
		{nil, "no pairs"},
		{[]float64{1, 0.9}, "median ratio 0.950 of 2 pairs, too few for an interval"},
		{[]float64{0.96, 0.91, 0.92, 0.93, 0.95, 0.94}, "median ratio 0.935 of 6 pairs, 96.9 % interval 0.910 to 0.960"},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "median ratio 5.500 of 10 pairs, 97.9 % interval 2.000 to 9.000"},
	} {
		if got := summary(tt.ratios); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.ratios, got, tt.want)
		}
	}
}

func TestInterval(t *testing.T) { // tables of the sign test
	for _, tt := range []struct {
		n, drop    int
		confidence float64
	}{{5, -1, 0}, {6, 0, 0.969}, {10, 1, 0.979}, {20, 5, 0.959}} {
		drop, confidence := interval(tt.n)
		if drop != tt.drop || math.Abs(confidence-tt.confidence) > 0.001 {
			t.Errorf("%d values: %d and %.3f, want %d and %.3f", tt.n, drop, confidence, tt.drop, tt.confidence)
		}
	}
}
