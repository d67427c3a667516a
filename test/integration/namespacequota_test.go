package integration

import (
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// TestNamespaceQuota checks the quotas that annotations of a namespace give to its
// dynamic queue, while they are changed.
func TestNamespaceQuota(t *testing.T) {
	e := setup(t, "") // no ConfigMap: a queue for each namespace
	team := e.id + "-team"
	queue := "root." + team
	e.namespace(team, map[string]string{
		placement.KeyNamespaceMax: `{"cpu":"2","memory":"64Gi"}`, placement.KeyNamespaceGuaranteed: `{"cpu":"1"}`,
	})
	e.create("p", 6, inNamespace(team))
	e.expectStill("p", 2, 4, reasons.OverMax)
	if q := e.queue(queue); q.MaxResource["vcore"] != 2000 || q.MaxResource["memory"] != 64<<30 || q.GuaranteedResource["vcore"] != 1000 || q.IsManaged {
		t.Errorf("queue %s is %+v", queue, q)
	}

	e.annotate(team, map[string]string{placement.KeyNamespaceMax: `{"cpu":"3"}`, placement.KeyNamespaceGuaranteed: `{"cpu":"1500m"}`})
	e.expectStill("p", 3, 3, reasons.OverMax)
	e.awaitQueue(queue, "has its new guarantee", func(q *documents.Queue) bool { return q.GuaranteedResource["vcore"] == 1500 })

	// A lowered quota stops no pod, and an invalid one counts as no annotation.
	e.annotate(team, map[string]string{placement.KeyNamespaceMax: `{"cpu":"1"}`})
	e.awaitQueue(queue, "has its new max", func(q *documents.Queue) bool { return q.MaxResource["vcore"] == 1000 })
	e.expectStill("p", 3, 3, reasons.OverMax)
	e.annotate(team, map[string]string{placement.KeyNamespaceMax: `cpu=9`})
	e.expect("p", 6, 0, "")
	if line, found := e.logLine("An annotation of a namespace cannot be understood"); !found {
		t.Errorf("the log does not tell of the mistake: %s", line)
	}

	// Another namespace is not affected.
	e.create("free", 4)
	e.expect("free", 4, 0, "")
}
