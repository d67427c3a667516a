package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
	schedconfigv1 "k8s.io/kube-scheduler/config/v1"
)

// SchemeGroupVersion is the version v1 of upstream's group, in which the plugin
// arguments are registered.
var SchemeGroupVersion = schedconfigv1.SchemeGroupVersion

// The generated functions register themselves here too.
var localSchemeBuilder = &schedconfigv1.SchemeBuilder

// AddToScheme adds upstream's v1 types and those of this package, with their
// defaults and conversions, to a scheme.
var AddToScheme = localSchemeBuilder.AddToScheme

func init() {
	localSchemeBuilder.Register(addKnownTypes, RegisterDefaults)
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&QueueSortArgs{},
		&QueuePreemptionArgs{},
		&NodeReservationArgs{},
	)
	return nil
}
