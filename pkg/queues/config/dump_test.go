package config

import (
	"fmt"
	"strings"
)

// Dump writes the specification as text: one line per fact, queues in the order
// of [Queue.All], nothing that is at its default. Equal texts mean that
// both specifications do the same. Checksum and Warnings are not in it.
func (s *Spec) Dump() string {
	var b strings.Builder
	fmt.Fprintf(&b, "preemption %s\n", onOff(s.PreemptionEnabled))
	for i, rule := range s.Rules {
		fmt.Fprintf(&b, "rule %d: %s\n", i, rule)
	}
	for q := range s.Root.All() {
		q.dump(&b)
	}
	return b.String()
}

func (q *Queue) dump(b *strings.Builder) {
	fmt.Fprintf(b, "%s %s\n", q.Path, q.kind())
	line := func(key, value, unset string) {
		if value != unset {
			fmt.Fprintf(b, "  %s: %s\n", key, value)
		}
	}
	line("guaranteed", guaranteeText(q.Guaranteed), "none")
	line("max", limitText(q.Max), "unlimited")
	line("maxapplications", countText(q.MaxApplications), "unlimited")
	line("submit", q.SubmitACL.String(), "nobody")
	line("admin", q.AdminACL.String(), "nobody")
	line("properties", propertiesText(q.Properties), "none")
	line("policies", q.Policies.String(), "default")
	for _, l := range q.Limits {
		line("limit", l.String(), "")
	}
	line("template", q.Template.String(), "none")
}

// String renders what differs from [DefaultPolicies], "default" where nothing does.
func (p Policies) String() string {
	standard := DefaultPolicies()
	var parts []string
	add := func(differs bool, format string, args ...any) {
		if differs {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	add(p.ApplicationSort != standard.ApplicationSort, "sort=%s", p.ApplicationSort)
	add(p.PrioritySort != standard.PrioritySort, "prioritysort=%s", onOff(p.PrioritySort))
	add(p.PriorityFence, "priorityfence")
	add(p.PriorityOffset != 0, "offset=%d", p.PriorityOffset)
	add(p.Preemption != standard.Preemption, "preemption=%s", p.Preemption)
	add(p.PreemptionDelay != standard.PreemptionDelay, "delay=%v", p.PreemptionDelay)
	if len(parts) == 0 {
		return "default"
	}
	return strings.Join(parts, " ")
}
