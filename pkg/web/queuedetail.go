package web

import (
	"strconv"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// queueDetail is everything that the page of a queue shows.
type queueDetail struct {
	queueRow
	Path string
	Leaf bool
	// Settings are its configuration.
	Settings []fact
	Limits   []limitRow
	// Applications are those of the queue itself.
	Applications []*inventory.Application
	Pager        pager
}

// limitRow is a limit for users or groups.
type limitRow struct{ AppliesTo, Most, Applications, Description string }

func detailOf(r *request, q *queues.Queue) *queueDetail {
	out := &queueDetail{queueRow: rowOf(r.View, q, q.Path), Path: visible(q.Path), Leaf: q.Leaf}
	out.Bars, out.More = barsOf(r.View, q), 0
	out.Settings = settingsOf(r.View, q)
	for _, l := range q.Limits {
		out.Limits = append(out.Limits, limitOf(l))
	}
	if !q.Leaf && q.Applications == 0 {
		return out
	}
	out.Applications, out.Pager = cut(r, "apps", "application", r.InQueue(q.Path), applicationsAtOnce)
	return out
}

func withoutPods(v resources.Vector) resources.Vector {
	return v.Sub(resources.VectorOf(resources.Entry{Name: resources.Pods, Amount: v.Get(resources.Pods)}))
}

func limitOf(l config.Limit) limitRow {
	var appliesTo []string
	for _, name := range l.Users {
		appliesTo = append(appliesTo, namedOr("each user", "user ", name))
	}
	for _, name := range l.Groups {
		appliesTo = append(appliesTo, namedOr("each group", "group ", name))
	}
	out := limitRow{AppliesTo: strings.Join(appliesTo, ", "), Description: visible(l.Description), Most: limited(l.MaxResources), Applications: "no limit"}
	if l.MaxApplications > 0 {
		out.Applications = strconv.FormatUint(l.MaxApplications, 10)
	}
	return out
}

func namedOr(each, kind, name string) string {
	if name == "*" {
		return each
	}
	return kind + visible(name)
}

// limited writes a limit.
func limited(l resources.Limit) string {
	names := ranked(nil, l.All())
	if len(names) == 0 {
		return "no limit"
	}
	for i, name := range names {
		most, _ := l.Get(name)
		names[i] = amountOf(name, most)
	}
	return strings.Join(names, ", ")
}

// settingsOf returns the settings of a queue, with those that are not the default last.
func settingsOf(v *inventory.View, q *queues.Queue) []fact {
	var out []fact
	add := func(yes bool, name, value string) {
		if yes {
			out = append(out, fact{name, value})
		}
	}
	running := count(q.Running, "application")
	if q.MaxApplications > 0 {
		running += " of at most " + strconv.FormatUint(q.MaxApplications, 10)
	}
	add(true, "Running", running)
	add(!q.IsRoot(), "Room left", limited(headroom(v.Queues, q)))
	add(!q.Leaving.IsZero(), "Leaving", amounts(q.Leaving)+", of pods that are about to go")
	add(!q.Arriving.IsZero(), "Arriving", amounts(q.Arriving)+", of pods for which room is being made")
	add(q.Leaf, "Order of applications", string(q.Policies.ApplicationSort))
	add(!q.Policies.PrioritySort, "Priorities", "do not count in the order")
	add(q.Policies.PriorityFence, "Priorities above", strconv.Itoa(int(q.Policies.PriorityOffset))+" for all pods below (priority fence)")
	add(!q.Policies.PriorityFence && q.Policies.PriorityOffset != 0, "Priority offset", strconv.Itoa(int(q.Policies.PriorityOffset)))
	add(q.Leaf, "Preempts after waiting", q.Policies.PreemptionDelay.String())
	add(q.IsFence(), "Fence", "pods below preempt only pods below; pods of elsewhere may preempt pods below")
	add(!q.IsRoot() && q.Policies.Preemption == config.PreemptionDisabled, "Preemption", "no pod below is preempted by a queue")
	add(q.State == queues.Draining, "State", "draining: it left the configuration, takes nothing new, and goes once it is empty")
	add(!q.Managed, "Made by", "a placement rule")
	add(q.QuotaNamespace != "", "Quota of namespace", visible(q.QuotaNamespace))
	if t := q.Template; t != nil {
		add(true, "Queues made below get", "max "+limited(t.Max)+"; guaranteed "+promised(t.Guaranteed))
	}
	return out
}

func promised(g resources.Guarantee) string {
	if g.IsNone() {
		return "nothing"
	}
	return limited(resources.LimitFrom(g.Map()))
}

// headroom is the headroom that the page shows: at most what the nodes have.
func headroom(s *queues.Snapshot, q *queues.Queue) resources.Limit {
	return queues.Headroom(s, q.ID).Min(s.ShownMax(s.Root()).Headroom(s.Root().Allocated))
}
