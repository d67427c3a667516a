package planner

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Group is the set of pods that must start together with an asker. Laws 2 and 4 are
// judged for all of it: if the rest of the group cannot start, preemption for a part of
// it would be useless.
type Group struct {
	// Name is namespace and name, for people.
	Name string
	// Members are the UIDs of the pods that must start together with the asker and that
	// neither have nor hold a node. Shares are their requests.
	Members []string
	Shares  []Share
	// Free is what all nodes together have free for the group, once leaving pods are gone
	// and holders have what they wait for.
	Free Amounts
}

// Share is the requests of the pods of a group in one queue.
type Share struct {
	Leaf queues.ID
	// Request is the sum. Least is, by type, the smallest request of those that request
	// the type.
	Request, Least Amounts
}

// Add adds the requests of more pods: their sum, and the smallest by type.
func (s *Share) Add(sum, least Amounts) {
	for t := range sum {
		for len(s.Request) <= t {
			s.Request, s.Least = append(s.Request, 0), append(s.Least, 0)
		}
		s.Request[t] = Plus(s.Request[t], sum[t])
		if l := least.At(t); l > 0 && (s.Least[t] == 0 || l < s.Least[t]) {
			s.Least[t] = l
		}
	}
}

// GroupShortage says what a group lacks, with the numbers.
type GroupShortage struct {
	Name string
	// Pods is the number of pods that must start, with the asker. Requested is their
	// request of the type; for a refusal by law 4, of those below Queue.
	Pods      int
	Type      string
	Requested resources.Amount
	// Queue uses this amount of its guarantee (law 4); empty for a refusal by law 2.
	Queue            string
	Used, Guaranteed resources.Amount
	// Free is free on nodes, and Above is the usage of other queues above their
	// guarantees (law 2).
	Free, Above resources.Amount
}

// sentence says, for people, why no pods are preempted for a part of the group.
func (g *GroupShortage) sentence() string {
	s := fmt.Sprintf("PodGroup %s starts with %d more pods at once, which request %s %s",
		g.Name, g.Pods, resources.Format(g.Type, g.Requested), g.Type)
	if g.Queue != "" {
		return s + fmt.Sprintf(", and queue %s uses %s of %s guaranteed %s: no pods are preempted for a part of the group (law 4)",
			g.Queue, resources.Format(g.Type, g.Used), resources.Format(g.Type, g.Guaranteed), g.Type)
	}
	return s + fmt.Sprintf(", and there are %s free and %s that other queues use above their guarantees: no pods are preempted for a part of the group (law 2)",
		resources.Format(g.Type, g.Free), resources.Format(g.Type, g.Above))
}
