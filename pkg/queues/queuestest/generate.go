package queuestest

import (
	"strconv"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Features says what random specifications have, beside queues.
type Features struct {
	Guaranteed, Max, MaxApplications, Limits, Policies, Templates bool
	// Depth is the largest number of levels below root; 0 is 3.
	Depth int
}

// Specs generates small trees with names and quotas that collide often: the names of
// siblings are prefixes of each other, amounts are a few units.
func Specs(f Features) *rapid.Generator[*config.Spec] {
	if f.Depth == 0 {
		f.Depth = 3
	}
	return rapid.Custom(func(t *rapid.T) *config.Spec {
		root := &Node{Name: "root", Parent: true}
		if f.Policies {
			root.Properties = sortProperties(t)
		}
		if f.Templates {
			root.Template = randomQuota(t, f)
		}
		children(t, f, root, 1)
		spec, err := Spec(root)
		if err != nil {
			t.Fatal(err)
		}
		return spec
	})
}

func children(t *rapid.T, f Features, n *Node, depth int) {
	least := 0
	if depth == 1 {
		least = 1
	}
	for _, name := range []string{"a", "aa", "b"}[:rapid.IntRange(least, 3).Draw(t, "children")] {
		c := randomQuota(t, f)
		c.Name = name
		if f.Policies {
			c.Properties = randomProperties(t)
		}
		if depth < f.Depth && rapid.Bool().Draw(t, "parent") {
			c.Parent = true
			if f.Templates && rapid.Bool().Draw(t, "template") {
				c.Template = randomQuota(t, f)
			}
			children(t, f, c, depth+1)
		}
		n.Children = append(n.Children, c)
	}
}

func randomQuota(t *rapid.T, f Features) *Node {
	n := &Node{}
	if f.Guaranteed && rapid.Bool().Draw(t, "guaranteed") {
		n.Guaranteed = randomAmounts(t, 0, 4)
	}
	if f.Max && rapid.Bool().Draw(t, "max") {
		n.Max = randomAmounts(t, 1, 8)
	}
	if f.MaxApplications && rapid.Bool().Draw(t, "bounds applications") {
		n.MaxApplications = rapid.Uint64Range(1, 3).Draw(t, "maxapplications")
	}
	if f.Limits && rapid.Bool().Draw(t, "limits") {
		n.Limits = randomLimits(t)
	}
	return n
}

func randomAmounts(t *rapid.T, least, most int64) map[string]resources.Amount {
	m := map[string]resources.Amount{}
	for _, name := range rapid.SampledFrom([][]string{{"vcore"}, {"memory"}, {"vcore", "memory"}, {"pods"}}).Draw(t, "types") {
		m[name] = resources.Amount(rapid.Int64Range(least, most).Draw(t, name))
	}
	return m
}

func randomLimits(t *rapid.T) []config.Limit {
	var limits []config.Limit
	for _, who := range rapid.SampledFrom([][]string{{"u:alice"}, {"u:alice", "u:*"}, {"g:dev"}, {"u:*", "g:dev", "g:*"}}).Draw(t, "limited") {
		l := config.Limit{
			MaxResources:    resources.LimitFrom(randomAmounts(t, 1, 6)),
			MaxApplications: rapid.Uint64Range(0, 3).Draw(t, "limit maxapplications"),
		}
		if name := who[2:]; who[0] == 'u' {
			l.Users = []string{name}
		} else {
			l.Groups = []string{name}
		}
		limits = append(limits, l)
	}
	return limits
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
