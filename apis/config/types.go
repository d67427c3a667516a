package config

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PodOptOutPolicy says whether a pod may choose for itself whether it is
// opted out of preemption.
type PodOptOutPolicy string

const (
	// PodOptOutHonor lets the pod's own annotation or label override what its
	// PriorityClass says.
	PodOptOutHonor PodOptOutPolicy = "Honor"
	// PodOptOutIgnore makes only the PriorityClass count.
	PodOptOutIgnore PodOptOutPolicy = "Ignore"
)

// HoldTaint says whether held nodes get a taint that other schedulers see.
type HoldTaint string

const (
	// HoldTaintAuto is on where no profile of the process is default-scheduler.
	HoldTaintAuto HoldTaint = "Auto"
	// HoldTaintAlways is on, and no room is made where a taint is refused.
	HoldTaintAlways HoldTaint = "Always"
	// HoldTaintNever is off.
	HoldTaintNever HoldTaint = "Never"
)

// DaemonSetOwner says which pods are pods of DaemonSets.
type DaemonSetOwner string

const (
	// DaemonSetOwnerVerified are pods with a DaemonSet as owner that is there.
	DaemonSetOwnerVerified DaemonSetOwner = "Verified"
	// DaemonSetOwnerClaimed are pods that name an owner of that kind.
	DaemonSetOwnerClaimed DaemonSetOwner = "Claimed"
)

// ClassOrder is the order in which the classes of victims of a DaemonSet pod
// are tried.
type ClassOrder string

const (
	// ClassOrderSeed is regular, originator, opted out.
	ClassOrderSeed ClassOrder = "Seed"
	// ClassOrderYuniKorn is regular, opted out, originator.
	ClassOrderYuniKorn ClassOrder = "YuniKorn"
)

// VictimSelection is one way to choose the victims of a DaemonSet pod.
type VictimSelection string

const (
	// VictimSelectionSingle looks for one victim that covers the need.
	VictimSelectionSingle VictimSelection = "single"
	// VictimSelectionMultiple adds victims until the need is covered.
	VictimSelectionMultiple VictimSelection = "multiple"
)

// RESTAuthorization says which clients may read from the REST interface.
type RESTAuthorization string

const (
	// RESTAuthorizationNone lets every client read that reaches it.
	RESTAuthorizationNone RESTAuthorization = "None"
	// RESTAuthorizationDelegated asks the API server for a client's identity and
	// permissions.
	RESTAuthorizationDelegated RESTAuthorization = "Delegated"
)

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// QueueSortArgs configure the QueueSort plugin and the queue store that all
// plugins and profiles of the process share. Defaults and bounds are with the
// fields of the external type in package v1.
type QueueSortArgs struct {
	metav1.TypeMeta

	// ConfigNamespace is the namespace of the ConfigMaps with the queues. Empty
	// means what EffectiveConfigNamespace answers.
	ConfigNamespace string
	// ConfigFile is the path of a queues.yaml read instead of the ConfigMaps.
	// Empty means the ConfigMaps.
	ConfigFile string
	// ManagedProfiles are the values of spec.schedulerName of pods that belong to queues.
	// Never empty.
	ManagedProfiles []string
	// Window is the number of managed pods let into the scheduling queue at
	// once, in pods.
	Window int32
	// MaxWindow is what the window may grow to, in pods.
	MaxWindow int32
	// MetricsQueues is how many queues have series of their own on /metrics; 0 is
	// none.
	MetricsQueues int32
	// MaxDynamicQueues and MaxDynamicQueuesPerNamespace bound the queues that rules make;
	// 0 is no bound.
	MaxDynamicQueues, MaxDynamicQueuesPerNamespace int32
	// SlotLease is how long an admitted pod keeps its place in the window.
	SlotLease metav1.Duration
	// GenerateUniqueAppID gives pods without an application one of their own
	// instead of one for the namespace.
	GenerateUniqueAppID bool
	// DaemonSetOwner says which pods are pods of DaemonSets.
	DaemonSetOwner DaemonSetOwner
	// PodInitialBackoff is the wait after the first failed attempt.
	PodInitialBackoff metav1.Duration
	// PodMaxBackoff is the longest wait after failed attempts.
	PodMaxBackoff metav1.Duration
	// RESTAddress is where the REST interface listens. Empty means nowhere.
	RESTAddress string
	// RESTHosts are further names under which clients may ask for it.
	RESTHosts []string
	// RESTTLSCertFile and RESTTLSKeyFile are the paths of its certificate and key.
	// Empty means plain HTTP, or a certificate of its own with Delegated.
	RESTTLSCertFile, RESTTLSKeyFile string
	// RESTAuthorization says which clients may read from it.
	RESTAuthorization RESTAuthorization
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// QueuePreemptionArgs configure the QueuePreemption plugin. Defaults and bounds
// are with the fields of the external type in package v1.
type QueuePreemptionArgs struct {
	metav1.TypeMeta

	// RetryInterval is the wait before a refused asker is planned for again.
	RetryInterval metav1.Duration
	// Round is the period that MaxVictimsPerRound counts in.
	Round metav1.Duration
	// MaxVictimsPerRound bounds the victims of a round, in pods, cluster-wide.
	// Zero means no bound.
	MaxVictimsPerRound int32
	// StrictGuarantee lets a queue ask only up to its guarantee, not once over
	// the line.
	StrictGuarantee bool
	// PodOptOut says whether a pod may override its PriorityClass's opt-out.
	PodOptOut PodOptOutPolicy
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeReservationArgs configure the NodeReservation plugin. Defaults and bounds
// are with the fields of the external type in package v1.
type NodeReservationArgs struct {
	metav1.TypeMeta

	// ReservationTimeout is how long a hold lasts after its last victim is gone.
	ReservationTimeout metav1.Duration
	// MaxVictimGrace bounds the grace period of victims. Nil means their own.
	MaxVictimGrace *metav1.Duration
	// PreemptionStartDelay is the age a DaemonSet pod's hold must reach before
	// pods are preempted for it. Zero means at once.
	PreemptionStartDelay metav1.Duration
	// ClassOrder is the order of the classes of victims.
	ClassOrder ClassOrder
	// VictimSelection are the ways to choose victims, each tried only when the
	// one before found nothing. Never empty.
	VictimSelection []VictimSelection
	// SingleDeviationPercent bounds how far a single victim may exceed the
	// request, in percent of the request. Nil means no bound.
	SingleDeviationPercent *int32
	// MaxVictims bounds the victims of one hold, in pods. Nil means no bound.
	MaxVictims *int32
	// DaemonSetNamespaces are the namespaces in which DaemonSets may take guaranteed room.
	// Empty means all.
	DaemonSetNamespaces []string
	// PreemptForeign allows pods of other schedulers as victims, after all
	// other classes.
	PreemptForeign bool
	// HoldTaint says whether held nodes get a taint that other schedulers see.
	HoldTaint HoldTaint
}
