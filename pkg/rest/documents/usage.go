package documents

import (
	"cmp"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// UserUsage is what the running applications of a user use, as YuniKorn's
// interface shows it.
type UserUsage struct {
	UserName string `json:"userName"`
	// Groups says which group's limits hold for an application, where any do.
	Groups map[string]string `json:"groups,omitempty"`
	Queues *QueueUsage       `json:"queues"`
}

// GroupUsage is what the running applications use that the limits of a group hold for.
type GroupUsage struct {
	GroupName    string      `json:"groupName"`
	Applications []string    `json:"applications,omitempty"`
	Queues       *QueueUsage `json:"queues"`
}

// QueueUsage is what a user or group uses in a queue and below it.
type QueueUsage struct {
	QueuePath           string                      `json:"queuePath"`
	ResourceUsage       map[string]resources.Amount `json:"resourceUsage,omitempty"`
	RunningApplications []string                    `json:"runningApplications,omitempty"`
	// MaxResources and MaxApplications are what the queue itself allows them.
	MaxResources    map[string]resources.Amount `json:"maxResources,omitempty"`
	MaxApplications uint64                      `json:"maxApplications,omitempty"`
	Children        []*QueueUsage               `json:"children,omitempty"`
}

// usages collects what one user or group uses, by queue.
type usages struct {
	queues map[queues.ID]*QueueUsage
	used   map[queues.ID]resources.Vector
	apps   []string
	groups map[string]string
}

// limitOf finds the limit that a queue itself sets for a user or group.
type limitOf func(q *queues.Queue, name string) *config.Limit

// add counts an application of a user or group.
func (u *usages) add(v *inventory.View, a *inventory.Application, name string, limit limitOf) {
	u.apps = append(u.apps, a.ID)
	if a.Group != "" {
		u.groups[a.ID] = a.Group
	}
	var below *QueueUsage
	for q := range v.Queues.Ancestors(a.Leaf) {
		at, known := u.queues[q.ID]
		if !known {
			at = &QueueUsage{QueuePath: q.Path}
			if l := limit(q, name); l != nil {
				at.MaxResources, at.MaxApplications = l.MaxResources.Map(), l.MaxApplications
			}
			u.queues[q.ID] = at
		}
		if below != nil {
			at.Children = append(at.Children, below)
		}
		at.RunningApplications = append(at.RunningApplications, a.ID)
		u.used[q.ID] = u.used[q.ID].Add(a.Usage.Allocated)
		if below = at; known {
			below = nil // its parent has it
		}
	}
}

// root is the usage as a tree, sorted.
func (u *usages) root() *QueueUsage {
	for id, q := range u.queues {
		q.ResourceUsage = u.used[id].Map()
		slices.SortFunc(q.Children, func(a, b *QueueUsage) int { return cmp.Compare(a.QueuePath, b.QueuePath) })
	}
	return u.queues[queues.RootID]
}

// usagesBy collects usage by the name that the function returns; the empty name counts
// for none.
func usagesBy(v *inventory.View, nameOf func(*inventory.Application) string, limit limitOf) map[string]*usages {
	out := map[string]*usages{}
	for _, a := range v.Applications {
		name := nameOf(a)
		if name == "" || a.Running.IsZero() {
			continue
		}
		if out[name] == nil {
			out[name] = &usages{
				queues: map[queues.ID]*QueueUsage{}, used: map[queues.ID]resources.Vector{}, groups: map[string]string{},
			}
		}
		out[name].add(v, a, name, limit)
	}
	return out
}

// UsersOf returns the usage of all users.
func UsersOf(v *inventory.View) []UserUsage {
	by := usagesBy(v, func(a *inventory.Application) string { return a.User }, queues.UserLimit)
	out := make([]UserUsage, 0, len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, UserUsage{UserName: name, Groups: by[name].groups, Queues: by[name].root()})
	}
	return out
}

// GroupsOf returns the usage of all groups.
func GroupsOf(v *inventory.View) []GroupUsage {
	by := usagesBy(v, func(a *inventory.Application) string { return a.Group }, queues.GroupLimit)
	out := make([]GroupUsage, 0, len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, GroupUsage{GroupName: name, Applications: by[name].apps, Queues: by[name].root()})
	}
	return out
}
