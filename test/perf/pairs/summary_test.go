package main

import (
	"fmt"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestSummary(t *testing.T) { // with tables of the sign test
	for _, tt := range []struct {
		ratios []float64
		want   string
	}{
		{nil, "none"},
		{[]float64{0.9, 1}, "0.950 (all: 0.900 to 1.000)"},
		{[]float64{0.91, 0.92, 0.93, 0.94, 0.95, 0.96}, "0.935 (96.9 %: 0.910 to 0.960)"},
		{[]float64{1, 2, 3, 4, 5}, "3.000 (all: 1.000 to 5.000)"},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, "5.500 (97.9 %: 2.000 to 9.000)"},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20},
			"10.500 (95.9 %: 6.000 to 15.000)"},
	} {
		expect.Same(t, fmt.Sprint(tt.ratios), tt.want, summary(tt.ratios))
	}
}

func TestRow(t *testing.T) {
	got := row("Case", []pairOf{
		{measured{100, 10, 10}, measured{90, 20, 11}},
		{measured{200, 10, 10}, measured{220, 10, 9}},
		{measured{300, 10, 10}, measured{300, 5, 20}},
	})
	want := "| Case | 3 | 200 | 220 | 1.000 (all: 0.900 to 1.100) | 1.000 (all: 0.500 to 2.000) | 1.167 | 1.100 (all: 0.900 to 2.000) |\n"
	expect.Same(t, "the row", want, got)
}
