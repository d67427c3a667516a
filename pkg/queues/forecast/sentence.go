package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// String renders the finding as one sentence.
func (o OverMax) String() string {
	return fmt.Sprintf("%s uses %s, its max is %s", o.Queue, amount(o.Type, o.Allocated), resources.Format(o.Type, o.Max))
}

// String renders the finding as one sentence.
func (u Unmet) String() string {
	parts := make([]string, len(u.Promises))
	for i, p := range u.Promises {
		parts[i] = p.Queue + " " + resources.Format(u.Type, p.Guaranteed)
	}
	what := "its max is"
	if u.Queue == config.RootName {
		what = "the nodes hold"
	}
	return fmt.Sprintf("%s: %s guaranteed, %s %s: %s", u.Queue, amount(u.Type, u.Guaranteed), what,
		resources.Format(u.Type, u.There), list(parts, u.More))
}

// String renders the finding as one sentence.
func (s Stranded) String() string {
	text := s.Queue + " is " + string(s.Cause)
	if s.Cause == BecameParent {
		text = s.Queue + " " + string(s.Cause)
	}
	if len(s.Allocated) > 0 {
		text += "; uses " + amounts(s.Allocated)
	}
	if len(s.Pending) > 0 {
		text += "; waits for " + amounts(s.Pending)
	}
	return text
}

// String renders the finding as one sentence.
func (l Loser) String() string {
	parts := make([]string, len(l.Askers))
	for i, a := range l.Askers {
		parts[i] = a.Queue
		if a.Waits {
			parts[i] += " (waits)"
		}
	}
	return fmt.Sprintf("%s could lose up to %s to %s", l.Queue, amount(l.Type, l.AtMost), list(parts, l.More))
}

func amount(kind string, a resources.Amount) string { return resources.Format(kind, a) + " " + kind }

func amounts(m map[string]resources.Amount) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, amount(kind, m[kind]))
	}
	return strings.Join(parts, ", ")
}

func list(parts []string, more int) string {
	text := strings.Join(parts, ", ")
	if more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}
