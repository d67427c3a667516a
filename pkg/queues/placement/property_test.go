package placement_test

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// placer has the signature of placeIn, so that a law can be held against a broken one.
type placer func([]config.Rule, placement.Request, tree) (placement.Result, reasons.Reason)

// laws are what every placement keeps, whatever the rules.
var laws = map[string]func(placer, problem) error{
	"deterministic":    lawDeterministic,
	"existing":         lawExisting,
	"created":          lawCreated,
	"access":           lawAccess,
	"running":          lawRunning,
	"either or":        lawEitherOr,
	"first rule":       lawFirstRule,
	"recovery is last": lawRecoveryIsLast,
}

// TestPlaceKeepsItsLaws also shows that each law finds a Place that breaks it.
func TestPlaceKeepsItsLaws(t *testing.T) {
	calls := 0
	everybody, none := config.ACL{Everybody: true}, config.Filter{Users: []string{"none at all"}}
	bugs := map[string]placer{
		"deterministic": changed(func(c *problem) {
			if calls++; calls%2 == 0 { // as a map order would do it
				slices.Reverse(c.rules)
			}
		}),
		"existing": changed(func(c *problem) {
			for path, q := range c.tree {
				q.Draining = false
				c.tree[path] = q
			}
		}),
		"created": changed(func(c *problem) {
			for path, q := range c.tree {
				q.Leaf = q.Leaf && path == queues.RecoveryPath
				c.tree[path] = q
			}
		}),
		"access":  changed(func(c *problem) { c.tree["root"] = queue{Submit: everybody} }),
		"running": changed(func(c *problem) { c.req.Running = false }),
		"either or": func(rules []config.Rule, req placement.Request, tr tree) (placement.Result, reasons.Reason) {
			result, reason := placeIn(rules, req, tr)
			result.Path = placement.DefaultQueue
			return result, reason
		},
		"first rule": changed(func(c *problem) { slices.Reverse(c.rules) }),
		"recovery is last": changed(func(c *problem) {
			if c.req.Running {
				c.rules = []config.Rule{{Kind: config.RuleProvided, Filter: none}}
			}
		}),
	}
	for name, law := range laws {
		t.Run(name, func(t *testing.T) {
			of := func(place placer) func(problem) error {
				return func(c problem) error { return law(place, c) }
			}
			expect.Law(t, problems, of(placeIn), of(bugs[name]))
		})
	}
}

// changed is a Place that changes a copy of what it is called with.
func changed(change func(*problem)) placer {
	return func(rules []config.Rule, req placement.Request, tr tree) (placement.Result, reasons.Reason) {
		c := problem{slices.Clone(rules), req, maps.Clone(tr)}
		change(&c)
		return placeIn(c.rules, c.req, c.tree)
	}
}

func lawDeterministic(place placer, s problem) error {
	first, reason := place(s.rules, s.req, s.tree)
	for range 4 {
		again, reasonAgain := place(s.rules, s.req, s.tree)
		if diff := cmp.Diff(first, again) + cmp.Diff(reason, reasonAgain); diff != "" {
			return errors.New(diff)
		}
	}
	return nil
}

// lawExisting: a queue that is not to be made is a leaf that takes something new.
func lawExisting(place placer, s problem) error {
	result, reason := place(s.rules, s.req, s.tree)
	if !reason.None() || result.Create {
		return nil
	}
	q, exists := s.tree[result.Path]
	if !exists || !q.Leaf {
		return fmt.Errorf("%s is no existing leaf", result.Path)
	}
	return undrained(s.tree, result.Path)
}

var part = regexp.MustCompile(`^[a-z0-9_:#/@-]{1,64}$`)

// lawCreated: a queue that is to be made does not exist, has a legal name, and
// comes below a parent that takes something new.
func lawCreated(place placer, s problem) error {
	result, reason := place(s.rules, s.req, s.tree)
	if !reason.None() || !result.Create {
		return nil
	}
	if _, exists := s.tree[result.Path]; exists {
		return fmt.Errorf("%s exists", result.Path)
	}
	parts := strings.Split(result.Path, ".")
	for i, p := range parts {
		prefix := strings.Join(parts[:i+1], ".")
		if s.tree[prefix].Leaf {
			return fmt.Errorf("%s would come below leaf %s", result.Path, prefix)
		}
		if !part.MatchString(p) {
			return fmt.Errorf("%s has the illegal part %q", result.Path, p)
		}
	}
	if parts[0] != "root" || len(parts) < 2 {
		return fmt.Errorf("%s is not below root", result.Path)
	}
	return undrained(s.tree, result.Path)
}

func undrained(tr tree, path string) error {
	for ; strings.Contains(path, "."); path = path[:strings.LastIndexByte(path, '.')] {
		if tr[path].Draining {
			return fmt.Errorf("%s is draining", path)
		}
	}
	return nil
}

// lawAccess: a waiting pod gets only where its user may submit.
func lawAccess(place placer, s problem) error {
	result, reason := place(s.rules, s.req, s.tree)
	if !reason.None() || s.req.Running {
		return nil
	}
	nearest := result.Path
	for _, exists := s.tree[nearest]; !exists; _, exists = s.tree[nearest] {
		nearest = nearest[:strings.LastIndexByte(nearest, '.')]
	}
	if user := s.req.Identity.User; !s.tree.MaySubmit(nearest, user.Name, user.Groups) {
		return fmt.Errorf("%v got to %s", user, result.Path)
	}
	return nil
}

// lawRunning: a running pod is never refused.
func lawRunning(place placer, s problem) error {
	if _, reason := place(s.rules, s.req, s.tree); s.req.Running && !reason.None() {
		return errors.New(reason.String())
	}
	return nil
}

// lawEitherOr: there is a path or a reason, never both, and the trace agrees: all
// its steps failed but the last, which decided.
func lawEitherOr(place placer, s problem) error {
	result, reason := place(s.rules, s.req, s.tree)
	if (result.Path == "") == reason.None() || (result.Rule == "") == reason.None() {
		return fmt.Errorf("path %q and reason %q", result.Path, reason)
	}
	for i, step := range result.Trace {
		decided := reason.None() && i == len(result.Trace)-1
		if decided != (step.Refusal.Code == "") || decided != (step.Refusal.Text == "") {
			return fmt.Errorf("step %d of %d: %+v", i, len(result.Trace), step)
		}
		if decided && (step.Queue != result.Path || step.Rule != result.Rule) {
			return fmt.Errorf("decided by %+v, but the result is %+v", step, result)
		}
		if !decided && !reason.None() && !strings.Contains(reason.Text, step.Refusal.Text) {
			return fmt.Errorf("reason %q does not tell %q", reason, step.Refusal.Text)
		}
	}
	if len(result.Trace) == 0 {
		return errors.New("no trace")
	}
	return nil
}

// lawFirstRule: rules after the one that decided have no influence, and rules
// before it fail when they are alone.
func lawFirstRule(place placer, s problem) error {
	result, _ := place(s.rules, s.req, s.tree)
	decided := len(result.Trace) - 1
	if result.Path == "" || decided >= len(s.rules) {
		return nil
	}
	shorter, _ := placeIn(s.rules[:decided+1], s.req, s.tree)
	if shorter.Path != result.Path {
		return fmt.Errorf("%d rules give %s, all rules %s", decided+1, shorter.Path, result.Path)
	}
	for i := range decided {
		alone, _ := placeIn(s.rules[i:i+1], s.req, s.tree)
		if alone.Path != "" && len(alone.Trace) == 1 {
			return fmt.Errorf("rule %d gives %s, yet %s was chosen", i, alone.Path, result.Path)
		}
	}
	return nil
}

// lawRecoveryIsLast: only running pods get to the recovery queue, and only when
// neither a rule nor the default queue takes them.
func lawRecoveryIsLast(place placer, s problem) error {
	result, _ := place(s.rules, s.req, s.tree)
	if result.Path != queues.RecoveryPath {
		return nil
	}
	if !s.req.Running {
		return errors.New("a waiting pod got to the recovery queue")
	}
	if len(s.rules) > 0 && len(result.Trace) != len(s.rules)+2 {
		return fmt.Errorf("%d rules, but %d steps", len(s.rules), len(result.Trace))
	}
	for i := range s.rules {
		alone, _ := placeIn(s.rules[i:i+1], s.req, s.tree)
		if alone.Rule != "recovery" {
			return fmt.Errorf("rule %d gives %s", i, alone.Path)
		}
	}
	return nil
}

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
					Draining: rapid.IntRange(0, 5).Draw(t, "draining") == 0,
					Submit:   accessLists.Draw(t, "submit"),
				}
			}
		}
	}
	if rapid.Bool().Draw(t, "recovery") {
		out[queues.RecoveryPath] = queue{Leaf: true}
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
