package validation

import (
	"fmt"
	"slices"
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

// oneOf reports a value that is not allowed.
func oneOf[T ~string](path *field.Path, value T, allowed ...T) field.ErrorList {
	if slices.Contains(allowed, value) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, value, allowed)}
}

// names reports each name that the check refuses, with a hint, or that is in the list
// twice.
func names(path *field.Path, list []string, check func(string) []string, hint string) field.ErrorList {
	var errs field.ErrorList
	for i, name := range list {
		for _, msg := range check(name) {
			errs = append(errs, field.Invalid(path.Index(i), name, msg+hint))
		}
		if slices.Contains(list[:i], name) {
			errs = append(errs, field.Duplicate(path.Index(i), name))
		}
	}
	return errs
}
