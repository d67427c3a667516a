package reservations

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// FuzzParseClaim parses arbitrary condition messages, because every user with the right to write the
// status of a pod can write one. ParseClaim must either return an error that names the condition, or
// return a claim that is the same after it is written and read again.
func FuzzParseClaim(f *testing.F) {
	since := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range []Claim{
		{Node: "n1", Since: since}, {Node: "n1", Since: since, Note: "a pod has to end"},
		{Node: "n1", Since: since, ClearSince: since.Add(time.Minute), Victims: []types.UID{"a", "b"}, Decision: "d"},
	} {
		f.Add(c.Message())
	}
	for _, message := range []string{"", claimMark, claimMark + "{}", claimMark + `{"node":7}`, "x" + claimMark + claimMark + `{"node":"n","since":"never"}`} {
		f.Add(message)
	}
	f.Fuzz(func(t *testing.T, message string) {
		claim, err := ParseClaim(message)
		if err != nil {
			expect.That(t, strings.Contains(err.Error(), string(HeldCondition)) &&
				reflect.ValueOf(claim).IsZero(), "%+v, %v", claim, err)
			return
		}
		again := expect.Get(ParseClaim(claim.Message()))(t)
		times := again.Since.Equal(claim.Since) && again.ClearSince.Equal(claim.ClearSince)
		expect.That(t, times && again.Node == claim.Node && again.Decision == claim.Decision &&
			len(again.Victims) == len(claim.Victims), "%+v is read again as %+v", claim, again)
	})
}

func TestTaint(t *testing.T) {
	expect.Same(t, "faults of the key", []string(nil), validation.IsQualifiedName(HeldTaint))
	// Upstream: StatusTaintPrefix of cluster-autoscaler's utils/taints.
	expect.That(t, strings.HasPrefix(HeldTaint, "status-taint.cluster-autoscaler.kubernetes.io/"),
		"cluster-autoscaler would give new nodes the taint %s", HeldTaint)
	const uid = types.UID("0f5a7d0e-5c1f-4b4e-9f77-1d0d2c1a8f10")
	expect.Same(t, "value", "gold."+string(uid), TaintValue(TaintOwner([]string{"yunikorn", "gold"}), uid))
	profiles := []string{"yunikorn", "a.b", "a", "-x", "x-", "my scheduler", strings.Repeat("p", 60), strings.Repeat("p", 61), "ä"}
	seen := map[string]bool{}
	for _, profile := range profiles {
		owner := TaintOwner([]string{profile})
		expect.That(t, !seen[owner], "owner %q of %q is that of another profile", owner, profile)
		seen[owner] = true
		value := TaintValue(owner, uid)
		errs := validation.IsValidLabelValue(value)
		expect.That(t, len(errs) == 0 && value != "", "value %q: %v", value, errs)
		for _, other := range profiles {
			expect.Same(t, fmt.Sprintf("%q owns %q of %q", other, value, profile), other == profile,
				OwnsTaint(TaintOwner([]string{other}), value))
		}
	}
	expect.That(t, !OwnsTaint("yunikorn", "yunikorn") && !OwnsTaint("", "") &&
		!OwnsTaint("yunikorn", ""), "a value without an asker has an owner")
	expect.Same(t, "in another order", TaintOwner([]string{"a", "b"}), TaintOwner([]string{"b", "a"}))
}
