package nodeagent

import (
	"cmp"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeSpec describes simulated nodes of one kind. The zero value means 8 cores, 32 GiB of
// memory, 110 pods. All nodes have 200 GiB of ephemeral storage and are spread over 3 zones.
type NodeSpec struct {
	// NamePrefix starts the node names; names are NamePrefix-0000 and so on. Empty means "node".
	NamePrefix string
	// CPU and Memory are Kubernetes quantities ("8", "32Gi"). Empty means the default.
	CPU, Memory string
	// Pods is the maximum number of pods; 0 means the default.
	Pods int64
	// Extended lists extended resources by name, as quantities ("4"). Empty means none.
	Extended map[string]string
	// Labels are added to the standard ones and win over them.
	Labels map[string]string
}

func (s NodeSpec) withDefaults() NodeSpec {
	s.NamePrefix, s.Pods = cmp.Or(s.NamePrefix, "node"), cmp.Or(s.Pods, 110)
	s.CPU, s.Memory = cmp.Or(s.CPU, "8"), cmp.Or(s.Memory, "32Gi")
	return s
}

// Name returns the name of the node with this index.
func (s NodeSpec) Name(index int) string {
	return fmt.Sprintf("%s-%04d", s.withDefaults().NamePrefix, index)
}

// Node returns the Node object with this index, ready to be created. The error names the
// field with a quantity that cannot be parsed.
func (s NodeSpec) Node(index int) (*corev1.Node, error) {
	s = s.withDefaults()
	capacity, err := s.capacity()
	if err != nil {
		return nil, err
	}
	name := s.Name(index)
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelInstanceTypeStable: "simulated",
		corev1.LabelTopologyRegion: "r1", corev1.LabelTopologyZone: fmt.Sprintf("z%d", index%3),
	}
	maps.Copy(labels, s.Labels)
	labels[LabelNode] = LabelNodeValue
	return &corev1.Node{
		// The ttl annotation is the one that the ttl controller would write; this saves
		// one update per node.
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0"}},
		Status:     corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}, nil
}

func (s NodeSpec) capacity() (corev1.ResourceList, error) {
	out := corev1.ResourceList{corev1.ResourcePods: *resource.NewQuantity(s.Pods, resource.DecimalSI)}
	texts := map[string]string{
		string(corev1.ResourceCPU):              s.CPU,
		string(corev1.ResourceMemory):           s.Memory,
		string(corev1.ResourceEphemeralStorage): "200Gi",
	}
	maps.Copy(texts, s.Extended)
	for name, text := range texts {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			return nil, fmt.Errorf("node spec: resource %s: %q is not a quantity: %w", name, text, err)
		}
		out[corev1.ResourceName(name)] = q
	}
	return out, nil
}
