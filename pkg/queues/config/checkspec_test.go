package config

import (
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// checkSpec judges an accepted specification again, with naive code on the
// finished tree, and returns the first rule it breaks. It shares no code with
// the checks of the package.
func checkSpec(s *Spec) error { return checkWith(s, allChecks) }

// checks judge the last queue on a way from root.
type checks map[string]func(way []*Queue) error

var allChecks = checks{
	"shape": checkShape, "numbers": checkNumbers, "sums": checkSums,
	"applications": checkApplications, "limits": checkLimits,
}

func checkWith(s *Spec, with checks) error {
	if s.Root == nil || s.Root.Leaf || s.Root.Path != "root" || s.Root.Name != "root" {
		return fmt.Errorf("bad root")
	}
	if !s.Root.Max.IsUnlimited() || !s.Root.Guaranteed.IsNone() {
		return fmt.Errorf("root has resources")
	}
	if err := checkQueue(s.Root, nil, with); err != nil {
		return err
	}
	for i := range s.Rules {
		for r := &s.Rules[i]; r != nil; r = r.Parent {
			if err := checkRule(r); err != nil {
				return err
			}
		}
	}
	return nil
}

var nameSyntax = regexp.MustCompile(`^[a-z0-9_:#/@-]{1,64}$`)

func checkQueue(q *Queue, ancestors []*Queue, with checks) error {
	way := append(slices.Clone(ancestors), q)
	for _, name := range slices.Sorted(maps.Keys(with)) {
		if err := with[name](way); err != nil {
			return fmt.Errorf("%s: %w", q.Path, err)
		}
	}
	for _, c := range q.Children {
		if err := checkQueue(c, way, with); err != nil {
			return err
		}
	}
	return nil
}

func checkShape(way []*Queue) error {
	q := way[len(way)-1]
	var names []string
	for _, a := range way {
		names = append(names, a.Name)
	}
	switch {
	case !nameSyntax.MatchString(q.Name):
		return fmt.Errorf("bad name")
	case q.Path != strings.Join(names, "."):
		return fmt.Errorf("path is not %v", names)
	case q.Leaf && (len(q.Children) > 0 || q.Template != nil):
		return fmt.Errorf("leaf with children or a template")
	case q.Policies.PreemptionDelay <= 0 || q.Policies.BackoffDelay <= 0:
		return fmt.Errorf("delay is not positive")
	}
	for i := 1; i < len(q.Children); i++ {
		if q.Children[i-1].Name >= q.Children[i].Name {
			return fmt.Errorf("children not sorted or not unique")
		}
	}
	return nil
}

// smallestMax is the smallest max of a type over the queues, nil when none has one.
func smallestMax(queues []*Queue, name string) *resources.Amount {
	var out *resources.Amount
	for _, q := range queues {
		if m, ok := q.Max.Get(name); ok && (out == nil || m < *out) {
			out = &m
		}
	}
	return out
}

func checkNumbers(way []*Queue) error {
	q := way[len(way)-1]
	for name, own := range q.Max.All() {
		if above := smallestMax(way[:len(way)-1], name); own < 0 || (above != nil && own > *above) {
			return fmt.Errorf("max %s %d is above an ancestor's", name, own)
		}
	}
	for name, own := range q.Guaranteed.All() {
		if m := smallestMax(way, name); own < 0 || (m != nil && own > *m) {
			return fmt.Errorf("guaranteed %s %d is above max", name, own)
		}
	}
	return nil
}

// wanted is what the queue wants guaranteed of a type; nil for nothing said.
func wanted(q *Queue, name string) *big.Int {
	if !q.Guaranteed.IsNone() {
		if own, ok := q.Guaranteed.Get(name); ok {
			return big.NewInt(int64(own))
		}
		return nil
	}
	return wantedBelow(q, name)
}

func wantedBelow(q *Queue, name string) *big.Int {
	var total *big.Int
	for _, c := range q.Children {
		if w := wanted(c, name); w != nil {
			if total == nil {
				total = new(big.Int)
			}
			total.Add(total, w)
		}
	}
	return total
}

func checkSums(way []*Queue) error {
	q := way[len(way)-1]
	for _, name := range typesOf(way[0]) {
		total := wantedBelow(q, name)
		if total == nil {
			continue
		}
		if own, ok := q.Guaranteed.Get(name); ok && total.Cmp(big.NewInt(int64(own))) > 0 {
			return fmt.Errorf("%s: children are guaranteed %v, more than %d", name, total, own)
		}
		if m := smallestMax(way, name); m != nil && total.Cmp(big.NewInt(int64(*m))) > 0 {
			return fmt.Errorf("%s: children are guaranteed %v, more than max %d", name, total, *m)
		}
	}
	return nil
}

func typesOf(root *Queue) []string {
	var out []string
	for q := range root.All() {
		for name := range q.Guaranteed.All() {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

func checkApplications(way []*Queue) error {
	if len(way) < 2 {
		return nil
	}
	q, parent := way[len(way)-1], way[len(way)-2]
	if parent.MaxApplications > 0 && (q.MaxApplications == 0 || q.MaxApplications > parent.MaxApplications) {
		return fmt.Errorf("maxapplications %d below %d", q.MaxApplications, parent.MaxApplications)
	}
	return nil
}

func checkRule(r *Rule) error {
	switch r.Kind {
	case RuleProvided, RuleUser:
		return nil
	case RuleTag, RuleFixed:
		if r.Value == "" {
			return fmt.Errorf("rule %s without value", r.Kind)
		}
		if r.Kind == RuleFixed && r.Parent != nil && strings.HasPrefix(r.Value, "root.") {
			return fmt.Errorf("full path with a parent rule")
		}
		return nil
	}
	return fmt.Errorf("rule %q", r.Kind)
}
