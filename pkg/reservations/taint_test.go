package reservations

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestTaint(t *testing.T) {
	if errs := validation.IsQualifiedName(HeldTaint); len(errs) > 0 {
		t.Errorf("key: %v", errs)
	}
	// Upstream: StatusTaintPrefix of cluster-autoscaler's utils/taints.
	if want := "status-taint.cluster-autoscaler.kubernetes.io/"; !strings.HasPrefix(HeldTaint, want) {
		t.Errorf("key %s: cluster-autoscaler would give new nodes the taint, want prefix %s", HeldTaint, want)
	}
	const uid = types.UID("0f5a7d0e-5c1f-4b4e-9f77-1d0d2c1a8f10")
	if got := TaintValue(TaintOwner([]string{"yunikorn", "gold"}), uid); got != "gold."+string(uid) {
		t.Errorf("value %q", got)
	}
	profiles := []string{"yunikorn", "a.b", "a", "-x", "x-", "my scheduler", strings.Repeat("p", 60), strings.Repeat("p", 61), "", "ä"}
	seen := map[string]bool{}
	for _, profile := range profiles {
		owner := TaintOwner([]string{profile})
		if seen[owner] {
			t.Errorf("owner %q of %q is that of another profile", owner, profile)
		}
		seen[owner] = true
		for _, uid := range []types.UID{uid, "x", "", "a.b", "-", types.UID(strings.Repeat("u", 80))} {
			value := TaintValue(owner, uid)
			if errs := validation.IsValidLabelValue(value); len(errs) > 0 || value == "" {
				t.Errorf("value %q: %v", value, errs)
			}
			for _, other := range profiles {
				if own := OwnsTaint(TaintOwner([]string{other}), value); own != (other == profile) {
					t.Errorf("profile %q owns %q of profile %q: %t", other, value, profile, own)
				}
			}
		}
	}
	if OwnsTaint("yunikorn", "yunikorn") || OwnsTaint("", "") || OwnsTaint("yunikorn", "") {
		t.Error("a value without an asker has an owner")
	}
	if TaintOwner(nil) == "" || TaintOwner([]string{"a", "b"}) != TaintOwner([]string{"b", "a"}) {
		t.Error("the owner is none, or goes by the order of profiles")
	}
}
