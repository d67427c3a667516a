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
	// DaemonSetOwnerVerified are pods with a DaemonSet as controller that is there.
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

// QueueSortArgs configure the QueueSort plugin and with it the queue store that
// all plugins and profiles of the process share. They must be equal in all
// profiles; the scheduler refuses to start otherwise.
type QueueSortArgs struct {
	metav1.TypeMeta `json:",inline"`

	// ConfigNamespace is the namespace of the ConfigMaps yunikorn-defaults and
	// yunikorn-configs. Default: the value of the environment variable
	// POD_NAMESPACE, else "yunikorn". Bounds: the name of a namespace; left out if
	// configFile is set.
	ConfigNamespace string `json:"configNamespace"`

	// ConfigFile is the path of a queues.yaml that is read instead of the
	// ConfigMaps; relative to the working directory unless absolute. Default:
	// none, the ConfigMaps are read. Bounds: not beside configNamespace.
	ConfigFile string `json:"configFile"`

	// ManagedProfiles are the values of spec.schedulerName of pods that belong to queues;
	// pods of all other schedulers are foreign. Default: [yunikorn]. Bounds: at least
	// one, no duplicates.
	ManagedProfiles []string `json:"managedProfiles"`

	// Window is the number of managed pods let into the scheduling queue at
	// once, in pods. A small window follows changes of usage closely, a large
	// one hides the latency of letting the next pod in. Default: 4. Bounds: 1 to
	// maxWindow.
	Window *int32 `json:"window,omitempty"`

	// MaxWindow is what the window doubles up to while pods keep being placed,
	// in pods. Default: 1024, or window if that is larger. Bounds: window to
	// 65536.
	MaxWindow *int32 `json:"maxWindow,omitempty"`

	// MetricsQueues is how many queues have series of their own on /metrics, about
	// fourteen each; those nearest to root come first, and the others are in the
	// numbers of a queue above them. 0 is none. Default: 1000. Bounds: 0 to 100000.
	MetricsQueues *int32 `json:"metricsQueues,omitempty"`

	// MaxDynamicQueues is how many queues rules with create: true make at most, parents of
	// others included. A pod that needs one more waits with reason TooManyQueues, unless
	// it has a node already: then it is charged to root.@recovery@. Default: 1000. Bounds: at
	// least 0, where 0 is no bound.
	MaxDynamicQueues *int32 `json:"maxDynamicQueues,omitempty"`

	// MaxDynamicQueuesPerNamespace bounds them for the pods of one namespace: a queue
	// counts for the namespace of its first pod. Default: 100. Bounds: at least 0, where 0
	// is no bound.
	MaxDynamicQueuesPerNamespace *int32 `json:"maxDynamicQueuesPerNamespace,omitempty"`

	// SlotLease is how long an admitted pod keeps its place in the window
	// without being attempted, as a duration; each place that is taken before
	// adds a hundredth. It is the safety net against a lost wake-up. With 1,024 places 30s
	// are 5.6 minutes. Default: 30s. Bounds: 100ms to 1h.
	SlotLease *metav1.Duration `json:"slotLease,omitempty"`

	// GenerateUniqueAppID gives every pod that names no application one of its
	// own. Default: false, such pods of a namespace that name the same queue share
	// one.
	GenerateUniqueAppID bool `json:"generateUniqueAppId"`

	// DaemonSetOwner says which pods are pods of DaemonSets. Room is made for these on their
	// node, and they are not preempted until they are deleted. Verified: a DaemonSet of
	// apps/v1 with the name and UID of the pod's controller exists in its namespace and is
	// not being deleted. This needs the right to list and watch daemonsets. Claimed: an owner
	// of the pod has kind DaemonSet, as with YuniKorn. Every user that may make pods can
	// write such an owner and so take room of queues with a guarantee, so Claimed is for
	// clusters of one tenant. With Claimed a hold ends with its pod, and not with the DaemonSet. Default: Verified.
	// Bounds: Verified or Claimed.
	DaemonSetOwner DaemonSetOwner `json:"daemonSetOwner,omitempty"`

	// PodInitialBackoff is the wait of a managed pod after its first failed
	// attempt, as a duration. Must equal podInitialBackoffSeconds of the
	// KubeSchedulerConfiguration, or the store would offer pods that upstream
	// still holds back. Default: 1s. Bounds: whole seconds, at least 0s (none).
	PodInitialBackoff *metav1.Duration `json:"podInitialBackoff,omitempty"`

	// PodMaxBackoff is the longest wait of a managed pod after failed attempts,
	// as a duration; the wait doubles up to it. Must equal podMaxBackoffSeconds
	// of the KubeSchedulerConfiguration. Default: 10s. Bounds: whole seconds,
	// at least podInitialBackoff.
	PodMaxBackoff *metav1.Duration `json:"podMaxBackoff,omitempty"`

	// RESTAddress is where the read-only REST interface listens. The empty string
	// turns it off. Default: 127.0.0.1:9080. Bounds: host:port, where no host means
	// all addresses and port 0 any free port.
	RESTAddress *string `json:"restAddress,omitempty"`

	// RESTHosts are the names under which clients may ask for the interface, beside IP
	// addresses, localhost, yunikorn-service and the host of restAddress. A request for
	// another name gets 421, because any web site can point its own name at this address.
	// A name without a dot is that of a Service in the namespace of the ConfigMaps. It also
	// stands for NAME.NAMESPACE, NAME.NAMESPACE.svc and NAME.NAMESPACE.svc.cluster.local.
	// Default: none. Bounds: names of DNS, without a port.
	RESTHosts []string `json:"restHosts,omitempty"`

	// RESTTLSCertFile is the path of a PEM certificate, with those that signed it:
	// the interface is HTTPS then. It is read again when it changes. Default: none,
	// plain HTTP; with restAuthorization Delegated HTTPS, with a certificate that the
	// scheduler signs itself when it starts. Bounds: together with restTLSKeyFile or not
	// at all.
	RESTTLSCertFile string `json:"restTLSCertFile"`

	// RESTTLSKeyFile is the path of the key of that certificate, PEM. It is read
	// again when it changes. Default: none. Bounds: together with restTLSCertFile.
	RESTTLSKeyFile string `json:"restTLSKeyFile"`

	// RESTAuthorization says which clients may read: with None all that reach the address,
	// with Delegated those with a permission in the API server. Delegated: a client sends a
	// bearer token that the API server knows, and its user may "get" the path, with /paddock
	// before it, as a nonResourceURL. The scheduler then needs the right to create
	// tokenreviews and subjectaccessreviews, and the interface is HTTPS.
	// Default: None. Bounds: None or Delegated.
	RESTAuthorization RESTAuthorization `json:"restAuthorization,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// QueuePreemptionArgs configure the QueuePreemption plugin: when and how fast
// queues take back what is theirs. Which pods may be taken is not configurable
// here but in queues.yaml. Must be the same in all profiles.
type QueuePreemptionArgs struct {
	metav1.TypeMeta `json:",inline"`

	// RetryInterval is the wait before an asker with a plan that was refused or did
	// not help is planned for again, as a duration; a change of what the
	// refusal named may bring it earlier, at most once a second. An asker that
	// lost the room made for it waits for twice as long with each loss in a row,
	// up to 64 times as long or an hour. Default: 15s. Bounds: 100ms to 24h.
	RetryInterval *metav1.Duration `json:"retryInterval,omitempty"`

	// Round is the period in which maxVictimsPerRound counts, as a duration.
	// Default: 1s. Bounds: 10ms to 1h.
	Round *metav1.Duration `json:"round,omitempty"`

	// MaxVictimsPerRound is how many pods may be preempted in a round, in the
	// whole cluster. A plan with more victims than that runs alone in an empty
	// round. Default: 0, which means no bound. Bounds: at least 0.
	MaxVictimsPerRound int32 `json:"maxVictimsPerRound"`

	// StrictGuarantee lets a queue ask for preemption only if it stays within
	// its guarantee with the asking pod added. Default: false, the asking pod
	// may carry the queue over the line once.
	StrictGuarantee bool `json:"strictGuarantee"`

	// PodOptOut says whether the annotation or label
	// yunikorn.apache.org/allow-preemption on a pod overrides the one on its
	// PriorityClass. Default: Honor. Bounds: Honor or Ignore.
	PodOptOut PodOptOutPolicy `json:"podOptOut,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// NodeReservationArgs configure the NodeReservation plugin: how long nodes are
// held and how room is made for DaemonSet pods. Must be the same in all profiles.
// Room is made for DaemonSet pods of the managed profiles, and of every other
// profile that enables QueuePreemption at PostFilter, before DefaultPreemption; pods
// of all these may be victims.
type NodeReservationArgs struct {
	metav1.TypeMeta `json:",inline"`

	// ReservationTimeout is how long a node stays held for an asker after the
	// last victim is gone, or, while victims are there, after they were told to
	// go, or, without victims, after the hold began, as a duration. No hold lasts
	// longer than twice that. Default: 10m. Bounds: 100ms to 24h.
	ReservationTimeout *metav1.Duration `json:"reservationTimeout,omitempty"`

	// MaxVictimGrace bounds the time that a preempted pod has to stop, as a
	// duration: the delete shortens a longer terminationGracePeriodSeconds of the
	// pod. A pod that was deleted with a longer grace period is not waited for, and may
	// be preempted, so do not set it below that of ordinary pods. Default: none, the
	// pod's own. Bounds: 1s to 24h, whole seconds.
	MaxVictimGrace *metav1.Duration `json:"maxVictimGrace,omitempty"`

	// PreemptionStartDelay is the age the hold of a DaemonSet pod must reach
	// before pods are preempted for it, as a duration. Default: 0s, at once.
	// Bounds: 0s to 24h.
	PreemptionStartDelay metav1.Duration `json:"preemptionStartDelay"`

	// ClassOrder is the order in which victims of a DaemonSet pod are taken:
	// Seed is regular, originator, opted out; YuniKorn is regular, opted out,
	// originator. Default: Seed. Bounds: Seed or YuniKorn.
	ClassOrder ClassOrder `json:"classOrder,omitempty"`

	// VictimSelection lists the ways to choose victims for a DaemonSet pod, in
	// order; each is tried only when the one before found nothing. Default:
	// [multiple]. Bounds: one or both of single, multiple, no duplicates.
	VictimSelection []VictimSelection `json:"victimSelection"`

	// SingleDeviationPercent bounds how far the one victim of the selection
	// "single" may differ from the request, in percent of the request. Default:
	// none, no bound. Bounds: at least 0.
	SingleDeviationPercent *int32 `json:"singleDeviationPercent,omitempty"`

	// MaxVictims bounds the victims of the selection "multiple", in pods; if
	// more would be needed, none is preempted. Default: none, no bound. Bounds:
	// at least 1.
	MaxVictims *int32 `json:"maxVictims,omitempty"`

	// DaemonSetNamespaces are the namespaces in which DaemonSets may take room that is
	// guaranteed to queues. The DaemonSet pods of other namespaces take only what queues
	// use above their guarantees: for them laws 1, 2, 5 and 7 and preemption.policy
	// disabled hold (docs/laws.md). Default: none, which means all namespaces. Bounds: names of namespaces.
	DaemonSetNamespaces []string `json:"daemonSetNamespaces,omitempty"`

	// PreemptForeign allows pods of schedulers outside this process as victims
	// of a DaemonSet pod, after all other classes; static pods never. Default:
	// false.
	PreemptForeign bool `json:"preemptForeign"`

	// HoldTaint says whether a node gets a taint (NoSchedule) while it is held and
	// pods go to make room on it, so that schedulers outside this process do not
	// take the room. Auto: nodes get it if no profile of this process is
	// default-scheduler. If the API server refuses the taint, room is made without it.
	// Always: nodes get it with any profiles. If the taint is refused, no pod is preempted.
	// So in place of kube-scheduler, Always needs the right to patch nodes, which overlay
	// replace-default does not give. Never: no node gets it. Default: Auto. Bounds: Auto, Always or Never.
	HoldTaint HoldTaint `json:"holdTaint,omitempty"`
}
