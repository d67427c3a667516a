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
		{nil, "none"},
		{[]float64{0.9, 1}, "0.950 (all: 0.900 to 1.000)"},
		{[]float64{0.91, 0.92, 0.93, 0.94, 0.95, 0.96}, "0.935 (96.9 %: 0.910 to 0.960)"},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "5.500 (97.9 %: 2.000 to 9.000)"},
	} {
		if got := summary(tt.ratios); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.ratios, got, tt.want)
		}
	}
}

func TestRow(t *testing.T) {
	got := row("Case", []pairOf{
		{measured{100, 10, 10}, measured{90, 20, 11}},
		{measured{200, 10, 10}, measured{220, 10, 9}},
		{measured{300, 10, 10}, measured{300, 5, 20}},
	})
	want := "| Case | 3 | 200 | 220 | 1.000 (all: 0.900 to 1.100) | 1.000 (all: 0.500 to 2.000) | 1.167 | 1.100 (all: 0.900 to 2.000) |\n"
	if got != want {
		t.Errorf("%s, want %s", got, want)
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
