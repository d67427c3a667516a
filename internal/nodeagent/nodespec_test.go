package nodeagent

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestNodeSpec(t *testing.T) {
	node := expect.Get(NodeSpec{NamePrefix: "gpu", CPU: "16", Extended: map[string]string{"example.com/gpu": "4"}, Labels: map[string]string{"pool": "a"}, Zones: 2}.Node(5))(t)
	gpus := node.Status.Allocatable["example.com/gpu"]
	if node.Name != "gpu-0005" || node.Status.Allocatable.Cpu().Value() != 16 || gpus.Value() != 4 || node.Status.Allocatable.Memory().String() != "32Gi" {
		t.Errorf("unexpected node %s with %v", node.Name, node.Status.Allocatable)
	}
	for key, want := range map[string]string{
		corev1.LabelHostname: "gpu-0005", corev1.LabelTopologyZone: "z1", "pool": "a", LabelNode: LabelNodeValue,
	} {
		expect.Same(t, "label "+key, want, node.Labels[key])
	}
}

func TestNodeSpecErrorsNameTheField(t *testing.T) {
	for want, spec := range map[string]NodeSpec{
		"memory":          {Memory: "lots"},
		"example.com/gpu": {Extended: map[string]string{"example.com/gpu": "x"}},
	} {
		expect.Refused(spec.Node(0))(t, want)
	}
}

func TestAddressesAreUnique(t *testing.T) {
	a := &Agent{}
	seen := map[string]bool{}
	for range 600 {
		ip := a.address()
		if seen[ip] || !strings.HasPrefix(ip, "10.128.") {
			t.Fatalf("address %s", ip)
		}
		seen[ip] = true
	}
	if a.addresses.Store(1<<23 - 2); a.address() != "10.255.255.255" || a.address() != "10.128.0.0" {
		t.Error("the range is not used in a circle")
	}
}
