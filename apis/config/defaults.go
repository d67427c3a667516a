package config

import (
	"cmp"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SetDefaults fills the fields that are left out. ConfigNamespace stays empty: it
// depends on the process, see EffectiveConfigNamespace.
func (in *QueueSortArgs) SetDefaults() {
	if in.ManagedProfiles == nil {
		in.ManagedProfiles = []string{"yunikorn"}
	}
	setDefault(&in.Window, 4)
	setDefault(&in.MaxWindow, max(1024, *in.Window))
	setDefault(&in.MetricsQueues, 1000)
	setDefault(&in.MaxDynamicQueues, 1000)
	setDefault(&in.MaxDynamicQueuesPerNamespace, 100)
	setDefault(&in.SlotLease, metav1.Duration{Duration: 30 * time.Second})
	in.DaemonSetOwner = cmp.Or(in.DaemonSetOwner, DaemonSetOwnerVerified)
	setDefault(&in.PodInitialBackoff, metav1.Duration{Duration: time.Second})
	setDefault(&in.PodMaxBackoff, metav1.Duration{Duration: 10 * time.Second})
	setDefault(&in.RESTAddress, "127.0.0.1:9080")
	in.RESTAuthorization = cmp.Or(in.RESTAuthorization, RESTAuthorizationNone)
}

// SetDefaults fills the fields that are left out.
func (in *QueuePreemptionArgs) SetDefaults() {
	setDefault(&in.RetryInterval, metav1.Duration{Duration: 15 * time.Second})
	setDefault(&in.Round, metav1.Duration{Duration: time.Second})
	in.PodOptOut = cmp.Or(in.PodOptOut, PodOptOutHonor)
}

// SetDefaults fills the fields that are left out. Those without a bound stay nil.
func (in *NodeReservationArgs) SetDefaults() {
	setDefault(&in.ReservationTimeout, metav1.Duration{Duration: 10 * time.Minute})
	in.ClassOrder = cmp.Or(in.ClassOrder, ClassOrderSeed)
	if in.VictimSelection == nil {
		in.VictimSelection = []VictimSelection{VictimSelectionMultiple}
	}
	in.HoldTaint = cmp.Or(in.HoldTaint, HoldTaintAuto)
}

// setDefault points field at value unless it points at something already.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
