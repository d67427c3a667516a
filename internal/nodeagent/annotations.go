package nodeagent

import (
	"errors"
	"fmt"
	"time"
)

const (
	// Prefix starts every label and annotation of the simulated cluster.
	Prefix = "local.paddock.io/"
	// LabelNode marks the Node objects the agent manages; the value must be LabelNodeValue.
	LabelNode = Prefix + "node"
	// LabelNodeValue is the value of LabelNode on managed nodes.
	LabelNodeValue = "simulated"
	// AnnotationFail on a node makes it fail; see FailNotReady and FailSilent.
	AnnotationFail = Prefix + "fail"
	// AnnotationCompleteAfter on a pod is the time from its start to phase Succeeded, a Go duration.
	AnnotationCompleteAfter = Prefix + "complete-after"
	// AnnotationFailAfter on a pod is the time from its start to phase Failed, a Go duration.
	AnnotationFailAfter = Prefix + "fail-after"
	// AnnotationStopAfter on a pod is the time it takes to stop when deleted, a Go duration; the grace
	// period is the upper bound.
	AnnotationStopAfter = Prefix + "stop-after"
)

const (
	// FailNotReady as value of AnnotationFail: the node reports Ready=False and keeps its lease.
	FailNotReady = "not-ready"
	// FailSilent as value of AnnotationFail: the node reports nothing and lets its lease expire.
	FailSilent = "silent"
)

// health is the state that a node's annotation requests.
type health int

const (
	healthy health = iota
	notReady
	silent
)

// healthOf reads AnnotationFail. An unknown value counts as not-ready, so that a typing
// error shows on the node.
func healthOf(annotations map[string]string) health {
	switch annotations[AnnotationFail] {
	case "":
		return healthy
	case FailSilent:
		return silent
	default:
		return notReady
	}
}

// script is the behaviour of a pod; a nil field means the annotation is absent or
// unusable.
type script struct {
	complete, fail, stop *time.Duration
}

// parseScript reads the pod annotations. The script is usable even when an error is returned: bad values are left out.
func parseScript(annotations map[string]string) (script, error) {
	var s script
	var errs []error
	for _, f := range []struct {
		key  string
		dest **time.Duration
	}{
		{AnnotationCompleteAfter, &s.complete},
		{AnnotationFailAfter, &s.fail},
		{AnnotationStopAfter, &s.stop},
	} {
		text, ok := annotations[f.key]
		if !ok {
			continue
		}
		d, err := time.ParseDuration(text)
		if err == nil && d < 0 {
			err = errors.New("duration is negative")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("annotation %s: %q is not a duration such as 5s: %w", f.key, text, err))
			continue
		}
		*f.dest = &d
	}
	return s, errors.Join(errs...)
}
