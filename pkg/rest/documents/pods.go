package documents

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// The keys of allocation tags.
const (
	tagLabel        = "kubernetes.io/label/"
	tagNamespace    = "kubernetes.io/meta/namespace"
	tagPodName      = "kubernetes.io/meta/podName"
	tagCreationTime = "creationTime"
	tagRequiredNode = "yunikorn.apache.org/requiredNode"
	tagForeign      = "foreign"
)

// tags writes what is known of a pod beside its numbers.
func (p *JSONWriter) tags(pod *inventory.Pod) {
	p.Key("allocationTags")
	p.Open('{')
	if !pod.Created.IsZero() {
		p.TextField(tagCreationTime, strconv.FormatInt(pod.Created.Unix(), 10))
	}
	p.TextField(tagForeign, foreignKind(pod.PodRecord))
	for _, name := range slices.Sorted(maps.Keys(pod.Labels)) {
		p.alwaysField(tagLabel+name, pod.Labels[name])
	}
	p.TextField(tagNamespace, pod.Namespace)
	p.TextField(tagPodName, pod.Name)
	p.TextField(tagRequiredNode, pod.RequiredNode)
	p.Close('}')
}

// asked writes what requests, allocations and foreign allocations have in common.
func (p *JSONWriter) asked(pod *inventory.Pod) {
	p.TextField("allocationKey", string(pod.UID))
	p.tags(pod)
	p.TimeField("requestTime", pod.Created)
	p.amountsField("resource", pod.Request)
	p.TextField("priority", strconv.FormatInt(int64(pod.Priority), 10))
}

// allocation writes a pod of a queue that has a node.
func (p *JSONWriter) allocation(pod *inventory.Pod) {
	p.Open('{')
	p.asked(pod)
	p.TimeField("allocationTime", pod.Scheduled)
	if !pod.Scheduled.IsZero() && !pod.Created.IsZero() {
		p.NumberField("allocationDelay", int64(pod.Scheduled.Sub(pod.Created)))
	}
	p.TextField("nodeId", pod.Node)
	p.TextField("applicationId", pod.AppID)
	p.trueField("preempted", pod.Preempted)
	p.trueField("originator", pod.Originator)
	p.Close('}')
}

// podsField writes a field with a list of pods, unless it is empty.
func (p *JSONWriter) podsField(name string, pods []*inventory.Pod, write func(*inventory.Pod)) {
	if len(pods) == 0 {
		return
	}
	p.Key(name)
	p.Open('[')
	for _, pod := range pods {
		write(pod)
	}
	p.Close(']')
}

// foreign writes a pod of another scheduler.
func (p *JSONWriter) foreign(pod *inventory.Pod) {
	p.Open('{')
	p.asked(pod)
	p.TimeField("allocationTime", pod.Scheduled)
	p.TextField("nodeId", pod.Node)
	p.boolField("preemptable", !pod.Static)
	p.Close('}')
}

// request writes a pod of a queue that has no node, and why.
func (p *JSONWriter) request(pod *inventory.Pod, why reasons.Reason, preempts bool, now time.Time) {
	p.Open('{')
	p.asked(pod)
	p.TextField("requiredNodeId", pod.RequiredNode)
	p.TextField("applicationId", pod.AppID)
	p.log(pod, why, now)
	p.trueField("triggeredPreemption", preempts)
	p.trueField("originator", pod.Originator)
	p.trueField("schedulingAttempted", pod.Attempts() > 0)
	p.Close('}')
}

// inYuniKornsWords begins with what YuniKorn says in such a case, where it says something.
func inYuniKornsWords(why reasons.Reason) string {
	switch why.Code {
	case reasons.OverMax:
		return "Not enough queue quota: " + why.String()
	case reasons.OverUserLimit, reasons.OverGroupLimit:
		return "Not enough user quota: " + why.String()
	}
	return why.String()
}

// log writes why a pod waits, as the log of its allocation. A pod that failed was
// told so then, any other is told now.
func (p *JSONWriter) log(pod *inventory.Pod, why reasons.Reason, now time.Time) {
	if why.None() {
		return
	}
	at, count := now, int64(1)
	if pod.Attempts() > 0 {
		at, count = pod.Tried(), int64(pod.Attempts())
	}
	p.Key("allocationLog")
	p.Open('[')
	p.Open('{')
	p.TextField("message", inYuniKornsWords(why))
	p.TimeField("lastOccurrence", at)
	p.NumberField("count", count)
	p.Close('}')
	p.Close(']')
}
