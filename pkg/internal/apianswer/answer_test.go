package apianswer_test

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/internal/apianswer"
)

func TestTooLarge(t *testing.T) {
	internal := func(text string) error {
		return fmt.Errorf("delete: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: text}})
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("etcdserver: request is too large"), false}, // no answer of the API server
		{internal("etcdserver: request is too large"), true},
		{internal("rpc error: code = ResourceExhausted desc = trying to send message larger than max (2097999 vs. 2097152)"), true},
		{internal("etcdserver: request timed out"), false},
		{apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		{apierrors.NewInternalError(errors.New("failed calling webhook")), false},
	} {
		expect.Same(t, fmt.Sprintf("%v: too large", c.err), c.want, apianswer.TooLarge(c.err))
		expect.Same(t, fmt.Sprintf("%v: final", c.err), c.want, apianswer.Final(c.err))
	}
}
