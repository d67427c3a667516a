package reasons

import (
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestNew(t *testing.T) {
	r := New(OverMax, "queue %s has %d of %d.", "root.a", 7, 8)
	if r.Code != OverMax || r.Text != "queue root.a has 7 of 8." || r.None() {
		t.Errorf("got %+v", r)
	}
	expect.Same(t, "reason", "OverMax: queue root.a has 7 of 8.", r.String())
}

// TestNewTakesTextAsItIs: a percent sign in an argument is not a verb.
func TestNewTakesTextAsItIs(t *testing.T) {
	expect.Same(t, "text", "queue 100%d.", New(QueueNotFound, "queue %s.", "100%d").Text)
}

func TestZeroReasonIsNone(t *testing.T) {
	if r := (Reason{}); !r.None() || r.String() != "" {
		t.Errorf("None is %t, String %q", r.None(), r)
	}
}

func TestNewPanicsOnACodeThatIsNotInTheTable(t *testing.T) {
	for _, code := range []Code{"", "NotACode", "overmax"} {
		t.Run(string(code), func(t *testing.T) {
			defer func() {
				message, _ := recover().(string)
				if !strings.Contains(message, `"`+string(code)+`"`) {
					t.Errorf("panic %q does not name the code", message)
				}
			}()
			New(code, "never seen")
			t.Error("no panic")
		})
	}
}

// TestReasonsThatDoNotPassHaveARemedy: where no waiting helps, the remedy is another one.
func TestReasonsThatDoNotPassHaveARemedy(t *testing.T) {
	for _, code := range []Code{OverMax, OverUserLimit, OverGroupLimit} {
		passes, never := New(code, "queue root.a: requested 3, max 2"), New(code, "queue root.a: requested 3, max 2").NeverIf(true)
		if !strings.HasPrefix(passes.Remedy(), "Wait") || passes.Never {
			t.Errorf("%s passes, and people are told %q", code, passes.Remedy())
		}
		if strings.HasPrefix(never.Remedy(), "Wait") || !strings.HasPrefix(never.Remedy(), "Ask for less, or raise") || !never.Never {
			t.Errorf("%s does not pass, and people are told %q", code, never.Remedy())
		}
		if want := "queue root.a: requested 3, max 2: it can never start, because the request alone is more"; never.Text != want {
			t.Errorf("got %q, want %q", never.Text, want)
		}
	}
	expect.Same(t, "remedy of a code that is not in the table", "", (Reason{Code: "Other"}).Remedy())
}
