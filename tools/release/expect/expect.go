// Package expect has the checks that most tests of this module make.
package expect

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// OK ends a test at once if err is not nil.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Get returns the value of a call, and ends the test at once if the call failed:
//
//	text := expect.Get(os.ReadFile(path))(t)
func Get[V any](value V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		OK(t, err)
		return value
	}
}

// Holds fails a test if err is not nil, and lets it go on.
func Holds(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// Same fails a test if two values differ, and lets it go on.
func Same(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Fails fails a test unless err is an error whose text has the given part.
func Fails(t testing.TB, what string, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("%s: got error %v, want one with %q", what, err, part)
	}
}
