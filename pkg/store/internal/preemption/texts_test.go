package preemption_test

import (
	"errors"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// TestTextsAreShort: long lists are cut, and errors are one line.
func TestTextsAreShort(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	if got := preemption.Listed(names[:5]); got != "a, b, c, d, e" {
		t.Error(got)
	}
	if got := preemption.Listed(names); got != "a, b, c, d, e, and 2 more" || names[5] != "f" {
		t.Error(got, names)
	}
	if got := preemption.OneLine(errors.Join(errors.New("x"), errors.New("y"))); got != "x; y" {
		t.Error(got)
	}
}
