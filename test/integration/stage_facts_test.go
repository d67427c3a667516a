package integration

import (
	"slices"

	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// fact is a fact of a scenario that the cluster cannot show.
type fact string

// The facts.
const (
	// twoQueues: an application is in the queue of its first pod.
	twoQueues fact = "an application in two queues"
	// binding: the bind request of a pod is in flight while another pod asks.
	binding fact = "a pod in its binding"
	// planWithoutNode: a scheduler that has a plan for an asker always holds a node for
	// it, too.
	planWithoutNode fact = "a plan without a node"
	// strict is an argument of the whole scheduler.
	strict fact = "strictGuarantee"
	// daemon: a pod of a DaemonSet is made and deleted by its controller.
	daemon fact = "a pod of a DaemonSet"
)

// factsOf are those in a case, sorted.
func factsOf(c *scenario.Case) []fact {
	var facts []fact
	if c.Strict {
		facts = append(facts, strict)
	}
	queues := map[string]string{c.Ask.App: c.Ask.Queue}
	for i := range c.State.Pods {
		p := &c.State.Pods[i]
		if queue, known := queues[p.App]; p.OwnApp && known && queue != p.Queue {
			facts = append(facts, twoQueues)
		}
		queues[p.App] = p.Queue
		switch p.Protection {
		case planner.Binding:
			facts = append(facts, binding)
		case planner.DaemonSet:
			facts = append(facts, daemon)
		}
	}
	for _, x := range c.State.Waiting {
		if x.Node == "" {
			facts = append(facts, planWithoutNode)
		}
	}
	slices.Sort(facts)
	return slices.Compact(facts)
}

// playable returns the cases without facts that the cluster cannot show. It lists the
// facts of the others, one a line, in the order of the cases.
func playable(cases []scenario.Case) (playable []scenario.Case, others []string) {
	for _, c := range cases {
		facts := factsOf(&c)
		if len(facts) == 0 {
			playable = append(playable, c)
		}
		for _, f := range facts {
			others = append(others, c.Name+": "+string(f))
		}
	}
	return playable, others
}
