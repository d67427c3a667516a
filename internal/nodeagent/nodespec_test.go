package nodeagent

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestNodeSpec(t *testing.T) {
	node, err := NodeSpec{NamePrefix: "gpu", CPU: "16", Extended: map[string]string{"example.com/gpu": "4"}, Labels: map[string]string{"pool": "a"}, Zones: 2}.Node(5)
	if err != nil {
		t.Fatal(err)
	}
	gpus := node.Status.Allocatable["example.com/gpu"]
	if node.Name != "gpu-0005" || node.Status.Allocatable.Cpu().Value() != 16 || gpus.Value() != 4 || node.Status.Allocatable.Memory().String() != "32Gi" {
		t.Errorf("unexpected node %s with %v", node.Name, node.Status.Allocatable)
	}
	for key, want := range map[string]string{
		corev1.LabelHostname: "gpu-0005", corev1.LabelTopologyZone: "z1", "pool": "a", LabelNode: LabelNodeValue,
	} {
		if node.Labels[key] != want {
			t.Errorf("label %s is %q, want %q", key, node.Labels[key], want)
		}
	}
}

func TestNodeSpecErrorsNameTheField(t *testing.T) {
	for want, spec := range map[string]NodeSpec{
		"memory":          {Memory: "lots"},
		"example.com/gpu": {Extended: map[string]string{"example.com/gpu": "x"}},
		"pods":            {Pods: -1},
	} {
		if _, err := spec.Node(0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error that names %s", err, want)
		}
	}
}

func TestAddressesAreUniqueAndReused(t *testing.T) {
	p := newAddressPool()
	p.adopt("old", "10.128.0.2")
	p.adopt("bad", "not an address")
	seen := map[string]types.UID{"10.128.0.2": "old"}
	for i := range 600 {
		uid := types.UID(fmt.Sprint(i))
		ip := p.claim(uid)
		if other, used := seen[ip]; used {
			t.Fatalf("pods %s and %s have both %s", other, uid, ip)
		}
		if strings.HasSuffix(ip, ".0") || strings.HasSuffix(ip, ".255") {
			t.Errorf("%s looks like a network address", ip)
		}
		if p.claim(uid) != ip {
			t.Errorf("pod %s got another address the second time", uid)
		}
		seen[ip] = uid
	}
	if p.claim("old") != "10.128.0.2" {
		t.Error("an adopted address was not kept")
	}
	p.release("old")
	p.next = 2
	if p.claim("new") != "10.128.0.2" {
		t.Error("a released address was not given out again")
	}
}
