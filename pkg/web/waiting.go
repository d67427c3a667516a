package web

import (
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// waitingAtOnce is how many waiting pods are on a page. The store computes the reasons of so
// many pods for it.
const waitingAtOnce = 50

// Which pods of an application are listed.
const (
	eachApplication = ""
	eachPod         = "pod"
)

var waitingChoices = []choice{
	{Value: eachApplication, Label: "the oldest pod of each application"},
	{Value: eachPod, Label: "every pod"},
}

// waitingContent is what is on the page of waiting pods.
type waitingContent struct {
	// Queue, Namespace and Application are the filters of the list.
	Queue, Namespace, Application string
	Each                          []choice
	Filtered                      bool
	// Pods is how many pods that match the filters wait.
	Pods  int
	Rows  []waitingRow
	Pager pager
}

// waitingRow is a pod that waits, and why.
type waitingRow struct {
	Namespace, Name, Application string
	// Queue is empty for a pod without a queue; Wanted is then the queue that it names.
	Queue        linked
	Wanted       string
	Created      moment
	Age, Request string
	Code         reasons.Code
	Text, Remedy string
	// Node is held for the pod; empty for none.
	Node linked
	// Decisions is where the decisions about the pod are; empty where there may be none.
	Decisions string
	// Others is how many more of the application wait.
	Others        int
	OthersAddress string
	// Span is how many rows from here have the same reason; 0 where one above has it.
	Span int
}

// waiting is a pod of the list, which also stands for other pods of its application.
type waiting struct {
	pod    *inventory.Pod
	others int
}

func (p *Pages) waitingPage(r *request) (any, string) {
	each, choices := r.choose("each", waitingChoices)
	out := waitingContent{
		Queue: strings.ToLower(r.text("queue")), Namespace: r.text("namespace"),
		Application: r.text("application"), Each: choices,
	}
	out.Filtered = out.Queue+out.Namespace+out.Application != ""
	all, pods := r.waiting(&out, each == eachPod)
	thing := "application"
	if each == eachPod {
		thing = "pod"
	}
	shown, pager := cut(r, "page", thing, all, waitingAtOnce)
	out.Pods, out.Pager = pods, pager
	asked := make([]*inventory.Pod, len(shown))
	for i, w := range shown {
		asked[i] = w.pod
	}
	for i, why := range p.options.Inventory.Whys(asked) {
		out.Rows = append(out.Rows, r.waitingRow(shown[i], why))
	}
	span(out.Rows)
	out.Queue, out.Namespace, out.Application = visible(out.Queue), visible(out.Namespace), visible(out.Application)
	return out, ""
}

// waiting lists the pods that wait: those without a queue first, because only a person
// can help them, then the first submitted.
func (r *request) waiting(filter *waitingContent, every bool) (list []waiting, pods int) {
	add := func(requests []*inventory.Pod) {
		pods += len(requests)
		if !every && len(requests) > 0 {
			list = append(list, waiting{requests[0], len(requests) - 1})
			return
		}
		for _, pod := range requests {
			list = append(list, waiting{pod: pod})
		}
	}
	for _, requests := range r.UnplacedApplications(func(p *inventory.Pod) bool {
		return filter.wants(wantedQueue(p), p.Namespace, p.Wanted.Application)
	}) {
		add(requests)
	}
	for _, a := range r.Applications {
		if filter.wants(a.Queue, a.Namespace, a.ID) {
			add(a.Requests)
		}
	}
	return list, pods
}

func wantedQueue(pod *inventory.Pod) string { return strings.ToLower(pod.Wanted.Queue) }

// wants tells whether a filter matches. The filter of a queue includes the queues below it.
func (c *waitingContent) wants(queue, namespace, application string) bool {
	return (c.Queue == "" || queues.Within(queue, c.Queue)) &&
		(c.Namespace == "" || namespace == c.Namespace) && (c.Application == "" || application == c.Application)
}

// decided are the reasons that come from a decision.
var decided = map[reasons.Code]bool{
	reasons.PreemptionRefused: true, reasons.PodGroupBeyondGuarantee: true, reasons.MakingRoom: true, reasons.WaitingForRoom: true, reasons.RoomAwaited: true, reasons.RoomImpossible: true,
	reasons.HoldTimedOut: true, reasons.HoldSuperseded: true, reasons.HoldNodeGone: true, reasons.HoldNodeUnschedulable: true, reasons.HoldGivenUp: true,
}

func (r *request) waitingRow(w waiting, why reasons.Reason) waitingRow {
	pod := w.pod
	row := waitingRow{
		Namespace: visible(pod.Namespace), Name: visible(pod.Name), Application: visible(pod.AppID), Queue: linkedQueue(pod.Queue),
		Created: at(pod.Created), Age: age(r.now, pod.Created), Request: amounts(withoutPods(pod.Request)),
		Code: why.Code, Text: sentence(visible(why.Text)), Others: w.others,
	}
	queue, application := pod.Queue, pod.AppID
	if pod.Wanted != nil {
		queue, application = wantedQueue(pod), pod.Wanted.Application
		row.Application, row.Wanted = visible(application), visible(pod.Wanted.Queue)
	}
	if w.others > 0 {
		row.OthersAddress = link("waiting", "queue", queue, "namespace", pod.Namespace, "application", application, "each", eachPod)
	}
	if hold, holds := r.Holds.Of(pod.UID); holds {
		row.Node = linkedNode(hold.Node)
	}
	if decided[why.Code] {
		row.Decisions = link("decisions", "namespace", pod.Namespace, "pod", pod.Name)
	}
	if row.Remedy = why.Remedy(); row.Remedy == "" {
		row.Text, row.Remedy = "It is being placed at this moment.", "Nothing."
	}
	return row
}

// sentence adds a full stop to a text if it has none.
func sentence(text string) string {
	if text == "" || strings.ContainsRune(".!?…", []rune(text)[len([]rune(text))-1]) {
		return text
	}
	return text + "."
}

// span joins the reasons of consecutive rows if they are the same.
func span(rows []waitingRow) {
	first := 0
	for i := range rows {
		if i == 0 || rows[i].Code != rows[first].Code || rows[i].Text != rows[first].Text {
			first = i
		}
		rows[first].Span++
	}
}
