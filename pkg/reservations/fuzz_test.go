package reservations

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// FuzzParseClaim parses arbitrary condition messages, because every user with the right
// to write the status of a pod can write one. ParseClaim must either return an error that
// names the condition, or return a claim that is the same after it is written and read
// again.
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
		again, err := ParseClaim(claim.Message())
		if err != nil || again.Node != claim.Node || !again.Since.Equal(claim.Since) || !again.ClearSince.Equal(claim.ClearSince) ||
			again.Decision != claim.Decision || len(again.Victims) != len(claim.Victims) {
			t.Errorf("%+v is read again as %+v, %v", claim, again, err)
		}
	})
}
