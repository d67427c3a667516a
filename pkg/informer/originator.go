package informer

import (
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
)

// OriginatorAnnotation is the annotation of a pod that says whether it is an originator
// of its application.
const OriginatorAnnotation = "paddock.io/originator"

// Role is a label by which a controller marks a pod without which an application cannot
// run.
type Role struct{ Of, Label, Value string }

// Roles are the roles that make a pod an originator. Labels with other uses, such as
// Flink's component, are not included.
var Roles = []Role{
	{"Spark: driver", "spark-role", "driver"},
	{"Ray: head", "ray.io/node-type", "head"},
	{"Kubeflow Training Operator: master", "training.kubeflow.org/job-role", "master"},
	{"Kubeflow MPI Operator: launcher", "training.kubeflow.org/job-role", "launcher"},
	{"Kubeflow Training Operator: master", "training.kubeflow.org/replica-type", "master"},
	{"Kubeflow Training Operator: launcher", "training.kubeflow.org/replica-type", "launcher"},
	{"Kubeflow Training Operator: chief", "training.kubeflow.org/replica-type", "chief"},
	{"LeaderWorkerSet: leader", "leaderworkerset.sigs.k8s.io/worker-index", "0"},
	{"Dask: scheduler", "dask.org/component", "scheduler"},
}

// Coordinator is the label that JobSet puts on all pods of a set with spec.coordinator.
// Its value is the host name of one of the pods, and their domain.
const Coordinator = "jobset.sigs.k8s.io/coordinator"

// originator returns the value of the pod's annotation, otherwise whether its role makes
// it one. As with AllowPreemption, words other than "true" and "false" are ignored.
func originator(pod *corev1.Pod) objects.Originator {
	switch pod.Annotations[OriginatorAnnotation] {
	case "true":
		return objects.OriginatorYes
	case "false":
		return objects.OriginatorNo
	}
	for i := range Roles {
		if pod.Labels[Roles[i].Label] == Roles[i].Value {
			return objects.OriginatorByRole
		}
	}
	if host, _, _ := strings.Cut(pod.Labels[Coordinator], "."); host != "" && host == pod.Spec.Hostname {
		return objects.OriginatorByRole
	}
	return objects.OriginatorUnsaid
}
