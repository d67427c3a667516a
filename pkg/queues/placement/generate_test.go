package placement_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// problem is one random call of Place.
type problem struct {
	rules []config.Rule
	req   placement.Request
	tree  tree
}

// Few names, so that rules, trees and pods meet; some are no queue names.
var (
	segments = rapid.SampledFrom([]string{"a", "b", "c", "default", "root"})
	people   = rapid.SampledFrom([]string{"a", "b", "u.x", "C", "no queue", "@recovery@"})
	groups   = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"g", "h"}), 0, 2, rapid.ID[string])
	wishes   = rapid.OneOf(
		rapid.Just(""),
		segments,
		rapid.Map(rapid.SliceOfN(segments, 1, 4), func(parts []string) string { return "root." + strings.Join(parts, ".") }),
		rapid.SampledFrom([]string{"root.@recovery@", "a.b", "Root.A", "root.", "root..a", "root.a!", "root.@recovery@.x", strings.Repeat("x", 65)}),
	)
)

var problems = rapid.Custom(func(t *rapid.T) problem {
	tr := trees.Draw(t, "tree")
	wishes := rapid.OneOf(wishes, wishesNear(tr))
	return problem{
		rules: rapid.SliceOfN(rules(2), 0, 4).Draw(t, "rules"),
		req: placement.Request{
			Identity: placement.Identity{
				Queue: wishes.Draw(t, "queue"),
				User:  placement.User{Name: people.Draw(t, "user"), Groups: groups.Draw(t, "groups")},
			},
			Namespace: placement.Namespace{
				Name:        segments.Draw(t, "namespace"),
				Annotations: map[string]string{placement.KeyParentQueue: wishes.Draw(t, "parentqueue")},
			},
			Running: rapid.Bool().Draw(t, "running"),
		},
		tree: tr,
	}
})

// wishesNear are queues of a tree, and queues that would come below them.
func wishesNear(tr tree) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		path := rapid.SampledFrom(slices.Sorted(maps.Keys(tr))).Draw(t, "near")
		return path + rapid.SampledFrom([]string{"", ".a", ".b.c"}).Draw(t, "below")
	})
}

func rules(parents int) *rapid.Generator[config.Rule] {
	return rapid.Custom(func(t *rapid.T) config.Rule {
		rule := config.Rule{
			Kind:   rapid.SampledFrom([]config.RuleKind{config.RuleProvided, config.RuleUser, config.RuleTag, config.RuleFixed}).Draw(t, "kind"),
			Create: rapid.Bool().Draw(t, "create"),
			Filter: filters.Draw(t, "filter"),
		}
		switch rule.Kind {
		case config.RuleTag:
			rule.Value = rapid.SampledFrom([]string{"namespace", "namespace.parentqueue", "team"}).Draw(t, "tag")
		case config.RuleFixed:
			rule.Value = rapid.SampledFrom([]string{"a", "b.c", "root", "root.a", "root.b.c"}).Draw(t, "fixed")
		}
		if parents > 0 && rapid.IntRange(0, 3).Draw(t, "parent") == 0 {
			parent := rules(parents-1).Draw(t, "parent rule")
			rule.Parent = &parent
		}
		return rule
	})
}

var filters = rapid.Custom(func(t *rapid.T) config.Filter {
	f := config.Filter{Deny: rapid.Bool().Draw(t, "deny")}
	switch rapid.IntRange(0, 5).Draw(t, "filter") {
	case 0:
		f.Users = []string{"a", "b"}
	case 1:
		f.Groups = []string{"g"}
	case 2:
		f.UserExp = regexp.MustCompile(`^[a-c]$`)
	}
	return f
})

// trees are consistent: every queue's ancestors exist and are parents, and the
// recovery queue is a leaf if it exists.
var trees = rapid.Custom(func(t *rapid.T) tree {
	out := tree{"root": {Submit: accessLists.Draw(t, "root submit")}}
	paths := rapid.SliceOfN(rapid.SliceOfN(segments, 1, 4), 0, 6).Draw(t, "paths")
	for _, parts := range paths {
		path := "root"
		for _, part := range parts {
			path += "." + part
			if _, exists := out[path]; !exists {
				out[path] = queue{
					QueueInfo: placement.QueueInfo{Draining: rapid.IntRange(0, 5).Draw(t, "draining") == 0},
					Submit:    accessLists.Draw(t, "submit"),
				}
			}
		}
	}
	if rapid.Bool().Draw(t, "recovery") {
		out[placement.RecoveryQueue] = queue{QueueInfo: placement.QueueInfo{Leaf: true}}
	}
	var parents []string
	for path := range out {
		parents = append(parents, path[:max(0, strings.LastIndexByte(path, '.'))])
	}
	for path, q := range out {
		q.Leaf = path != "root" && !slices.Contains(parents, path)
		out[path] = q
	}
	return out
})

var accessLists = rapid.SampledFrom([]config.ACL{{}, {}, {Everybody: true}, {Users: []string{"a"}}, {Groups: []string{"g"}}})
