package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// own requests a page below /api/v1.
func (e *env) own(page string, into any) {
	e.Helper()
	body, err := fetch(e.Context(), http.DefaultClient, "http://"+e.rest+"/api/v1/"+page)
	e.ok(err)
	e.ok(json.Unmarshal(body, into))
}

// decision waits until the last decision about a pod fulfils a condition.
func (e *env) decision(pod, what string, wanted func(*record.Decision) bool) *record.Decision {
	e.Helper()
	var found *record.Decision
	eventually(e, patience, fmt.Sprintf("the last decision about %s is %s", pod, what), func() (bool, string) {
		var list documents.Decisions
		e.own("decisions?limit=1&pod="+pod, &list)
		if len(list.Decisions) == 0 {
			return false, "none"
		}
		found = list.Decisions[0]
		return wanted(found), fmt.Sprintf("%+v", *found)
	})
	return found
}

// TestDecisionsAndHolds: REST shows each decision, its figures and its outcome, both
// while it is carried out and afterwards; and executed decisions are judged again.
func TestDecisionsAndHolds(t *testing.T) {
	e := setup(t, preemptionQueues)
	e.useNodes(1, localcluster.NodeSpec{CPU: "4"})
	e.fill("victim", 4, inQueue("root.borrows"), stopsAfter(4*time.Second))
	asker := e.createPod(e.pod("asker", "asker", inQueue("root.owed"), requests("cpu", "2")))

	d := e.decision(asker.Name, "carried out", func(d *record.Decision) bool {
		return slices.ContainsFunc(d.Stages, func(s record.Stage) bool { return s.Stage == record.StageDisrupted })
	})
	if d.Outcome != planner.Preempt || d.Queue != "root.owed" || len(d.Victims) != 2 || d.Victims[0].Queue != "root.borrows" || d.Victims[0].Requests["vcore"] != 1000 {
		t.Errorf("the decision is %+v", d)
	}
	if !slices.ContainsFunc(d.Numbers, func(n record.Number) bool { return n.Law == "4" && n.Queue == "root.owed" && *n.Guaranteed == 40000 }) {
		t.Errorf("the numbers are %+v", d.Numbers)
	}
	var holds documents.Holds
	e.own("holds?pod="+asker.Name, &holds)
	if len(holds.Holds) == 1 { // the victims take a while to stop
		h := holds.Holds[0]
		if h.Node != d.Node || h.Queue != "root.owed" || h.Decision != d.ID || h.State != "leaving" && h.State != "clear" {
			t.Errorf("the hold is %+v", h)
		}
	}
	e.awaitPod(asker, "runs", func(p *corev1.Pod) bool { return p.Spec.NodeName != "" })
	d = e.decision(asker.Name, "bound", func(d *record.Decision) bool { return d.Stages[len(d.Stages)-1].Stage == string(reservations.Bound) })
	var stages []string
	for _, s := range d.Stages {
		stages = append(stages, s.Stage)
	}
	if got := strings.Join(stages, ", "); got != "held, committed, disrupted, bound" {
		t.Errorf("the stages are %s", got)
	}
	e.own("holds?pod="+asker.Name, &holds)
	if len(holds.Holds) != 0 || len(holds.Ended) != 1 || holds.Ended[0].End != reservations.Bound {
		t.Errorf("the holds are %+v", holds)
	}
	e.run("kubectl-paddock", func(e *env) { e.askPlugin(asker, d) })
	e.checkHealth(e.Context())
}
