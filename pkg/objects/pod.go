// Package objects has the facts that informers tell the store: pods and disruption
// budgets, reduced to what queues and preemption need. Values are read-only once they
// were told, because records share them.
package objects

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Ref identifies a pod to the caller, and in documents.
type Ref struct {
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       types.UID `json:"uid,omitempty"`
}

// OptOut is the pod's own setting about being preempted (law 1).
type OptOut uint8

// Unsaid: the PriorityClass decides. No: the pod may be preempted. Yes: avoid preempting
// it.
const (
	OptOutUnsaid OptOut = iota
	OptOutNo
	OptOutYes
)

// Pod is the content of a pod event.
type Pod struct {
	Identity
	Spec
	Status
	// Request is what the pod requests, pods: 1 included. A resize changes it. Uncounted
	// is set by the store: the request in resource types that do not count (see
	// cache.ResourceTypes). It is not part of Request. Both are empty for a pod without requests.
	Request, Uncounted resources.Vector
}

// Identity is what names a pod, and what it belongs to.
type Identity struct {
	UID             types.UID
	Namespace, Name string
	// Labels and Annotations are read-only, because records of the pod share them. They
	// are nil for none.
	Labels, Annotations map[string]string
	// Created has whole seconds, as the API server stores it.
	Created time.Time
	// Owners are the UIDs of the pods that own it; nil for none.
	Owners []types.UID
	// Controller is the UID of the controller that would replace the pod; empty for none.
	Controller types.UID
}

// Spec is how a pod is scheduled and preempted. It is the same for the life of most pods.
// An annotation can change OptOut and Originator, and a DaemonSet that is created or
// deleted changes RequiredNode and MaybeDaemon. Specs are compared with ==.
type Spec struct {
	// Priority is the value of the pod's PriorityClass; 0 without one.
	Priority int32
	// Foreign is true for a pod of another scheduler. It uses its node and belongs to no
	// queue.
	Foreign bool
	// Peer is true for a foreign pod of a profile of this process that preempts for
	// DaemonSet pods. Such DaemonSet pods may be askers, and all Peer pods may be
	// their victims (D4).
	Peer bool
	// Static is true for a pod of another scheduler that belongs to its node: a mirror
	// pod, or one that the node owns.
	Static bool
	// NeverPreempts is true for a pod with preemptionPolicy Never.
	NeverPreempts bool
	// MaybeDaemon is true for a pod that names a DaemonSet as its owner while DaemonSets
	// cannot be read. It is never a victim, and does not preempt as a DaemonSet pod.
	MaybeDaemon bool
	// OptOut is the pod's own setting about being preempted.
	OptOut OptOut
	// Originator is the pod's own setting about being an originator of its application.
	Originator Originator
	// Scheduler is the name of a foreign pod's scheduler; empty for other pods.
	Scheduler string
	// RequiredNode is the only node a DaemonSet pod can run on; empty for others.
	RequiredNode string
	// Class is the name of the pod's PriorityClass; empty for none.
	Class string
	// Grace is the pod's own terminationGracePeriod, in whole seconds; zero for none.
	Grace time.Duration
}

// Status is what changes in the life of a pod, from its gates to its end.
type Status struct {
	// Gated is true while the pod has scheduling gates of its own.
	Gated bool
	// Deleting is true once the pod has a deletion timestamp.
	Deleting bool
	// Preempted is true once a scheduler has marked the pod as preempted, except when it was
	// preempted for a DaemonSet pod of the same namespace or queue.
	Preempted bool
	// Terminal is true once the pod succeeded or failed. It then uses nothing.
	Terminal bool
	// Health is how the disruption budgets that cover the pod count it.
	Health Health
	// Demand is what the condition PodScheduled of a pending pod tells autoscalers.
	Demand DemandSaid
	// Node is the name of the pod's node, empty while it is pending.
	Node string
	// LeftNomination is the node to which a foreign pod was nominated, in the event that shows it
	// bound to another one; empty otherwise.
	LeftNomination string
	// Scheduled is when the pod was bound; zero if it is not bound or the time is
	// unknown.
	Scheduled time.Time
	// DeletionGrace is the grace period that its deletion gave it, in whole seconds; zero
	// before.
	DeletionGrace time.Duration
	// GoneBy is when its grace period ends; zero while it is not deleted.
	GoneBy time.Time
	// Claim is the node that the pod holds according to its condition; nil for none.
	Claim *reservations.Claim
	// Told is the reason last reported to users for the pod's waiting, by this process or
	// an earlier one, and not withdrawn; empty for none.
	Told reasons.Code
}

// MaxRequest is the largest amount of a type that a pod is charged and a node offers:
// 70 TB of memory, or 70 billion cores. With larger amounts, sums over all pods or nodes
// of a cluster could overflow int64, and subtraction would not restore them.
const MaxRequest resources.Amount = 1 << 46

// Normalize caps the request at what the accounting can hold (MaxRequest).
func (p *Pod) Normalize() { p.Request = p.Request.Cap(MaxRequest) }

// Ref names the pod.
func (p *Pod) Ref() Ref { return Ref{UID: p.UID, Namespace: p.Namespace, Name: p.Name} }

// Originator is a pod's own setting about being an originator.
type Originator uint8

// OriginatorYes and OriginatorNo come from an annotation. OriginatorByRole is a pod that
// a known controller gave the role of a driver or master.
const (
	OriginatorUnsaid Originator = iota
	OriginatorNo
	OriginatorByRole
	OriginatorYes
)

// Health is how the disruption budgets that cover a pod count it.
type Health uint8

// NotStarted is a pod in phase Pending: budgets neither count nor guard it. Unready runs
// and is not ready: no budget counts it as healthy.
const (
	NotStarted Health = iota
	Unready
	Ready
)

// DemandSaid is what the condition PodScheduled of a pod tells cluster autoscalers.
type DemandSaid uint8

// Unsaid: no node was looked for yet, or something else prevents the pod from running.
// Wanted: the reason is Unschedulable, by which autoscalers add nodes. Beyond: the reason
// is SchedulingGated, and the message has BeyondMessage. Other: it has another reason, such
// as SchedulerError, or that reason with another message: the API server wrote it, or two
// cycles one after the other.
const (
	DemandUnsaid DemandSaid = iota
	DemandWanted
	DemandBeyond
	DemandOther
)

// BeyondMessage is in each message that this scheduler writes with reason SchedulingGated.
// The API server writes that reason without it when a pod is made with scheduling gates,
// and the condition stays when the gates are removed.
const BeyondMessage = "no node is asked for: "
