package config

import (
	"k8s.io/apimachinery/pkg/runtime"
	schedconfigv1 "k8s.io/kube-scheduler/config/v1"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
)

func init() {
	schedconfig.SchemeBuilder.Register(addInternal)
	schedconfigv1.SchemeBuilder.Register(addVersioned)
}

func types() []runtime.Object {
	return []runtime.Object{&QueueSortArgs{}, &QueuePreemptionArgs{}, &NodeReservationArgs{}}
}

func addInternal(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(schedconfig.SchemeGroupVersion, types()...)
	return nil
}

func addVersioned(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(schedconfigv1.SchemeGroupVersion, types()...)
	for _, t := range types() {
		scheme.AddTypeDefaultingFunc(t, func(args any) { args.(interface{ SetDefaults() }).SetDefaults() })
	}
	return nil
}
