package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// specs draws plausible specifications: well-formed, with numbers from a range so small
// that they often collide.
var specs = rapid.Custom(func(t *rapid.T) *Spec {
	s := &Spec{
		PreemptionEnabled: rapid.Bool().Draw(t, "preemption"),
		Root:              &Queue{Name: "root", Path: "root", Properties: map[string]string{}},
	}
	switch rapid.SampledFrom([]string{"resources only", "sparse", "all"}).Draw(t, "mode") {
	case "resources only":
		drawChildren(t, s.Root, 3, func(*Queue) {})
	case "sparse":
		drawChildren(t, s.Root, 3, thinOut)
	default:
		most := rapid.SampledFrom([]int{0, 0, 0, 2}).Draw(t, "limits")
		s.Root.Limits = drawLimits(t, most)
		s.Root.MaxApplications = rapid.SampledFrom([]uint64{0, 0, 0, 3}).Draw(t, "apps")
		drawChildren(t, s.Root, 3, func(q *Queue) {
			q.MaxApplications = rapid.SampledFrom([]uint64{0, 0, 1, 2, 3}).Draw(t, "apps")
			q.Limits = drawLimits(t, most)
		})
	}
	settle(s.Root)
	return s
})

func drawChildren(t *rapid.T, q *Queue, levels int, more func(*Queue)) {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string]).Draw(t, "names")
	if levels == 0 {
		names = nil
	}
	slices.Sort(names)
	for _, name := range names {
		c := &Queue{
			Name:       name,
			Path:       q.Path + "." + name,
			Guaranteed: resources.GuaranteeFrom(drawAmounts(t, 3)),
			Max:        resources.LimitFrom(drawAmounts(t, 4)),
			Properties: map[string]string{},
		}
		more(c)
		drawChildren(t, c, levels-1, more)
		q.Children = append(q.Children, c)
	}
}

// thinOut leaves the max to the top and one type of guarantee to each level, so
// that a child has a type which its parent, having another, does not hand up.
func thinOut(q *Queue) {
	level := strings.Count(q.Path, ".")
	if level > 1 {
		q.Max = resources.Limit{}
	}
	kept := map[string]resources.Amount{}
	name := []string{"memory", "vcore"}[level%2]
	if amount, ok := q.Guaranteed.Get(name); ok && amount > 0 {
		kept[name] = amount
	}
	q.Guaranteed = resources.GuaranteeFrom(kept)
}

// drawAmounts gives a map that is empty or has at least one amount above 0.
func drawAmounts(t *rapid.T, most int) map[string]resources.Amount {
	out := map[string]resources.Amount{}
	for _, name := range []string{"vcore", "memory"} {
		switch n := rapid.IntRange(-most, most).Draw(t, name); {
		case n >= 0 && name == "vcore":
			out[name] = resources.Amount(n) * 500
		case n >= 0:
			out[name] = resources.Amount(n)
		}
	}
	for _, amount := range out {
		if amount > 0 {
			return out
		}
	}
	return nil
}

func drawLimits(t *rapid.T, most int) []Limit {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Limit {
		users := rapid.SampledFrom([][]string{{"bob"}, {"ann"}, {"*"}, nil}).Draw(t, "users")
		l := Limit{
			Users:           users,
			MaxResources:    resources.LimitFrom(drawAmounts(t, 6)),
			MaxApplications: rapid.SampledFrom([]uint64{0, 1, 2}).Draw(t, "apps"),
		}
		if rapid.IntRange(0, 3).Draw(t, "group") == 0 || users == nil {
			l.Groups = rapid.SampledFrom([][]string{{"dev"}, {"*"}}).Draw(t, "groups")
		}
		if l.MaxResources.IsUnlimited() {
			l.MaxApplications = max(l.MaxApplications, 1)
		}
		return l
	}), 0, most).Draw(t, "limits")
}

// settle fills in what follows from the rest.
func settle(root *Queue) {
	for q := range root.All() {
		q.Leaf = q != root && len(q.Children) == 0
		q.Policies = DefaultPolicies()
	}
}

func TestDiffIsEmptyExactlyForEqualDumps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := specs.Draw(t, "a"), specs.Draw(t, "b")
		if rapid.Bool().Draw(t, "equal") {
			b = a
		}
		if d := diffFailure(a, b, Diff(a, b)); d != "" {
			t.Fatal(d)
		}
	})
}

func diffFailure(a, b *Spec, changes []Difference) string {
	equal := a.Dump() == b.Dump()
	if equal != (len(changes) == 0) {
		return fmt.Sprintf("equal: %t, changes: %v\n%s\n%s", equal, changes, a.Dump(), b.Dump())
	}
	for i := 1; i < len(changes); i++ {
		if changes[i-1].Queue > changes[i].Queue {
			return fmt.Sprintf("not sorted: %v", changes)
		}
	}
	for _, d := range changes {
		if d.Old == d.New {
			return fmt.Sprintf("%s is no difference", d)
		}
	}
	return ""
}

// TestDiffPropertyFindsPlantedBugs forgets one setting at a time, where
// nothing else has changed.
func TestDiffPropertyFindsPlantedBugs(t *testing.T) {
	gpu := map[string]resources.Amount{"gpu": 1}
	changes := map[string]func(s *Spec){
		"preemption":      func(s *Spec) { s.PreemptionEnabled = !s.PreemptionEnabled },
		"placement rules": func(s *Spec) { s.Rules = []Rule{{Kind: RuleUser}} },
		"type":            func(s *Spec) { s.Root.Leaf = !s.Root.Leaf },
		"guaranteed gpu":  func(s *Spec) { s.Root.Guaranteed = resources.GuaranteeFrom(gpu) },
		"max gpu":         func(s *Spec) { s.Root.Max = resources.LimitFrom(gpu) },
		"maxapplications": func(s *Spec) { s.Root.MaxApplications++ },
		"submitacl":       func(s *Spec) { s.Root.SubmitACL.Users = []string{"eve"} },
		"adminacl":        func(s *Spec) { s.Root.AdminACL.Everybody = true },
		"property team":   func(s *Spec) { s.Root.Properties = map[string]string{"team": ""} },
		"limits":          func(s *Spec) { s.Root.Limits = append(slices.Clone(s.Root.Limits), Limit{Users: []string{"eve"}}) },
		"childtemplate":   func(s *Spec) { s.Root.Template = &Template{MaxApplications: 1} },
		wholeQueue: func(s *Spec) {
			s.Root.Children = append(slices.Clone(s.Root.Children), &Queue{Name: "z", Path: "root.z"})
		},
	}
	for _, forgotten := range slices.Sorted(maps.Keys(changes)) {
		a := specs.Example(1)
		b, root := *a, *a.Root
		b.Root = &root
		changes[forgotten](&b)
		if f := diffFailure(a, &b, Diff(a, &b)); f != "" {
			t.Errorf("%s: %s", forgotten, f)
		}
		kept := slices.DeleteFunc(Diff(a, &b), func(d Difference) bool { return d.Setting == forgotten })
		if diffFailure(a, &b, kept) == "" {
			t.Errorf("forgetting %s is not found", forgotten)
		}
	}
}
