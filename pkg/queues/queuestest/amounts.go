package queuestest

import (
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Amount reads an amount of a resource type as queues.yaml writes it. A sign is allowed.
func Amount(name, text string) (resources.Amount, error) {
	digits, negative := strings.CutPrefix(text, "-")
	a, err := quantity.Parse(name, digits)
	if negative {
		a = -a
	}
	return a, err
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
