package output

import (
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// Report is something to tell users about a pod, because the scheduler writes no event and
// no condition for a gated pod. The caller of NextReports writes it.
type Report struct {
	objects.Ref
	// Reason is why the pod waits; none if it was let through after a reason had been
	// reported.
	Reason reasons.Reason
	// Demand is set if the condition PodScheduled must say this, with Reason. The report
	// then has no other content.
	Demand objects.DemandSaid
	// Warning is true if the pod does not wait for the reason. It does not take back an
	// earlier report.
	Warning bool
}
