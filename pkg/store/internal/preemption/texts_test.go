package preemption_test

import (
	"errors"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/preemption"
)

// TestTextsAreShort: long lists are cut, and errors are one line.
func TestTextsAreShort(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e", "f", "g"}
	expect.Same(t, "all", "a, b, c, d, e", preemption.Listed(names[:5]))
	expect.Same(t, "some", "a, b, c, d, e, and 2 more", preemption.Listed(names))
	expect.Same(t, "the list", "f", names[5])
	expect.Same(t, "errors", "x; y", preemption.OneLine(errors.Join(errors.New("x"), errors.New("y"))))
}
