package queues

import (
	"iter"
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// everyone is the user or group name of a limit that holds for each user or group without
// a limit of its own in the queue.
const everyone = "*"

// Owner is the user and the group that an application is charged to.
type Owner struct {
	User string
	// Group is the group with the limits that hold for the application; empty for none.
	Group string
}

// GroupFor returns the group with the limits that hold for an application of a leaf and a
// user in the given groups: walking from the leaf to root, the first of the groups that a
// limit names; else the wildcard where one is set on the way; else none.
func GroupFor(v View, leaf ID, groups []string) string {
	found := ""
	for q := v.Queue(leaf); q != nil && q.PathLimited; q = v.Queue(q.Parent) {
		for _, g := range groups {
			if GroupLimit(q, g) != nil {
				return g
			}
		}
		if GroupLimit(q, everyone) != nil {
			found = everyone
		}
	}
	return found
}

// UserLimit returns the limit that a queue itself sets for a user; nil for none.
func UserLimit(q *Queue, user string) *config.Limit {
	var wildcard *config.Limit
	for i := range q.Limits {
		if slices.Contains(q.Limits[i].Users, user) {
			return &q.Limits[i]
		}
		if slices.Contains(q.Limits[i].Users, everyone) {
			wildcard = &q.Limits[i]
		}
	}
	return wildcard
}

// GroupLimit returns the limit that a queue itself sets for a group, or for the
// wildcard where the group is "*"; nil for none.
func GroupLimit(q *Queue, group string) *config.Limit {
	for i := range q.Limits {
		if slices.Contains(q.Limits[i].Groups, group) {
			return &q.Limits[i]
		}
	}
	return nil
}

// OwnerUsage is what one user or group uses below one queue.
type OwnerUsage struct {
	Allocated, Admitted, Arriving resources.Vector
	// Running counts the applications that count against maxapplications.
	Running int
}

// Equal tells whether both are the same.
func (u OwnerUsage) Equal(w OwnerUsage) bool {
	return u.Running == w.Running && u.Allocated.Equal(w.Allocated) && u.Admitted.Equal(w.Admitted) && u.Arriving.Equal(w.Arriving)
}

// Add returns the usage with that of more pods.
func (u OwnerUsage) Add(w Usage) OwnerUsage {
	return OwnerUsage{u.Allocated.Add(w.Allocated), u.Admitted.Add(w.Admitted), u.Arriving.Add(w.Arriving), u.Running + w.Running}
}

// Ledger tracks what users and groups use in the queues with limits. It has one writer
// and no lock; its owner guards it.
type Ledger struct {
	usage map[Charged]OwnerUsage
}

// Charged is a user, or with Group set a group, in one queue.
type Charged struct {
	Queue ID
	Group bool
	Name  string
}

// NewLedger returns a ledger without usage.
func NewLedger() *Ledger { return &Ledger{usage: map[Charged]OwnerUsage{}} }

// Update changes the usage of an owner in a leaf and all ancestors by f. Queues without a
// limit on their path are passed over at once.
func (l *Ledger) Update(v View, leaf ID, o Owner, f func(*OwnerUsage)) {
	for q := v.Queue(leaf); q != nil && q.PathLimited; q = v.Queue(q.Parent) {
		if len(q.Limits) == 0 {
			continue
		}
		l.update(Charged{q.ID, false, o.User}, f)
		if o.Group != "" {
			l.update(Charged{q.ID, true, o.Group}, f)
		}
	}
}

func (l *Ledger) update(k Charged, f func(*OwnerUsage)) {
	u := l.usage[k]
	f(&u)
	if u.Equal(OwnerUsage{}) {
		delete(l.usage, k)
		return
	}
	l.usage[k] = u
}

// Usage returns what the user (or, with group set, the group) uses below a queue; zero
// where nothing is, and where the queue has no limits.
func (l *Ledger) Usage(id ID, group bool, name string) OwnerUsage {
	return l.usage[Charged{id, group, name}]
}

// Len is how many users and groups are charged, each counted once for each queue.
func (l *Ledger) Len() int { return len(l.usage) }

// Charged lists the owners that are charged, in no order.
func (l *Ledger) Charged() []Charged { return slices.Collect(maps.Keys(l.usage)) }

// Equal tells whether both ledgers have the same usage.
func (l *Ledger) Equal(m *Ledger) bool { return maps.EqualFunc(l.usage, m.usage, OwnerUsage.Equal) }

// Admit judges an ask of an owner against the user and group limits of the leaf
// and every ancestor, leaf first, users before groups.
func (l *Ledger) Admit(v View, leaf ID, o Owner, ask resources.Vector, on Basis) Verdict {
	for by, limit := range limitsOn(v, leaf, o) {
		u := l.usage[by]
		if b, over := limit.MaxResources.Breach(on.usedBy(u, by), ask); over {
			beside := on.beside(b.Name, u.Admitted, u.Arriving, on.extra.ofOwner(by).request)
			return Verdict{At: by.Queue, Reason: by.refusal(v, reasons.OverUserLimit, reasons.OverGroupLimit, "%s used %s%s, requested %s, limit %s",
				b.Name, resources.Format(b.Name, b.Used), beside, resources.Format(b.Name, b.Asked), resources.Format(b.Name, b.Max)).NeverIf(b.Alone())}
		}
	}
	return Granted
}

// AdmitApplication judges whether one more application of the owner may start below the leaf.
func (l *Ledger) AdmitApplication(v View, leaf ID, o Owner, on Basis) Verdict {
	for by, limit := range limitsOn(v, leaf, o) {
		if running, starts := l.usage[by].Running, on.extra.ofOwner(by).starts; full(limit.MaxApplications, running+starts) {
			return Verdict{At: by.Queue, Reason: by.refusal(v, reasons.UserMaxApplications, reasons.GroupMaxApplications, "%s, limit %d",
				on.applications(running, starts), limit.MaxApplications)}
		}
	}
	return Granted
}

// limitsOn yields the limits on an owner in a leaf and every ancestor, leaf first, that of
// the user before that of the group, with what is charged for each.
func limitsOn(v View, leaf ID, o Owner) iter.Seq2[Charged, *config.Limit] {
	return func(yield func(Charged, *config.Limit) bool) {
		for q := v.Queue(leaf); q != nil && q.PathLimited; q = v.Queue(q.Parent) {
			for _, by := range [...]Charged{{q.ID, false, o.User}, {q.ID, true, o.Group}} {
				if limit := limitOf(q, by); limit != nil && !yield(by, limit) {
					return
				}
			}
		}
	}
}

// limitOf is the limit on a user or group in a queue; nil for none.
func limitOf(q *Queue, by Charged) *config.Limit {
	switch {
	case !by.Group:
		return UserLimit(q, by.Name)
	case by.Name == "":
		return nil
	}
	return GroupLimit(q, by.Name)
}

// refusal is why a limit refuses a pod.
func (by Charged) refusal(v View, user, group reasons.Code, format string, args ...any) reasons.Reason {
	code, kind := user, "user"
	if by.Group {
		code, kind = group, "group"
	}
	return reasons.New(code, "%s %s in queue %s: "+format, append([]any{kind, by.Name, v.Queue(by.Queue).Path}, args...)...)
}

// full tells whether a maxapplications, 0 for none, lets no more applications start.
func full(most uint64, running int) bool { return most > 0 && uint64(max(running, 0)) >= most }
