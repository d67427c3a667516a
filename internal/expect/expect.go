// Package expect has the checks that most tests make.
package expect

import (
	"bytes"
	"compress/gzip"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
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

// That fails a test if a condition does not hold, and lets it go on. The text says what is wrong
// then.
func That(t testing.TB, holds bool, text string, args ...any) {
	t.Helper()
	if !holds {
		t.Errorf(text, args...)
	}
}

// Says fails a test for each part that a text does not have, and lets it go on.
func Says(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
}

// Law checks a law on random cases, and that each planted bug breaks it.
func Law[C any](t testing.TB, cases *rapid.Generator[C], law func(C) error, planted ...func(C) error) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		if err := law(cases.Draw(t, "case")); err != nil {
			t.Fatal(err)
		}
	})
	for i, bug := range planted {
		That(t, breaks(cases, bug), "planted bug %d is not found", i+1)
	}
}

// Broken fails a test unless one of many cases gives an error: a law that holds for what has
// a planted bug is worth nothing.
func Broken[C any](t testing.TB, cases *rapid.Generator[C], law func(C) error) {
	t.Helper()
	That(t, breaks(cases, law), "the planted bug is not found")
}

// breaks tells whether one of many cases gives an error.
func breaks[C any](cases *rapid.Generator[C], law func(C) error) bool {
	for i := range 3000 {
		if law(cases.Example(i)) != nil {
			return true
		}
	}
	return false
}

// Gzipped returns the text as gzip compresses it.
func Gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(text))
	if err = errors.Join(err, w.Close()); err != nil {
		panic(err) // a buffer takes all writes
	}
	return b.Bytes()
}

// Fails fails a test unless err is an error with the given part in its text.
func Fails(t testing.TB, err error, part string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("got %v, want an error with %q", err, part)
	}
}

// Refused is Fails for a call that also returns a value:
//
//	expect.Refused(os.ReadFile(path))(t, "no such file")
func Refused[V any](_ V, err error) func(t testing.TB, part string) {
	return func(t testing.TB, part string) {
		t.Helper()
		Fails(t, err, part)
	}
}
