package objects

// Budget is the part of a PodDisruptionBudget that matters for the choice of victims.
type Budget struct {
	Namespace, Name string
	// Generation changes with the spec; 0 for unknown. Observed is the generation that
	// the status describes.
	Generation, Observed int64
	// Matches tells whether the budget covers pods with such labels; nil covers no pod.
	Matches func(labels map[string]string) bool
	// Allowed is the number of disruptions that the status allows, Healthy the healthy
	// pods according to it, and Desired the healthy pods that are required.
	Allowed, Healthy, Desired int64
	// AlwaysAllow is unhealthyPodEvictionPolicy AlwaysAllow.
	AlwaysAllow bool
	// DisruptedPods has the names of the disrupted pods that the status already includes.
	DisruptedPods map[string]bool
}
