package resources

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"
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
		if got := test.a.Add(test.b); got != test.sum {
			t.Errorf("%d + %d: got %d, want %d", test.a, test.b, got, test.sum)
		}
		if got := test.a.Sub(test.b); got != test.diff {
			t.Errorf("%d - %d: got %d, want %d", test.a, test.b, got, test.diff)
		}
	}
}

func TestAmountFloor0(t *testing.T) {
	for a, want := range map[Amount]Amount{MinAmount: 0, -1: 0, 0: 0, 1: 1, MaxAmount: MaxAmount} {
		if got := a.Floor0(); got != want {
			t.Errorf("Floor0(%d): got %d, want %d", a, got, want)
		}
	}
}

// pair is two amounts.
type pair struct{ a, b Amount }

var pairs = rapid.Custom(func(t *rapid.T) pair { return pair{extreme.Draw(t, "a"), extreme.Draw(t, "b")} })

// exactly compares an operation with unbounded integers, cut at the ends of int64.
func exactly(op func(a, b Amount) Amount, exact func(z, x, y *big.Int) *big.Int) func(pair) error {
	return func(p pair) error {
		want := saturated(exact(new(big.Int), big.NewInt(int64(p.a)), big.NewInt(int64(p.b))))
		if got := op(p.a, p.b); got != want {
			return fmt.Errorf("%d and %d: got %d, want %d", p.a, p.b, got, want)
		}
		return nil
	}
}

func saturated(z *big.Int) Amount {
	switch {
	case z.IsInt64():
		return Amount(z.Int64())
	case z.Sign() < 0:
		return MinAmount
	}
	return MaxAmount
}

func TestAmountAddIsExactWithinInt64(t *testing.T) {
	wrapping := func(a, b Amount) Amount { return a + b }
	prove(t, pairs, exactly(Amount.Add, (*big.Int).Add), exactly(wrapping, (*big.Int).Add))
}

func TestAmountSubIsExactWithinInt64(t *testing.T) {
	negating := func(a, b Amount) Amount { return a.Add(-b) } // wrong for MinAmount
	prove(t, pairs, exactly(Amount.Sub, (*big.Int).Sub), exactly(negating, (*big.Int).Sub))
}
