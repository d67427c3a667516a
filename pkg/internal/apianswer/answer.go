// Package apianswer says what the error of a write to the API server means for another
// try.
package apianswer

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Final reports whether the API server would give the same answer to another try.
func Final(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsMethodNotSupported(err) || TooLarge(err)
}

// tooLarge are the texts of answers to writes of an object that is larger than etcd
// stores: etcd's own limit (--max-request-bytes, 1.5 MiB), and that of the API server's
// client of etcd (2 MiB). The API server passes both on as internal errors without a
// reason.
var tooLarge = []string{"etcdserver: request is too large", "trying to send message larger than max"}

// TooLarge reports whether the request, or the object that it would make, is too large.
func TooLarge(err error) bool {
	if apierrors.IsRequestEntityTooLargeError(err) {
		return true
	}
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || answer.Status().Code != http.StatusInternalServerError {
		return false
	}
	return slices.ContainsFunc(tooLarge, func(text string) bool { return strings.Contains(answer.Status().Message, text) })
}
