// Package expect has the checks that most tests make.
package expect

import (
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
func Same(t testing.TB, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}
