package documents

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// The states of applications, as far as there are such here: an application is
// accepted once it has a queue, runs from the first pod that is bound, and is
// completed when its last pod is gone. A refused one may get a queue yet.
const (
	stateAccepted  = "Accepted"
	stateRunning   = "Running"
	stateCompleted = "Completed"
	stateRejected  = "Rejected"
)

// activeStates are those that YuniKorn knows for active applications. Here they are
// accepted or running.
var activeStates = []string{"new", "accepted", "running", "completing", "failing", "resuming"}

// StateOf returns the state of an application by YuniKorn's names.
func StateOf(a *output.AppRecord) string {
	switch {
	case !a.Finished.IsZero():
		return stateCompleted
	case a.Running.IsZero():
		return stateAccepted
	}
	return stateRunning
}

// Application writes an application that has pods.
func (p *JSONWriter) Application(inv *inventory.Inventory, v *inventory.View, a *inventory.Application, now time.Time) {
	p.Open('{')
	p.record(a.AppRecord)
	p.podsField("allocations", a.Allocations, p.allocation)
	p.requests(inv, v, a, now)
	p.Close('}')
}

// Applications writes those of apps that are in one of the states; all of them with no states.
func (p *JSONWriter) Applications(inv *inventory.Inventory, v *inventory.View, apps []*inventory.Application, states []string, now time.Time) {
	p.Open('[')
	for _, a := range apps {
		if p.Failed() {
			break
		}
		if len(states) == 0 || slices.Contains(states, strings.ToLower(StateOf(a.AppRecord))) {
			p.Application(inv, v, a, now)
		}
	}
	p.Close(']')
}

// Ended writes an application that has no pods any more.
func (p *JSONWriter) Ended(a *output.AppRecord) {
	p.Open('{')
	p.record(a)
	p.Close('}')
}

// Refused writes an application that has no queue, by its oldest pod.
func (p *JSONWriter) Refused(first *inventory.Pod, why reasons.Reason) {
	p.Open('{')
	p.TextField("applicationID", first.Wanted.Application)
	p.TextField("namespace", first.Namespace)
	p.TextField("partition", Partition)
	p.TextField("queueName", first.Wanted.Queue)
	p.TimeField("submissionTime", first.Created)
	p.TextField("applicationState", stateRejected)
	p.TextField("user", first.Wanted.User.Name)
	p.TextsField("groups", first.Wanted.User.Groups)
	p.TextField("rejectedMessage", why.String())
	p.Close('}')
}

// record writes what is known of an application without its pods.
func (p *JSONWriter) record(a *output.AppRecord) {
	p.TextField("applicationID", a.ID)
	p.TextField("namespace", a.Namespace)
	if a.Finished.IsZero() {
		p.amountsField("usedResource", a.Usage.Allocated)
		p.amountsField("pendingResource", a.Usage.Pending)
	}
	p.amountsField("maxUsedResource", a.MostUsed)
	p.TextField("partition", Partition)
	p.TextField("queueName", a.Queue)
	p.TimeField("submissionTime", a.Submitted)
	p.TimeField("finishedTime", a.Finished)
	p.TextField("applicationState", StateOf(a))
	p.TextField("user", a.User)
	p.TextsField("groups", a.Groups)
	p.Key("stateLog")
	p.Open('[')
	p.entered(stateAccepted, a.Accepted)
	p.entered(stateRunning, a.Running)
	p.entered(stateCompleted, a.Finished)
	p.Close(']')
	if !a.Running.IsZero() {
		p.NumberField("startTime", a.Running.UnixMilli())
	}
}

// entered writes when an application entered a state; nothing if it did not.
func (p *JSONWriter) entered(state string, at time.Time) {
	if at.IsZero() {
		return
	}
	p.Open('{')
	p.TimeField("time", at)
	p.TextField("applicationState", state)
	p.Close('}')
}

// requests writes the pods of an application that have no node, and which nodes
// are held for them.
func (p *JSONWriter) requests(inv *inventory.Inventory, v *inventory.View, a *inventory.Application, now time.Time) {
	p.Key("maxRequestPriority")
	p.Number(a.Highest())
	if len(a.Requests) == 0 {
		return
	}
	whys := inv.Whys(a.Requests)
	var held []string
	p.Key("requests")
	p.Open('[')
	for i, pod := range a.Requests {
		hold, holds := v.Holds.Of(pod.UID)
		if holds {
			held = append(held, hold.Node+"|"+string(pod.UID))
		}
		p.request(pod, whys[i], len(hold.Chosen) > 0, now)
	}
	p.Close(']')
	p.trueField("hasReserved", len(held) > 0)
	p.TextsField("reservations", held)
}

// ActiveStatesOf returns the states that the request asks for; none for all. If it returns
// false, it has already written the error.
func ActiveStatesOf(w http.ResponseWriter, r *http.Request) (states []string, ok bool) {
	for _, given := range r.URL.Query()["status"] {
		for _, state := range strings.Split(given, ",") {
			state = strings.ToLower(strings.TrimSpace(state))
			if !slices.Contains(activeStates, state) {
				Refuse(w, http.StatusBadRequest, "Only following active statuses are allowed: new, accepted, running, completing, failing, resuming",
					"status "+state+" is not one of an active application")
				return nil, false
			}
			states = append(states, state)
		}
	}
	return states, true
}
