package rest

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
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

// activeStates are those that YuniKorn knows for active applications; the value
// tells whether there are such here.
var activeStates = map[string]bool{
	"new": false, "accepted": true, "running": true, "completing": false, "failing": false, "resuming": false,
}

func stateOf(a *store.AppRecord) string {
	switch {
	case !a.Finished.IsZero():
		return stateCompleted
	case a.Running.IsZero():
		return stateAccepted
	}
	return stateRunning
}

// application writes an application that has pods.
func (p *page) application(inv *inventory.Inventory, v *inventory.View, a *inventory.Application, now time.Time) {
	p.open('{')
	p.record(a.AppRecord)
	p.allocations(a.Allocations)
	p.requests(inv, v, a, now)
	p.close('}')
}

// record writes what is known of an application without its pods.
func (p *page) record(a *store.AppRecord) {
	p.textField("applicationID", a.ID)
	p.textField("namespace", a.Namespace)
	if a.Finished.IsZero() {
		p.amountsField("usedResource", a.Usage.Allocated)
		p.amountsField("pendingResource", a.Usage.Pending)
	}
	p.amountsField("maxUsedResource", a.MostUsed)
	p.textField("partition", Partition)
	p.textField("queueName", a.Queue)
	p.timeField("submissionTime", a.Submitted)
	p.timeField("finishedTime", a.Finished)
	p.textField("applicationState", stateOf(a))
	p.textField("user", a.User)
	p.textsField("groups", a.Groups)
	p.key("stateLog")
	p.open('[')
	p.entered(stateAccepted, a.Accepted)
	p.entered(stateRunning, a.Running)
	p.entered(stateCompleted, a.Finished)
	p.close(']')
	if !a.Running.IsZero() {
		p.numberField("startTime", a.Running.UnixMilli())
	}
}

// entered writes when an application entered a state; nothing if it did not.
func (p *page) entered(state string, at time.Time) {
	if at.IsZero() {
		return
	}
	p.open('{')
	p.timeField("time", at)
	p.textField("applicationState", state)
	p.close('}')
}

// requests writes the pods of an application that have no node, and which nodes
// are held for them.
func (p *page) requests(inv *inventory.Inventory, v *inventory.View, a *inventory.Application, now time.Time) {
	p.key("maxRequestPriority")
	p.number(a.Highest())
	if len(a.Requests) == 0 {
		return
	}
	whys := inv.Whys(a.Requests)
	var held []string
	p.key("requests")
	p.open('[')
	for i, pod := range a.Requests {
		hold, holds := v.Holds.Of(pod.UID)
		if holds {
			held = append(held, hold.Node+"|"+string(pod.UID))
			p.request(pod, whys[i], &hold, now)
			continue
		}
		p.request(pod, whys[i], nil, now)
	}
	p.close(']')
	p.trueField("hasReserved", len(held) > 0)
	p.textsField("reservations", held)
}

// applicationList answers with some of the applications that have pods.
func (s *Server) applicationList(w http.ResponseWriter, v *inventory.View, apps []*inventory.Application, states []string) {
	header(w)
	p, now := newPage(w), s.clock.Now()
	p.open('[')
	for _, a := range apps {
		if p.failed() {
			return
		}
		if len(states) == 0 || slices.Contains(states, strings.ToLower(stateOf(a.AppRecord))) {
			p.application(s.inventory, v, a, now)
		}
	}
	p.close(']')
	_ = p.done() // the reader has gone away
}

// activeStatesOf are the states that the request asks for; none for all. It is
// false if it was answered.
func activeStatesOf(w http.ResponseWriter, r *http.Request) (states []string, ok bool) {
	for _, given := range r.URL.Query()["status"] {
		for _, state := range strings.Split(given, ",") {
			state = strings.ToLower(strings.TrimSpace(state))
			if _, known := activeStates[state]; !known {
				problem(w, http.StatusBadRequest, "Only following active statuses are allowed: new, accepted, running, completing, failing, resuming",
					"status "+state+" is not one of an active application")
				return nil, false
			}
			states = append(states, state)
		}
	}
	return states, true
}

// applications answers GET partition/{partition}/applications/{state}.
func (s *Server) applications(w http.ResponseWriter, r *http.Request) {
	switch state := strings.ToLower(r.PathValue("state")); state {
	case "active":
		if states, ok := activeStatesOf(w, r); ok {
			v := s.inventory.View()
			s.applicationList(w, v, v.Applications, states)
		}
	case "completed":
		s.completed(w)
	case "rejected":
		s.rejected(w)
	default:
		problem(w, http.StatusBadRequest, "Only following application states are allowed: active, rejected, completed",
			"there is no list of applications called "+state)
	}
}

func (s *Server) completed(w http.ResponseWriter) {
	header(w)
	p := newPage(w)
	p.open('[')
	for _, a := range s.inventory.View().Finished {
		p.open('{')
		p.record(a)
		p.close('}')
	}
	p.close(']')
	_ = p.done()
}

// queueApplications answers GET partition/{partition}/queue/{queue}/applications
// and .../applications/active.
func (s *Server) queueApplications(w http.ResponseWriter, r *http.Request) {
	if state := r.PathValue("state"); state != "" && !strings.EqualFold(state, "active") {
		problem(w, http.StatusBadRequest, "Only following application states are allowed: active",
			"there is no list of a queue's applications called "+state)
		return
	}
	states, ok := activeStatesOf(w, r)
	if !ok {
		return
	}
	v := s.inventory.View()
	if q, ok := findQueue(w, r, v); ok {
		s.applicationList(w, v, v.InQueue(q.Path), states)
	}
}

// application answers GET partition/{partition}/application/{application} and
// partition/{partition}/queue/{queue}/application/{application}. An ID is unique in
// a namespace only, so a namespace may be given; the first that was submitted is
// shown else, one with pods before one that is completed.
func (s *Server) application(w http.ResponseWriter, r *http.Request) {
	v := s.inventory.View()
	queue := ""
	if r.PathValue("queue") != "" {
		q, ok := findQueue(w, r, v)
		if !ok {
			return
		}
		queue = q.Path
	}
	id, namespace := r.PathValue("application"), r.URL.Query().Get("namespace")
	wanted := func(a *store.AppRecord) bool {
		return a.ID == id && (namespace == "" || a.Namespace == namespace) && (queue == "" || a.Queue == queue)
	}
	for _, a := range v.Applications {
		if wanted(a.AppRecord) {
			header(w)
			p := newPage(w)
			p.application(s.inventory, v, a, s.clock.Now())
			_ = p.done()
			return
		}
	}
	for _, a := range slices.Backward(v.Finished) {
		if wanted(a) {
			header(w)
			p := newPage(w)
			p.open('{')
			p.record(a)
			p.close('}')
			_ = p.done()
			return
		}
	}
	problem(w, http.StatusNotFound, "Application not found", "there is no application "+id)
}

// refused is an application without a queue for any of its waiting pods: what YuniKorn
// rejects. It is tried again when the configuration changes.
type refused struct {
	first *inventory.Pod
	why   reasons.Reason
}

// rejected answers with the applications that have no queue.
func (s *Server) rejected(w http.ResponseWriter) {
	v := s.inventory.View()
	header(w)
	p := newPage(w)
	p.open('[')
	for _, app := range s.refused(v) {
		wanted := app.first.Wanted
		p.open('{')
		p.textField("applicationID", wanted.Application)
		p.textField("namespace", app.first.Namespace)
		p.textField("partition", Partition)
		p.textField("queueName", wanted.Queue)
		p.timeField("submissionTime", app.first.Created)
		p.textField("applicationState", stateRejected)
		p.textField("user", wanted.User.Name)
		p.textsField("groups", wanted.User.Groups)
		p.textField("rejectedMessage", app.why.String())
		p.close('}')
	}
	p.close(']')
	_ = p.done()
}

// refused lists the applications that have no queue, by their oldest pod.
func (s *Server) refused(v *inventory.View) []refused {
	if !v.Started {
		return nil // no application was refused yet
	}
	type name struct{ namespace, id, queue string }
	seen := map[name]bool{}
	var firsts []*inventory.Pod
	for _, pod := range v.Unplaced {
		of := name{namespace: pod.Namespace, id: pod.Wanted.Application, queue: sharedQueue(pod.Wanted)}
		if !pod.Gated && !seen[of] {
			seen[of] = true
			firsts = append(firsts, pod)
		}
	}
	var out []refused
	for i, why := range s.inventory.Whys(firsts) {
		if !why.None() {
			out = append(out, refused{first: firsts[i], why: why})
		}
	}
	return out
}

// sharedQueue distinguishes applications with a generated ID.
func sharedQueue(id *placement.Identity) string {
	if id.Shared {
		return id.Queue
	}
	return ""
}
