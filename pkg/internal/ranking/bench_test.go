package ranking_test

import (
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
)

// The first of 5,000 items is taken out and another one comes that is last but a few.
func BenchmarkUpdate(b *testing.B) {
	h := ranking.New(less)
	var items []*item
	for i := range 5000 {
		items = append(items, &item{value: i * 7919 % 5000, id: i, at: ranking.Outside})
		h.Update(items[i], true)
	}
	for i := 0; b.Loop(); i++ {
		first, _ := h.First()
		h.Update(first, false)
		first.value += 4990 + i%20
		h.Update(first, true)
	}
}
