package required

import (
	"time"

	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// Node is the node that the asker requires, at one moment. Nothing in it changes
// while a plan is made. The asker is nowhere in it.
type Node struct {
	Name string
	// Types names the resource types; amounts follow its order.
	Types       []string
	Allocatable victims.Amounts
	// Pods are all that use something there, those that leave included, in any order.
	Pods []Pod
	// Before are the requests of the required-node holders that are served before
	// the asker: of higher priority, or older (D1).
	Before []victims.Amounts
	// Budgets are the disruptions that the PodDisruptionBudgets still allow.
	Budgets []int64
}

// Pod is a pod on the node. Its Protection is [victims.Foreign] only where
// nothing else protects it: a foreign pod that leaves, or is of a DaemonSet, or is
// static says that. Its Leaf and App mean nothing here.
type Pod struct {
	*victims.Pod
	// Peer is true for a foreign pod of a profile that enables QueuePreemption: it
	// may go like a managed one (D4).
	Peer bool
}

// Ask is the pod that requires the node. Its Leaf and App mean nothing here.
type Ask struct {
	*victims.Ask
	// OverMax is the path of the queue whose max it would exceed; empty for none (D2).
	OverMax string
	// Held is how long it has held the node; 0 where it does not yet.
	Held time.Duration
}

// Selection is a way to choose victims (D6).
type Selection string

// The selections. Single: one victim that covers the need. Multiple: one after
// the other until the need is met.
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
	// Selection lists the selections; each is tried when the one before found
	// nothing. Empty means multiple.
	Selection []Selection
	// SingleDeviationPercent bounds how far the victim of single may be from the
	// request, in percent of the request; nil for no bound.
	SingleDeviationPercent *int32
	// MaxVictims bounds the victims of multiple; nil for no bound.
	MaxVictims *int32
	ClassOrder ClassOrder
	// PreemptForeign allows foreign pods that are not Peer, after all classes.
	PreemptForeign bool
	// StartDelay is how old the hold must be before pods go; 0 for at once (D3).
	StartDelay time.Duration
	// Fits runs the real filters for the asker on the node without some pods; the
	// leaving ones are gone in any case, and the holders before it have their
	// room. Nil means that resources are all there is. It is asked only about sets
	// that make room by amounts, at most four times per candidate and once more.
	Fits func(without []*victims.Pod) victims.Fit
}

// Class is what a candidate is to its application (D5).
type Class uint8

// The classes. Of several that apply to a pod the last one counts.
const (
	Regular Class = iota
	Originator
	OptedOut
	// Foreign pods are of schedulers outside this process, whatever else they are.
	Foreign
)

var classNames = [...]string{"regular", "originator", "opted out", "foreign"}

func (c Class) String() string { return classNames[c] }

// classOf is the class of a pod.
func classOf(p *Pod) Class {
	switch {
	case p.Protection == victims.Foreign && !p.Peer:
		return Foreign
	case p.OptedOut:
		return OptedOut
	case p.Originator:
		return Originator
	}
	return Regular
}

// rank is where a pod stands in the order of classes, least harm first. What is
// both opted out and an originator has a place of its own.
func (o ClassOrder) rank(p *Pod, c Class) int {
	order := [...]int{Regular: 0, Originator: 1, OptedOut: 2, Foreign: 4}
	if o == YuniKorn {
		order = [...]int{Regular: 0, Originator: 3, OptedOut: 1, Foreign: 4}
	}
	if c == OptedOut && p.Originator {
		return order[c] + 1
	}
	return order[c]
}
