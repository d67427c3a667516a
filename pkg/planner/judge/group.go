package judge

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// This file judges an asker that starts together with a group.

// groupBelow returns what the asker and its group below a queue request of a type, and
// the smallest of these requests.
func (j *judge) groupBelow(q *queues.Queue, t string) (all, least resources.Amount) {
	all = j.ask.Get(t)
	least = all
	if j.d.Ask.Group == nil {
		return all, least
	}
	for _, share := range j.d.Ask.Group.Shares {
		leaf := j.snapshot.Queues.Queue(share.Leaf)
		if leaf == nil || !queues.Within(leaf.Path, q.Path) {
			continue
		}
		all = all.Add(vectorOf(j.snapshot, share.Request).Get(t))
		if one := vectorOf(j.snapshot, share.Least).Get(t); one > 0 && (least == 0 || one < least) {
			least = one
		}
	}
	return all, least
}

// forGroup says what the group of the asker requests of a type; empty without a group.
func (j *judge) forGroup(t string, all resources.Amount) string {
	if j.d.Ask.Group == nil {
		return ""
	}
	return fmt.Sprintf(", and PodGroup %s requests %s", j.d.Ask.Group.Name, resources.Format(t, all))
}

// groupHasEnough judges law 2 for the whole group: the free amounts, and the usage above
// their guarantees of queues that may lose pods, must suffice.
func (j *judge) groupHasEnough() []error {
	g := j.d.Ask.Group
	if g == nil || len(j.victims) == 0 {
		return nil
	}
	var errs []error
	path := j.pathToRoot(j.d.Ask.Leaf)
	for _, t := range j.contested {
		root := path[len(path)-1]
		all, _ := j.groupBelow(root, t)
		enough := vectorOf(j.snapshot, g.Free).Get(t)
		for i, lca := range path {
			if i > 0 && j.law4(path[:i]) == nil {
				for _, child := range lca.Children {
					if c := j.snapshot.Queues.Queue(child); c != nil && c.ID != path[i-1].ID {
						enough = enough.Add(j.aboveGuarantee(c, t))
					}
				}
			}
			if lca.IsFence() {
				break
			}
		}
		if all > enough {
			errs = append(errs, fmt.Errorf("law 2: PodGroup %s requests %s %s, and there are %s",
				g.Name, resources.Format(t, all), t, resources.Format(t, enough)))
		}
	}
	return errs
}

// aboveGuarantee returns how much of a type a queue and all below it may lose.
func (j *judge) aboveGuarantee(q *queues.Queue, t string) resources.Amount {
	var sum, below resources.Amount
	for _, child := range q.Children {
		if c := j.snapshot.Queues.Queue(child); c != nil {
			sum, below = sum.Add(j.aboveGuarantee(c, t)), below.Add(c.Used().Get(t))
		}
	}
	if own := q.Used().Get(t).Sub(below); own > 0 && !j.isDisabled(q) {
		sum = sum.Add(own)
	}
	if g, named := q.Guaranteed.Get(t); named {
		sum = min(sum, max(q.Used().Get(t).Sub(g), 0))
	}
	return sum
}
