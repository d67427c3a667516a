package expect

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// recorder notes how a test would fail.
type recorder struct {
	testing.TB
	told string
}

func (r *recorder) Helper()                           {}
func (r *recorder) Error(args ...any)                 { r.told += "error " + fmt.Sprint(args...) }
func (r *recorder) Errorf(format string, args ...any) { r.Error(fmt.Sprintf(format, args...)) }
func (r *recorder) Fatal(args ...any)                 { r.told += "fatal " + fmt.Sprint(args...) }

func TestChecksFailForDifferencesAndErrorsOnly(t *testing.T) {
	wrong := errors.New("wrong")
	holds := func(int) error { return nil }
	large := func(n int) error {
		if n < 1<<20 {
			return nil
		}
		return wrong
	}
	for want, check := range map[string]func(r *recorder){
		"": func(r *recorder) {
			OK(r, nil)
			Holds(r, nil)
			Same(r, "numbers", []int{1}, []int{1})
			Says(r, "text", "te", "x")
			That(r, true, "wrong")
			Law(r, rapid.Int(), holds, large)
			Fails(r, wrong, "ron")
			Refused(7, wrong)(r, "wrong")
			if got := Get(7, nil)(r); got != 7 {
				t.Errorf("got %d, want 7", got)
			}
		},
		"fatal wrong":                             func(r *recorder) { OK(r, wrong) },
		"fatal wrong of a call":                   func(r *recorder) { Get(7, fmt.Errorf("%w of a call", wrong))(r) },
		`error got <nil>, want an error with "x"`: func(r *recorder) { Fails(r, nil, "x") },
		`error got wrong, want an error with "x"`: func(r *recorder) { Refused(7, wrong)(r, "x") },
		"error wrong":                             func(r *recorder) { Holds(r, wrong) },
		"error 7 is wrong":                        func(r *recorder) { That(r, false, "%d is wrong", 7) },
		"error there is no \"s\" in\ntext":        func(r *recorder) { Says(r, "text", "t", "s") },
		"error planted bug 1 is not found":        func(r *recorder) { Law(r, rapid.Int(), holds, holds) },
		"error numbers (-want +got)\n":            func(r *recorder) { Same(r, "numbers", []int{1}, []int{2}) },
	} {
		r := &recorder{TB: t}
		if check(r); !strings.HasPrefix(r.told, want) || (want == "") != (r.told == "") {
			t.Errorf("told %q, want %q", r.told, want)
		}
	}
}
