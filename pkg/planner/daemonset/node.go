package daemonset

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
)

// Node is the node that the asker requires, at one moment. It does not change while a
// plan is made. It does not contain the asker.
type Node struct {
	Name string
	// Types names the resource types. Amounts follow its order.
	Types       []string
	Allocatable planner.Amounts
	// Pods are all pods that use resources of the node, including leaving ones, in any
	// order. Their App is not used here. The Protection of a pod is [planner.Foreign] only if
	// nothing else protects it: a foreign pod that is leaving, or of a DaemonSet, or static has
	// that protection. A foreign pod of a profile that enables QueuePreemption has none: it may
	// be preempted like a managed pod (D4).
	Pods []*planner.Pod
	// Before are the requests of the node-bound holders that are served before the
	// asker: those of higher priority, or older (D1).
	Before []planner.Amounts
	// Budgets are the disruptions that the PodDisruptionBudgets still allow.
	Budgets []int64
	// Queues are the queues with their usage. They are needed only for an asker that
	// guarantees bind, see [Params.Bound].
	Queues queues.View
}

// Ask is the pod that requires the node. Its App is not used here.
type Ask struct {
	*planner.Ask
	// OverMax is the path of the queue with a max that the asker would exceed; empty for
	// none (D2).
	OverMax string
	// Held is how long it has held the node; 0 if it does not hold it yet.
	Held time.Duration
	// Arriving is the part of what arrives in Queues that the asker itself requests.
	Arriving planner.Amounts
}

// Selection is a method to choose victims (D6).
type Selection string

// The selections. Single: one victim that covers the need. Multiple: one victim after the
// other until the need is met.
const (
	Single   Selection = "single"
	Multiple Selection = "multiple"
)

// ClassOrder is the order of the classes (D5).
type ClassOrder string

// The orders. Seed, also for the empty string: regular, originator, opted out.
// YuniKorn: regular, opted out, originator.
const (
	Seed     ClassOrder = "Seed"
	YuniKorn ClassOrder = "YuniKorn"
)

// Params are the settings of a plan.
type Params struct {
	// Selection lists the selections. Each is tried if the one before found no victims.
	// Empty means multiple.
	Selection []Selection
	// SingleDeviationPercent limits how far the victim of single may be from the request,
	// in percent of the request; nil for no limit.
	SingleDeviationPercent *int32
	// MaxVictims limits the victims of multiple; nil for no limit.
	MaxVictims *int32
	ClassOrder ClassOrder
	// PreemptForeign permits pods with Protection [planner.Foreign] as victims, after all
	// classes.
	PreemptForeign bool
	// Namespaces are those in which DaemonSets may take room that is guaranteed to queues;
	// empty for all. Laws 1, 2, 5 and 7 bind the others.
	Namespaces []string
	// StartDelay is how old the hold must be before pods are preempted; 0 for at once
	// (D3).
	StartDelay time.Duration
	// Fits runs the real filters for the asker on the node without some pods. Leaving
	// pods are gone in any case, and the holders before the asker are placed. Nil means
	// that only resources count. It is called only for sets that free enough by amounts,
	// at most four times per candidate and once more.
	Fits func(without []*planner.Pod) planner.Fit
}

// Class is the importance of a candidate to its application (D5).
type Class uint8

// The classes. If several apply to a pod, the last one counts.
const (
	Regular Class = iota
	Originator
	OptedOut
	// Foreign pods are of schedulers outside this process, whatever other class applies.
	Foreign
)

var classNames = [...]string{"regular", "originator", "opted out", "foreign"}

func (c Class) String() string { return classNames[c] }

// ClassOf returns the class of a pod.
func ClassOf(p *planner.Pod) Class {
	switch {
	case p.Protection == planner.Foreign:
		return Foreign
	case p.OptedOut:
		return OptedOut
	case p.Originator:
		return Originator
	}
	return Regular
}

// place is the place of a class in the order, least harm first.
func (o ClassOrder) place(c Class) int {
	if o == YuniKorn {
		return [...]int{Regular: 0, Originator: 3, OptedOut: 1, Foreign: 4}[c]
	}
	return [...]int{Regular: 0, Originator: 1, OptedOut: 2, Foreign: 4}[c]
}

// rank is the place of a pod in the order of classes. A pod that is both opted out and an
// originator has a place of its own.
func (o ClassOrder) rank(p *planner.Pod, c Class) int {
	if c == OptedOut && p.Originator {
		return o.place(c) + 1
	}
	return o.place(c)
}
