package reasons

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// TestReason: the text has its arguments as they are, and the zero reason is none.
func TestReason(t *testing.T) {
	r := New(OverMax, "queue %s has %d of %d.", "root.100%d", 7, 8)
	expect.Same(t, "reason", Reason{Code: OverMax, Text: "queue root.100%d has 7 of 8."}, r)
	expect.Same(t, "in one line", "OverMax: queue root.100%d has 7 of 8.", r.String())
	if none := (Reason{}); r.None() || !none.None() || none.String() != "" {
		t.Errorf("None is %t, of the zero reason %t; String %q", r.None(), none.None(), none)
	}
}

func TestNewPanicsOnACodeThatIsNotInTheTable(t *testing.T) {
	for _, code := range []Code{"", "NotACode", "overmax"} {
		func() {
			defer func() {
				if message := fmt.Sprint(recover()); !strings.Contains(message, `"`+string(code)+`"`) {
					t.Errorf("panic %q does not name %q", message, code)
				}
			}()
			New(code, "never seen")
		}()
	}
}

// TestReasonsThatDoNotPassHaveARemedy: where no waiting helps, the remedy is another one.
func TestReasonsThatDoNotPassHaveARemedy(t *testing.T) {
	for _, code := range []Code{OverMax, OverUserLimit, OverGroupLimit} {
		passes, never := New(code, "queue root.a: requested 3, max 2"), New(code, "queue root.a: requested 3, max 2").NeverIf(true)
		expect.That(t, strings.HasPrefix(passes.Remedy(), "Wait") && !passes.Never,
			"%s passes, and people are told %q", code, passes.Remedy())
		expect.That(t, strings.HasPrefix(never.Remedy(), "Ask for less, or raise") && never.Never,
			"%s does not pass, and people are told %q", code, never.Remedy())
		want := "queue root.a: requested 3, max 2: it can never start, because the request alone is more"
		expect.Same(t, "sentence", want, never.Text)
	}
	expect.Same(t, "remedy of a code that is not in the table", "", (Reason{Code: "Other"}).Remedy())
}
