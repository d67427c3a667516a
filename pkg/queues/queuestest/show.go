package queuestest

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Shown is a tree that can be shown: a snapshot or a draft.
type Shown interface {
	All() iter.Seq[*queues.Queue]
}

// ShowSettings shows the queues with what they were told to be, one a line,
// indented; nothing is said of defaults.
func ShowSettings(tree Shown) string {
	var b strings.Builder
	for q := range tree.All() {
		words := []string{strings.Repeat("  ", strings.Count(q.Path, ".")) + q.Name}
		if !q.Leaf && len(q.Children) == 0 {
			words = append(words, "parent")
		}
		if q.Leaf && len(q.Children) > 0 {
			words = append(words, "leaf")
		}
		if !q.Managed {
			words = append(words, "dynamic")
		}
		if q.State != queues.Active {
			words = append(words, strings.ToLower(q.State.String()))
		}
		words = append(words, quotas(q)...)
		fmt.Fprintln(&b, strings.Join(words, " "))
	}
	return b.String()
}

func quotas(q *queues.Queue) []string {
	var words []string
	add := func(name, text string) {
		if text != "" {
			words = append(words, name+"{"+text+"}")
		}
	}
	add("guaranteed", Amounts(q.Guaranteed.All()))
	add("max", Amounts(q.Max.All()))
	if !q.PathMax.Equal(q.Max) {
		add("pathmax", Amounts(q.PathMax.All()))
	}
	if q.MaxApplications > 0 {
		words = append(words, fmt.Sprintf("maxapps=%d", q.MaxApplications))
	}
	var properties []string
	for _, key := range slices.Sorted(maps.Keys(q.Properties)) {
		properties = append(properties, key+":"+q.Properties[key])
	}
	add("props", strings.Join(properties, ","))
	if q.PathLimited {
		words = append(words, "limited")
	}
	if q.Template != nil {
		words = append(words, "template")
	}
	if q.QuotaNamespace != "" {
		words = append(words, "quota-of="+q.QuotaNamespace)
	}
	return words
}

// ShowUsage shows the queues with what goes on in them, one a line; queues in
// which nothing goes on are left out.
func ShowUsage(tree Shown) string {
	var b strings.Builder
	for q := range tree.All() {
		var words []string
		for _, part := range []struct{ name, text string }{
			{"allocated", Amounts(q.Allocated.All())},
			{"admitted", Amounts(q.Admitted.All())},
			{"leaving", Amounts(q.Leaving.All())},
			{"leaving-by-hand", Amounts(q.Leaving.Sub(q.Preempted).All())},
			{"arriving", Amounts(q.Arriving.All())},
			{"pending", Amounts(q.Pending.All())},
		} {
			if part.text != "" {
				words = append(words, part.name+"{"+part.text+"}")
			}
		}
		if q.Applications != 0 || q.Running != 0 {
			words = append(words, fmt.Sprintf("apps=%d running=%d", q.Applications, q.Running))
		}
		if len(words) > 0 {
			fmt.Fprintln(&b, q.Path, strings.Join(words, " "))
		}
	}
	return b.String()
}
