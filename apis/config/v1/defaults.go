package v1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	defaultManagedProfile = "yunikorn"
	defaultRESTAddress    = "127.0.0.1:9080"

	defaultWindow    int32 = 4
	defaultMaxWindow int32 = 1024

	defaultMetricsQueues int32 = 1000

	defaultMaxDynamicQueues             int32 = 1000
	defaultMaxDynamicQueuesPerNamespace int32 = 100

	defaultSlotLease         = 30 * time.Second
	defaultPodInitialBackoff = time.Second
	defaultPodMaxBackoff     = 10 * time.Second

	defaultRetryInterval = 15 * time.Second
	defaultRound         = time.Second

	defaultReservationTimeout = 10 * time.Minute
)

// SetDefaults_QueueSortArgs fills the fields that are left out. ConfigNamespace
// stays empty: it depends on the process, see EffectiveConfigNamespace of the
// internal type.
func SetDefaults_QueueSortArgs(args *QueueSortArgs) {
	setDefault(&args.ConfigNamespace, "")
	setDefault(&args.ConfigFile, "")
	if args.ManagedProfiles == nil {
		args.ManagedProfiles = []string{defaultManagedProfile}
	}
	setDefault(&args.Window, defaultWindow)
	setDefault(&args.MaxWindow, max(defaultMaxWindow, *args.Window))
	setDefault(&args.MetricsQueues, defaultMetricsQueues)
	setDefault(&args.MaxDynamicQueues, defaultMaxDynamicQueues)
	setDefault(&args.MaxDynamicQueuesPerNamespace, defaultMaxDynamicQueuesPerNamespace)
	setDefault(&args.SlotLease, metav1.Duration{Duration: defaultSlotLease})
	setDefault(&args.GenerateUniqueAppID, false)
	if args.DaemonSetOwner == "" {
		args.DaemonSetOwner = DaemonSetOwnerVerified
	}
	setDefault(&args.PodInitialBackoff, metav1.Duration{Duration: defaultPodInitialBackoff})
	setDefault(&args.PodMaxBackoff, metav1.Duration{Duration: defaultPodMaxBackoff})
	setDefault(&args.RESTAddress, defaultRESTAddress)
	setDefault(&args.RESTTLSCertFile, "")
	setDefault(&args.RESTTLSKeyFile, "")
	if args.RESTAuthorization == "" {
		args.RESTAuthorization = RESTAuthorizationNone
	}
}

// SetDefaults_QueuePreemptionArgs fills the fields that are left out.
func SetDefaults_QueuePreemptionArgs(args *QueuePreemptionArgs) {
	setDefault(&args.RetryInterval, metav1.Duration{Duration: defaultRetryInterval})
	setDefault(&args.Round, metav1.Duration{Duration: defaultRound})
	setDefault(&args.MaxVictimsPerRound, 0)
	setDefault(&args.StrictGuarantee, false)
	if args.PodOptOut == "" {
		args.PodOptOut = PodOptOutHonor
	}
}

// SetDefaults_NodeReservationArgs fills the fields that are left out. Those
// without a bound stay nil.
func SetDefaults_NodeReservationArgs(args *NodeReservationArgs) {
	setDefault(&args.ReservationTimeout, metav1.Duration{Duration: defaultReservationTimeout})
	setDefault(&args.PreemptionStartDelay, metav1.Duration{})
	if args.ClassOrder == "" {
		args.ClassOrder = ClassOrderSeed
	}
	if args.VictimSelection == nil {
		args.VictimSelection = []VictimSelection{VictimSelectionMultiple}
	}
	setDefault(&args.PreemptForeign, false)
	if args.HoldTaint == "" {
		args.HoldTaint = HoldTaintAuto
	}
}

// setDefault points field at value unless it points at something already.
func setDefault[T any](field **T, value T) {
	if *field == nil {
		*field = &value
	}
}
