package integration

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// releaseBudget bounds the time from the release of quota until the next pod is bound.
// releaseSlack is for a machine on which other work takes both cores: the scheduler, the
// API server and etcd have to run four times in between.
const (
	releaseBudget = time.Second
	releaseSlack  = time.Second
)

// TestReleaseAdmitsNext measures from the moment the API server shows that a pod
// is gone to the moment it shows the next one bound, on the same watch.
func TestReleaseAdmitsNext(t *testing.T) {
	e := setup(t, oneLeaf("2"))
	c := e.keepHistory()
	e.create("p", 9, inQueue("root.a"))
	var took []time.Duration
	for left := 9; left > 2; left-- {
		e.expect("p", 2, left-2, reasons.OverMax)
		running, _ := e.podsOf("p")
		before := len(c.boundByNow("p"))
		e.delete(running[0])
		var next sight
		eventually(e, patience, "the next pod is bound", func() (bool, string) {
			bound := c.boundByNow("p")
			if len(bound) > before {
				next = bound[before]
			}
			return len(bound) > before, ""
		})
		ended := c.first(running[0].UID, func(s sight) bool {
			return s.gone || s.pod.Status.Phase == corev1.PodSucceeded || s.pod.Status.Phase == corev1.PodFailed
		})
		took = append(took, next.at.Sub(ended.at))
	}
	slices.Sort(took)
	t.Logf("from release to bind: median %v, longest %v", took[len(took)/2], took[len(took)-1])
	if median := took[len(took)/2]; median > releaseBudget {
		t.Errorf("the median from release to bind is %v, want at most %v", median, releaseBudget)
	}
	if longest := took[len(took)-1]; longest > releaseBudget+releaseSlack {
		t.Errorf("the longest time from release to bind is %v, want at most %v", longest, releaseBudget+releaseSlack)
	}
}
