package order_test

import (
	"strconv"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// specs generates small trees with names and quotas that collide often: the names of
// siblings are prefixes of each other, amounts are a few units.
func specs() *rapid.Generator[*config.Spec] {
	return rapid.Custom(func(t *rapid.T) *config.Spec {
		root := &queuestest.Node{Name: "root", Parent: true, Properties: sortProperties(t)}
		children(t, root, 1)
		spec, err := queuestest.Spec(root)
		if err != nil {
			t.Fatal(err)
		}
		return spec
	})
}

// children gives a queue children; root has one at least.
func children(t *rapid.T, n *queuestest.Node, depth int) {
	least := 0
	if depth == 1 {
		least = 1
	}
	for _, name := range []string{"a", "aa", "b"}[:rapid.IntRange(least, 3).Draw(t, "children")] {
		c := &queuestest.Node{Name: name}
		if rapid.Bool().Draw(t, "guaranteed") {
			c.Guaranteed = randomAmounts(t, 0, 4)
		}
		if rapid.Bool().Draw(t, "max") {
			c.Max = randomAmounts(t, 1, 8)
		}
		c.Properties = randomProperties(t)
		if depth < 3 && rapid.Bool().Draw(t, "parent") {
			c.Parent = true
			children(t, c, depth+1)
		}
		n.Children = append(n.Children, c)
	}
}

func randomAmounts(t *rapid.T, least, most int64) map[string]resources.Amount {
	m := map[string]resources.Amount{}
	for _, name := range rapid.SampledFrom([][]string{{"vcore"}, {"memory"}, {"vcore", "memory"}, {"pods"}}).Draw(t, "types") {
		m[name] = resources.Amount(rapid.Int64Range(least, most).Draw(t, name))
	}
	return m
}

func sortProperties(t *rapid.T) map[string]string {
	p := map[string]string{}
	if rapid.Bool().Draw(t, "fair") {
		p["application.sort.policy"] = "fair"
	}
	if rapid.IntRange(0, 3).Draw(t, "unprioritised") == 0 {
		p["application.sort.priority"] = "disabled"
	}
	return p
}

func randomProperties(t *rapid.T) map[string]string {
	p := sortProperties(t)
	if rapid.IntRange(0, 3).Draw(t, "fenced") == 0 {
		p["priority.policy"] = "fence"
	}
	if rapid.Bool().Draw(t, "shifted") {
		p["priority.offset"] = strconv.Itoa(rapid.IntRange(-2, 2).Draw(t, "offset"))
	}
	return p
}
