package model

import (
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// RecordOf returns the current record of a pod.
func (x *Model) RecordOf(p *Pod) *output.PodRecord {
	r := &output.PodRecord{
		Pod: p.Pod, Node: p.Node, Request: p.Request,
		Preempted: p.ChosenBy != "", Deleting: p.Deleting, Failures: p.Failed,
	}
	switch {
	case p.App != nil:
		r.App, r.AppID, r.Queue = p.App.Serial, p.App.Name.ID, x.Cache.Tree().Queue(p.App.Leaf).Path
		r.Request, r.Originator = p.Amount(), x.Cache.Originators.Is(&p.CachePod)
	case !p.Foreign:
		wanted, _ := x.Identify(p.Pod)
		r.Wanted = &wanted
	}
	return r
}

// RecordOfApp returns the current record of an application.
func (x *Model) RecordOfApp(a *App) *output.AppRecord {
	return &output.AppRecord{
		Serial: a.Serial, Namespace: a.Name.Namespace, ID: a.Name.ID, Leaf: a.Leaf, Queue: x.Cache.Tree().Queue(a.Leaf).Path,
		User: a.Owner.User, Group: a.Owner.Group, Groups: a.Groups,
		Submitted: a.Submitted, Accepted: a.accepted, Running: a.began, Usage: a.Used(), Counted: a.Counted(), MostUsed: a.MostUsed(),
	}
}

// RecordOfNode returns the current record of a node.
func RecordOfNode(n *SeenNode) *output.NodeRecord {
	return &output.NodeRecord{Name: n.Name(), Allocatable: n.Allocatable(), Schedulable: !n.Cordoned()}
}
