package planner

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Amounts are quantities of the Snapshot's types, in base units. A shorter list has nothing
// of the types that follow.
type Amounts []int64

// At is the quantity of the type with index t.
func (a Amounts) At(t int) int64 {
	if t < len(a) {
		return a[t]
	}
	return 0
}

// Add adds other amounts, or subtracts them if sign is -1, in the types of the list.
func (a Amounts) Add(b Amounts, sign int64) {
	for t := range a {
		a[t] = Plus(a[t], sign*b.At(t))
	}
}

// Plus saturates, because a pod may request any amount.
func Plus(a, b int64) int64 { return int64(resources.Amount(a).Add(resources.Amount(b))) }

// Minus is Plus with the opposite sign.
func Minus(a, b int64) int64 { return int64(resources.Amount(a).Sub(resources.Amount(b))) }

// Rank is 1 for true: false comes first.
func Rank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Snapshot is all input of a plan, at one moment. It does not change while a plan is made.
// It does not contain the asker: neither among the pods, nor in what is arriving or held.
type Snapshot struct {
	// Types names the resource types. Amounts follow its order.
	Types []string
	// Queues are the queues with their usage.
	Queues queues.View
	// Nodes are the nodes where the asker could run if pods did not use them, sorted by name.
	Nodes []*Node
	// Budgets are the disruptions that the PodDisruptionBudgets still allow.
	Budgets []int64
}

// Node is a node with its pods. Make it with NewNode: a literal has no digest, and a search would
// panic.
type Node struct {
	Name        string
	Allocatable Amounts
	// Free is what is free once leaving pods are gone and earlier holders have what they
	// wait for; negative if the node is overcommitted.
	Free Amounts
	Pods []*Pod

	digest *Digest
}

// NewNode returns a node that is prepared for many plans. Its pods and their list must
// not change afterwards; after a change, make a new node. Free may be set at any time.
func NewNode(name string, allocatable, free Amounts, pods []*Pod) *Node {
	return &Node{Name: name, Allocatable: allocatable, Free: free, Pods: pods, digest: newDigest(pods)}
}

// Protection is the reason why a pod is never a victim of queue preemption.
type Protection uint8

// The protections (docs/laws.md, never victims).
const (
	Unprotected Protection = iota
	DaemonSet
	Static
	Leaving
	Binding
	Foreign
	// Lingering pods are leaving, may stay longer than a hold lasts, and a delete would not
	// make them go sooner.
	Lingering
	// Refused pods could not be deleted for an earlier plan: the API server refused it for
	// good.
	Refused
	// TooSlow pods are of the asker's own namespace, and take longer to stop than its only node may
	// still be held for such pods (D4).
	TooSlow
)

// protectedBy has the rule of each protection.
var protectedBy = [...]Rule{
	DaemonSet: RuleDaemonSet,
	Static:    RuleStatic,
	Leaving:   RuleLeaving,
	Binding:   RuleBinding,
	Foreign:   RuleForeign,
	Lingering: RuleLingering,
	Refused:   RuleRefused,
	TooSlow:   RuleTooSlow,
}

// Rule returns the rule by which a pod with the protection is no candidate; empty for
// Unprotected.
func (p Protection) Rule() Rule { return protectedBy[p] }

// Pod is a pod on a node.
type Pod struct {
	UID, Namespace, Name string
	// Leaf is the queue; NoQueue for a foreign pod.
	Leaf queues.ID
	// App is namespace and ID of the application.
	App      string
	Request  Amounts
	Priority int32
	Created  time.Time
	// OptedOut pods are victims only if no plan without them is lawful (law 1).
	OptedOut bool
	// Originator pods are those without which their application cannot run: by annotation,
	// role, the pods they own, or age.
	Originator bool
	// Slow pods have a grace period longer than a hold lasts.
	Slow       bool
	Protection Protection
	// Grace is how long a lingering pod may take to stop.
	Grace time.Duration
	// Refusal says for how long a refused pod is no victim, and why.
	Refusal string
	// Budgets are the indexes of the PodDisruptionBudgets that cover the pod.
	Budgets []int
}

// Ask is the pod that preempts.
type Ask struct {
	UID, Namespace, Name string
	Leaf                 queues.ID
	App                  string
	Request              Amounts
	Priority             int32
	// Never is true for preemptionPolicy Never: the pod must not preempt (law 6).
	Never bool
	// Group is the set of pods that must start together with it; nil for none.
	Group *Group
}

// Params are the settings of a plan.
type Params struct {
	// StrictGuarantee refuses an asker that would raise the usage of its queue above its
	// guarantee (law 4).
	StrictGuarantee bool
	// Barred reports whether the asker cannot run on a node, whatever pods are preempted.
	// The pods of such a node may still be preempted for a max. Barred is called for a
	// node only if the laws permit a plan there. Nil means that no node is barred.
	Barred func(node string) bool
	// Fits runs the real filters for the asker on a node without some pods. Nil means
	// that only resources count.
	Fits func(node string, without []*Pod) Fit
	// MaxFits limits the calls of Fits for one plan; 0 or less means 100.
	MaxFits int
}

// Fit is the result of the real filters for the asker on a node without some pods.
type Fit uint8

const (
	// Fails means that the filters reject, but might accept without other pods.
	Fails Fit = iota
	// Passes means that the asker can run there.
	Passes
	// Never means that the filters reject whatever pods are preempted. They are not run
	// for the node again.
	Never
)
