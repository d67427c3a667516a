package informer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// indexLabels number the pods of a controller. Only a selector on such a label
// distinguishes these pods; if the label counted, each pod would be an equivalence class
// of its own.
var indexLabels = map[string]bool{
	"batch.kubernetes.io/job-completion-index": true,
	"apps.kubernetes.io/pod-index":             true,
	"statefulset.kubernetes.io/pod-name":       true,
	"spark-exec-id":                            true,
}

// EquivalenceClass returns a hash of what filters read of a pending pod: two pods of one
// class that are tried at the same time get the same answer. Namespace, labels, controller
// and images count. Names of pod and host, annotations, index labels, and commands,
// variables and volume mounts of containers do not. Volumes that no filter looks at do not
// either: emptyDir, configMap, secret, downwardAPI, projected, hostPath. It is "" for a pod
// that is a class of its own: it has resource claims or ephemeral volumes.
func EquivalenceClass(pod *corev1.Pod) string {
	if len(pod.Spec.ResourceClaims) > 0 {
		return ""
	}
	spec := pod.Spec
	spec.Hostname = ""
	spec.Volumes = nil
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		switch {
		case v.Ephemeral != nil:
			return ""
		case v.EmptyDir == nil && v.ConfigMap == nil && v.Secret == nil && v.DownwardAPI == nil && v.Projected == nil && v.HostPath == nil:
			spec.Volumes = append(spec.Volumes, *v)
		}
	}
	spec.Containers, spec.InitContainers = bare(spec.Containers), bare(spec.InitContainers)
	encoded, err := spec.Marshal()
	if err != nil {
		return ""
	}
	sum := sha256.New()
	write(sum, pod.Namespace)
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		write(sum, string(owner.UID))
	}
	for _, k := range slices.Sorted(maps.Keys(pod.Labels)) {
		if !indexLabels[k] {
			write(sum, k)
			write(sum, pod.Labels[k])
		}
	}
	write(sum, string(encoded))
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// bare returns what a filter may read of containers, without commands, variables and mounts.
func bare(containers []corev1.Container) []corev1.Container {
	out := make([]corev1.Container, len(containers))
	for i, c := range containers {
		out[i] = corev1.Container{
			Name: c.Name, Image: c.Image, Resources: c.Resources, Ports: c.Ports,
			RestartPolicy: c.RestartPolicy, SecurityContext: c.SecurityContext,
		}
	}
	return out
}

// write adds a string with its length, so that strings are separate.
func write(sum hash.Hash, s string) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(s)))
	sum.Write(length[:]) // a hash never fails to write
	sum.Write([]byte(s))
}
