package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config/quantity"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

func onOff(enabled bool) string {
	if enabled {
		return "enabled"
	}
	return "disabled"
}

func (q *Queue) kind() string {
	if q.Leaf {
		return "leaf"
	}
	return "parent"
}

// String renders the rule with its parents in one line.
func (r Rule) String() string {
	parts := []string{string(r.Kind)}
	if r.Value != "" {
		parts = append(parts, quoteIfNeeded(r.Value))
	}
	if r.Create {
		parts = append(parts, "create")
	}
	if !r.Filter.Empty() || r.Filter.Deny {
		parts = append(parts, "filter ("+r.Filter.String()+")")
	}
	if r.Parent != nil {
		parts = append(parts, "parent ("+r.Parent.String()+")")
	}
	return strings.Join(parts, " ")
}

// String renders the filter as `deny users=a,b groups=~"expression"`.
func (f Filter) String() string {
	parts := []string{"allow"}
	if f.Deny {
		parts[0] = "deny"
	}
	switch {
	case f.UserExp != nil:
		parts = append(parts, "users=~"+strconv.Quote(f.UserExp.String()))
	case len(f.Users) > 0:
		parts = append(parts, "users="+strings.Join(f.Users, ","))
	}
	switch {
	case f.GroupExp != nil:
		parts = append(parts, "groups=~"+strconv.Quote(f.GroupExp.String()))
	case len(f.Groups) > 0:
		parts = append(parts, "groups="+strings.Join(f.Groups, ","))
	}
	if f.NoNames {
		parts = append(parts, "(a list without names)")
	}
	return strings.Join(parts, " ")
}

// String renders the limit in one line.
func (l Limit) String() string {
	var parts []string
	if l.Description != "" {
		parts = append(parts, strconv.Quote(l.Description))
	}
	if len(l.Users) > 0 {
		parts = append(parts, "users="+strings.Join(l.Users, ","))
	}
	if len(l.Groups) > 0 {
		parts = append(parts, "groups="+strings.Join(l.Groups, ","))
	}
	parts = append(parts, "max="+limitText(l.MaxResources), "maxapplications="+countText(l.MaxApplications))
	return strings.Join(parts, " ")
}

// String renders the template in one line, "none" where there is no template.
func (t *Template) String() string {
	if t == nil {
		return "none"
	}
	return fmt.Sprintf("guaranteed (%s) max (%s) maxapplications %s properties (%s)",
		guaranteeText(t.Guaranteed), limitText(t.Max), countText(t.MaxApplications), propertiesText(t.Properties))
}

func guaranteeText(g resources.Guarantee) string {
	if g.IsNone() {
		return none
	}
	return amountsText(g.Map())
}

func limitText(l resources.Limit) string {
	if l.IsUnlimited() {
		return unlimited
	}
	return amountsText(l.Map())
}

func amountsText(m map[string]resources.Amount) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, quoteIfNeeded(name)+"="+quantity.Format(name, m[name]))
	}
	return strings.Join(parts, " ")
}

func countText(n uint64) string {
	if n == 0 {
		return "unlimited"
	}
	return strconv.FormatUint(n, 10)
}

func propertiesText(m map[string]string) string {
	if len(m) == 0 {
		return "none"
	}
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, quoteIfNeeded(key)+"="+quoteIfNeeded(m[key]))
	}
	return strings.Join(parts, " ")
}

// quoteIfNeeded leaves plain words as they are, so that each text is read in one way.
func quoteIfNeeded(s string) string {
	if s == "" || strings.ContainsAny(s, `"=(),\`) || strings.ContainsFunc(s, notPlain) {
		return strconv.Quote(s)
	}
	return s
}
