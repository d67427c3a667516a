package karpenter

import (
	"encoding/json"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/karpenter/pkg/utils/pod"
)

// TestNodesAreAddedForPodsWithinQuotas: Karpenter adds nodes for as many pods as max, limits
// of users and maxapplications let run.
func TestNodesAreAddedForPodsWithinQuotas(t *testing.T) {
	text, err := os.ReadFile("../framework/testdata/autoscalers.json")
	if err != nil {
		t.Fatal(err)
	}
	var seen map[string][]struct {
		Pods int
		Each corev1.Pod
	}
	if err := json.Unmarshal(text, &seen); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{
		"max 10 and 40 pods of 1":                 10,
		"max 10 lowered to 3 and 40 pods of 1":    3,
		"max 10 raised to 20 and 40 pods of 1":    20,
		"user limit 4 and ten pods of 3":          1,
		"maxapplications 1 and five applications": 1,
		"200 pods without a quota":                200,
	}
	for name, alike := range seen {
		provisionable, all := 0, 0
		for i := range alike {
			all += alike[i].Pods
			if pod.IsProvisionable(&alike[i].Each) {
				provisionable += alike[i].Pods
			}
		}
		if provisionable != want[name] {
			t.Errorf("%s: Karpenter adds nodes for %d of %d pods, want %d", name, provisionable, all, want[name])
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("%s: there are no such pods in the file", name)
	}
}
