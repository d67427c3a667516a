package quantity_test

import (
	"fmt"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// FuzzQuantity expects of any quantity that it is refused, or written back to
// something that is read as the same amount.
func FuzzQuantity(f *testing.F) {
	for _, text := range []string{"0", "10", "500m", " 16 Gi ", "8Ei", "9E", "1mi", "1.5", "-1", "99999999999999999999"} {
		f.Add("vcore", text)
		f.Add("memory", text)
	}
	f.Fuzz(func(t *testing.T, name, text string) {
		amount, err := quantity.Parse(name, text)
		if err != nil {
			expect.That(t, amount == 0, "%s %q: %d, refused by %q", name, text, amount, err)
			expect.Fails(t, err, strconv.Quote(text))
			return
		}
		back, err := quantity.Parse(name, quantity.Format(name, amount))
		expect.That(t, err == nil && back == amount && amount >= 0, "%s %q: %d, %d, %v", name, text, amount, back, err)
	})
}

var amounts = rapid.Custom(func(t *rapid.T) resources.Amount {
	factor := rapid.SampledFrom([]int64{1, 1000, 1024, 1000 * 1000, 1 << 20, 1 << 30, 1e12, 1 << 50}).Draw(t, "factor")
	return resources.Amount(rapid.Int64Range(0, int64(resources.MaxAmount)/factor).Draw(t, "n") * factor)
})

func TestFormatIsReadBack(t *testing.T) {
	law := func(format func(string, resources.Amount) string) func(resources.Amount) error {
		return func(a resources.Amount) error {
			for _, name := range []string{"vcore", "memory"} {
				if back, err := quantity.Parse(name, format(name, a)); err != nil || back != a {
					return fmt.Errorf("%s %d written as %s, read as %d, %v", name, a, format(name, a), back, err)
				}
			}
			return nil
		}
	}
	rounding := func(name string, a resources.Amount) string {
		if a > 1<<40 {
			return fmt.Sprintf("%dGi", a>>30)
		}
		return quantity.Format(name, a)
	}
	expect.Law(t, amounts, law(quantity.Format), law(rounding))
}
