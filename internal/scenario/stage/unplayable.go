package stage

import (
	"slices"

	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// Fact is a fact of a scenario that not every cluster can show.
type Fact string

// The facts.
const (
	// TwoQueues: an application is in the queue of its first pod.
	TwoQueues Fact = "an application in two queues"
	// Binding: the bind request of a pod is in flight while another pod asks.
	Binding Fact = "a pod in its binding"
	// PlanWithoutNode: a scheduler that has a plan for an asker always holds a node for
	// it, too.
	PlanWithoutNode Fact = "a plan without a node"
	// Strict is an argument of the whole scheduler.
	Strict Fact = "strictGuarantee"
	// Daemon: a pod of a DaemonSet is made and deleted by its controller.
	Daemon Fact = "a pod of a DaemonSet"
)

// Facts are those in a case that matter to a driver, sorted.
func Facts(c *scenario.Case) []Fact {
	var facts []Fact
	if c.Strict {
		facts = append(facts, Strict)
	}
	queues := map[string]string{c.Ask.App: c.Ask.Queue}
	for i := range c.World.Pods {
		p := &c.World.Pods[i]
		if queue, known := queues[p.App]; p.OwnApp && known && queue != p.Queue {
			facts = append(facts, TwoQueues)
		}
		queues[p.App] = p.Queue
		switch p.Protection {
		case planner.Binding:
			facts = append(facts, Binding)
		case planner.DaemonSet:
			facts = append(facts, Daemon)
		}
	}
	for _, x := range c.World.Waiting {
		if x.Node == "" {
			facts = append(facts, PlanWithoutNode)
		}
	}
	slices.Sort(facts)
	return slices.Compact(facts)
}

// Unplayable lists the cases with facts that a stage cannot show, one a line, in the
// order of the cases. It returns the other cases.
func Unplayable(cases []scenario.Case, can ...Fact) (playable []scenario.Case, unplayable []string) {
	for _, c := range cases {
		facts := slices.DeleteFunc(Facts(&c), func(f Fact) bool { return slices.Contains(can, f) })
		if len(facts) == 0 {
			playable = append(playable, c)
		}
		for _, f := range facts {
			unplayable = append(unplayable, c.Name+": "+string(f))
		}
	}
	return playable, unplayable
}
