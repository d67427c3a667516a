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
	// AnnotationCompleteAfter on a pod is the time from its start to phase Succeeded, a Go duration.
	AnnotationCompleteAfter = Prefix + "complete-after"
	// AnnotationStopAfter on a pod is the time it takes to stop when deleted, a Go duration; the grace
	// period is the upper bound.
	AnnotationStopAfter = Prefix + "stop-after"
)

// script is the behaviour of a pod; a nil field means the annotation is absent or
// unusable.
type script struct {
	complete, stop *time.Duration
}

// parseScript reads the pod annotations. The script is usable even when an error is returned: bad values are left out.
func parseScript(annotations map[string]string) (script, error) {
	complete, err1 := duration(annotations, AnnotationCompleteAfter)
	stop, err2 := duration(annotations, AnnotationStopAfter)
	return script{complete, stop}, errors.Join(err1, err2)
}

func duration(annotations map[string]string, key string) (*time.Duration, error) {
	text, ok := annotations[key]
	if !ok {
		return nil, nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("duration is negative")
	}
	if err != nil {
		return nil, fmt.Errorf("annotation %s: %q is not a duration such as 5s: %w", key, text, err)
	}
	return &d, nil
}
