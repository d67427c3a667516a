package documents

import (
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// TestAllocationLogBeginsInYuniKornsWords: YuniKorn's sentence comes first where it has
// one, and ours follows.
func TestAllocationLogBeginsInYuniKornsWords(t *testing.T) {
	for code, want := range map[reasons.Code]string{
		reasons.OverMax:        "Not enough queue quota: OverMax: text",
		reasons.OverUserLimit:  "Not enough user quota: OverUserLimit: text",
		reasons.OverGroupLimit: "Not enough user quota: OverGroupLimit: text",
		reasons.InOrder:        "InOrder: text",
	} {
		expect.Same(t, string(code), want, inYuniKornsWords(reasons.New(code, "text")))
	}
}
