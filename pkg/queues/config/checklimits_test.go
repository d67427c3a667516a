package config

import (
	"fmt"
	"regexp"
	"slices"
)

var (
	userSyntax  = regexp.MustCompile(`^(\*|[_a-zA-Z][a-zA-Z0-9:#/_.@-]*[$]?)$`)
	groupSyntax = regexp.MustCompile(`^(\*|[_a-zA-Z][a-zA-Z0-9:_.-]*)$`)
)

// checkLimits judges the limits of the last queue on the way, naively.
func checkLimits(way []*Queue) error {
	q := way[len(way)-1]
	for _, l := range q.Limits {
		if len(l.Users) == 0 && len(l.Groups) == 0 {
			return fmt.Errorf("limit for nobody")
		}
		if l.MaxResources.IsUnlimited() && l.MaxApplications == 0 {
			return fmt.Errorf("limit of nothing")
		}
		if q.MaxApplications > 0 && l.MaxApplications > q.MaxApplications {
			return fmt.Errorf("limit above maxapplications")
		}
		for name, amount := range l.MaxResources.All() {
			if m, ok := q.Max.Get(name); ok && amount > m {
				return fmt.Errorf("limit above max of %s", name)
			}
		}
	}
	if err := checkNames(way, func(l Limit) []string { return l.Users }, userSyntax); err != nil {
		return err
	}
	if n := countNames(q, func(l Limit) []string { return l.Groups }); n["*"] == 1 && len(n) == 1 {
		return fmt.Errorf("only the wildcard group")
	}
	return checkNames(way, func(l Limit) []string { return l.Groups }, groupSyntax)
}

func countNames(q *Queue, of func(Limit) []string) map[string]int {
	n := map[string]int{}
	for _, l := range q.Limits {
		for _, name := range of(l) {
			n[name]++
		}
	}
	return n
}

func checkNames(way []*Queue, of func(Limit) []string, syntax *regexp.Regexp) error {
	q := way[len(way)-1]
	seen := map[string]bool{}
	for _, l := range q.Limits {
		for _, name := range of(l) {
			if !syntax.MatchString(name) || seen[name] || seen["*"] {
				return fmt.Errorf("limit name %q is bad, twice, or after the wildcard", name)
			}
			seen[name] = true
			for _, above := range way[:len(way)-1] {
				if a := limitFor(above, of, name); a != nil {
					if err := notMore(l, *a); err != nil {
						return fmt.Errorf("%s: %w than at %s", name, err, above.Path)
					}
				}
			}
		}
	}
	return nil
}

// limitFor is the limit of a queue that counts for a name.
func limitFor(q *Queue, of func(Limit) []string, name string) *Limit {
	for _, who := range []string{name, "*"} {
		for i, l := range q.Limits {
			if slices.Contains(of(l), who) {
				return &q.Limits[i]
			}
		}
	}
	return nil
}

func notMore(l, above Limit) error {
	if above.MaxApplications > 0 && (l.MaxApplications == 0 || l.MaxApplications > above.MaxApplications) {
		return fmt.Errorf("more applications")
	}
	for name, amount := range l.MaxResources.All() {
		if m, ok := above.MaxResources.Get(name); ok && amount > m {
			return fmt.Errorf("more %s", name)
		}
	}
	return nil
}
