package resources

import (
	"fmt"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestAmountSaturates(t *testing.T) {
	tests := []struct{ a, b, sum, diff Amount }{
		{0, 0, 0, 0},
		{2, 3, 5, -1},
		{MaxAmount, 0, MaxAmount, MaxAmount},
		{MaxAmount, 1, MaxAmount, MaxAmount - 1},
		{MaxAmount, MaxAmount, MaxAmount, 0},
		{MaxAmount, -1, MaxAmount - 1, MaxAmount},
		{MaxAmount, MinAmount, -1, MaxAmount},
		{MinAmount, 0, MinAmount, MinAmount},
		{MinAmount, 1, MinAmount + 1, MinAmount},
		{MinAmount, -1, MinAmount, MinAmount + 1},
		{MinAmount, MinAmount, MinAmount, 0},
		{MinAmount, MaxAmount, -1, MinAmount},
		{0, MinAmount, MinAmount, MaxAmount},
		{-1, MinAmount, MinAmount, MaxAmount},
		{-2, MinAmount, MinAmount, MaxAmount - 1},
		{0, MaxAmount, MaxAmount, MinAmount + 1},
		{-1, MaxAmount, MaxAmount - 1, MinAmount},
		{-2, MaxAmount, MaxAmount - 2, MinAmount},
	}
	for _, test := range tests {
		expect.Same(t, fmt.Sprintf("%d + %d", test.a, test.b), test.sum, test.a.Add(test.b))
		expect.Same(t, fmt.Sprintf("%d - %d", test.a, test.b), test.diff, test.a.Sub(test.b))
	}
}
