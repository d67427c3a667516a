package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Types are the resource types of all scenarios.
func Types() []string { return []string{resources.CPU, resources.Memory, "gpu", resources.Pods} }

// Amounts are quantities by type, in base units; a type that is not named is 0.
type Amounts map[string]resources.Amount

// State is the state at one moment of a scenario. Names are unique by kind.
type State struct {
	// Root is the tree of queues.
	Root    *config.Queue
	Nodes   []Node
	Budgets []Budget
	// Pods are those with a node.
	Pods []Pod
	// Waiting are askers with a plan or a hold, other than the one that asks.
	Waiting []Waiting
}

// Node is a node with the resources that pods may use.
type Node struct {
	Name        string
	Allocatable Amounts
}

// Budget is a PodDisruptionBudget with the disruptions that it still allows.
type Budget struct {
	Name    string
	Allowed int64
}

// Pod is a pod on a node.
type Pod struct {
	Ask
	Node string
	// Age is its age; below 0 for pods that started during the scenario, the later the
	// lower.
	Age        time.Duration
	OptedOut   bool
	Originator bool
	Protection planner.Protection
	// Budgets names those that cover the pod.
	Budgets []string
}

// Ask is a pod that needs room.
type Ask struct {
	Name string
	// Queue is the path of its leaf; empty for a pod in no queue.
	Queue string
	// App is the path of the queue unless OwnApp.
	App string
	// OwnApp is true if the scenario names the application.
	OwnApp bool
	// Request has pods: 1 as well.
	Request  Amounts
	Priority int32
	// Never is preemptionPolicy Never.
	Never bool
	Place
}

// Waiting is an asker for which room is being made.
type Waiting struct {
	Ask
	// Node is held for it; empty while none is.
	Node string
}

// Queue returns the queue of a path, or nil.
func (s *State) Queue(path string) *config.Queue {
	for q := range s.Root.All() {
		if q.Path == path {
			return q
		}
	}
	return nil
}

// clone copies the parts that change during the scenario.
func (s *State) clone() *State {
	return &State{
		Root: s.Root, Nodes: slices.Clone(s.Nodes), Budgets: slices.Clone(s.Budgets),
		Pods: slices.Clone(s.Pods), Waiting: slices.Clone(s.Waiting),
	}
}

// usage returns the usage of the queues in the types that they guarantee or limit, one a
// line.
func (s *State) usage() string {
	var b strings.Builder
	for q := range s.Root.All() {
		used := s.Used(q.Path)
		var words []string
		for _, name := range Types() {
			now := resources.Format(name, used[name])
			if g, ok := q.Guaranteed.Get(name); ok {
				words = append(words, fmt.Sprintf("%s %s of %s guaranteed", name, now, resources.Format(name, g)))
			}
			if most, ok := q.Max.Get(name); ok {
				words = append(words, fmt.Sprintf("%s %s of max %s", name, now, resources.Format(name, most)))
			}
		}
		if len(words) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", q.Path, strings.Join(words, ", "))
		}
	}
	return b.String()
}

// Used is the usage of the pods in a queue and below, without leaving ones.
func (s *State) Used(path string) Amounts {
	sum := Amounts{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Protection != planner.Leaving && queues.Within(p.Queue, path) {
			for name, a := range p.Request {
				sum[name] += a
			}
		}
	}
	return sum
}
