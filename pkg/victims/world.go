package victims

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Amounts are quantities of the World's types, in base units; a shorter list
// has nothing of the types that follow.
type Amounts []int64

func (a Amounts) at(t int) int64 {
	if t < len(a) {
		return a[t]
	}
	return 0
}

// World is everything a plan is made on, at one moment. Nothing in it changes
// while a plan is made. The asker itself is nowhere in it: not among the pods,
// not in what is arriving or held.
type World struct {
	// Types names the resource types; Amounts follow its order.
	Types []string
	// Queues has the queues with their usage.
	Queues queues.View
	// Nodes are those where the asker could run but for what pods use there. A
	// plan that finds them in order of their names need not sort them.
	Nodes []*Node
	// Budgets are the disruptions that the PodDisruptionBudgets still allow.
	Budgets []int64
}

// Node is a node with its pods. A literal will do; [NewNode] makes one that is
// planned on faster.
type Node struct {
	Name        string
	Allocatable Amounts
	// Free is what is left once leaving pods are gone and earlier holders have
	// what they wait for; negative where the node is overcommitted.
	Free Amounts
	Pods []*Pod

	digest *digest
}

// NewNode returns a node that is prepared for many plans. Neither its pods nor
// the list of them may change from then on: where one does, make the node anew.
// What is free may be set at any time.
func NewNode(name string, allocatable, free Amounts, pods []*Pod) *Node {
	return &Node{Name: name, Allocatable: allocatable, Free: free, Pods: pods, digest: newDigest(pods)}
}

// Protection says why a pod is never a victim of queue preemption.
type Protection uint8

// The protections (LAWS, never victims).
const (
	Unprotected Protection = iota
	DaemonSet
	Static
	Leaving
	Binding
	Foreign
	// Lingering pods leave, and stay longer than a hold lasts.
	Lingering
)

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
	// OptedOut pods are used only when there is no lawful plan without them (law 1).
	OptedOut bool
	// Originator pods own another pod of their application, or are its oldest.
	Originator bool
	// Slow pods have a grace period that is longer than a hold lasts.
	Slow       bool
	Protection Protection
	// Budgets are the indexes of the PodDisruptionBudgets that cover the pod.
	Budgets []int
}

// Ask is the pod that needs room.
type Ask struct {
	UID, Namespace, Name string
	Leaf                 queues.ID
	App                  string
	Request              Amounts
	Priority             int32
	// Never is true for preemptionPolicy Never: the pod asks for nothing (law 6).
	Never bool
	// Group is what has to start together with it; nil for nothing.
	Group *Group
}

// Params are the settings of a plan.
type Params struct {
	// StrictGuarantee keeps an asker from carrying its queue over its guarantee (law 4).
	StrictGuarantee bool
	// Barred tells of a node whether the asker cannot run there, whatever pods go. Its
	// pods may go all the same where a max is in the way. It is asked about a node only
	// if the laws leave hope for it. Nil means that none is barred.
	Barred func(node string) bool
	// Fits runs the real filters for the asker on a node without some pods. Nil
	// means that resources are all there is.
	Fits func(node string, without []*Pod) Fit
	// MaxFits bounds the calls of Fits for one plan; 0 or less means 100.
	MaxFits int
}

// Fit is what the real filters say of the asker on a node without some pods.
type Fit uint8

const (
	// Fails is that they refuse, but might pass without other pods.
	Fails Fit = iota
	// Passes is that the asker can run there then.
	Passes
	// Never is that they refuse whatever pods go. The node is not asked about again.
	Never
)

const defaultMaxFits = 100
