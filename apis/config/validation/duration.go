package validation

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// between reports a duration outside [low, high].
func between(path *field.Path, value *metav1.Duration, low, high time.Duration) field.ErrorList {
	if value.Duration >= low && value.Duration <= high {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value.Duration.String(),
		fmt.Sprintf("must be between %s and %s", low, high))}
}

// wholeSeconds reports a duration that is negative or has a fraction of a second.
func wholeSeconds(path *field.Path, value *metav1.Duration) field.ErrorList {
	if value.Duration >= 0 && value.Duration%time.Second == 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(path, value.Duration.String(),
		"must be a whole number of seconds, at least 0s")}
}
