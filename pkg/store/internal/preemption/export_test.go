package preemption

// Len is how many pods are remembered.
func (r *KubeletRejections) Len() int { return len(r.list) }
