package config

import (
	"k8s.io/apimachinery/pkg/runtime"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// SchemeGroupVersion is the internal version of upstream's group, in which the
// plugin arguments are registered.
var SchemeGroupVersion = schedconfig.SchemeGroupVersion

var localSchemeBuilder = &schedconfig.SchemeBuilder

// AddToScheme adds upstream's internal types and those of this package to a
// scheme.
var AddToScheme = localSchemeBuilder.AddToScheme

func init() {
	localSchemeBuilder.Register(addKnownTypes)
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion,
		&QueueSortArgs{},
		&QueuePreemptionArgs{},
		&NodeReservationArgs{},
	)
	return nil
}
