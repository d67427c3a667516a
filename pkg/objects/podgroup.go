package objects

// PodGroupLabel is the label with the name of the pod's PodGroup, in the pod's namespace.
const PodGroupLabel = "scheduling.x-k8s.io/pod-group"

// GroupOf returns the PodGroup that a pod names by its labels, as holds have it; empty for
// none.
func GroupOf(namespace string, labels map[string]string) string {
	if name := labels[PodGroupLabel]; name != "" {
		return namespace + "/" + name
	}
	return ""
}
