package queuestest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Amount reads an amount of a resource type: cores or "500m" for vcore, else a
// number with an optional k, M, G, Ki, Mi or Gi. A sign is allowed.
func Amount(name, text string) (resources.Amount, error) {
	if name == resources.CPU {
		if milli, ok := strings.CutSuffix(text, "m"); ok {
			return scaled(name, text, milli, 1)
		}
		return scaled(name, text, text, 1000)
	}
	for _, unit := range []struct {
		suffix string
		factor int64
	}{{"Ki", 1 << 10}, {"Mi", 1 << 20}, {"Gi", 1 << 30}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}} {
		if number, ok := strings.CutSuffix(text, unit.suffix); ok {
			return scaled(name, text, number, unit.factor)
		}
	}
	return scaled(name, text, text, 1)
}

func scaled(name, text, number string, factor int64) (resources.Amount, error) {
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s=%q is not an amount", name, text)
	}
	return resources.Amount(n * factor), nil
}

// Vector reads "vcore=2 memory=1Gi pods=1"; the empty text is the empty vector.
// It panics on anything else: texts are part of the test.
func Vector(text string) resources.Vector {
	m := map[string]resources.Amount{}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		a, err := Amount(name, value)
		if err != nil {
			panic("queuestest: vector: " + err.Error())
		}
		m[name] = a
	}
	return resources.VectorFrom(m)
}

// Amounts shows entries as [Amount] reads them: "memory=1Gi vcore=2".
func Amounts(all func(func(string, resources.Amount) bool)) string {
	var words []string
	for name, a := range all {
		words = append(words, name+"="+resources.Format(name, a))
	}
	return strings.Join(words, " ")
}
