package main

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/web/webtest"
)

// preempting is a cluster in which room is made.
type preempting struct{ *webtest.Cluster }

// preempts is the REST interface of a scheduler in which room was made for pod ns/a as
// far as a stage says. A DaemonSet pod holds another node, where a pod is leaving anyway.
func preempts(t *testing.T, stage string) http.Handler {
	p := preempting{webtest.New(t, `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: fair, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1s}}
    - {name: greedy, resources: {guaranteed: {vcore: 1}}}
`)}
	p.Node("n1", "vcore=4 pods=20")
	p.Node("n2", "vcore=2 pods=20")
	p.pod(objects.Pod{Identity: objects.Identity{Name: "own"}, Spec: objects.Spec{Priority: 9}, Status: objects.Status{Node: "n2"}}, "root.fair", "vcore=1")
	p.pod(objects.Pod{Identity: objects.Identity{Name: "ds"}, Spec: objects.Spec{RequiredNode: "n2"}}, "root.fair", "vcore=1")
	p.pod(objects.Pod{Identity: objects.Identity{Namespace: "other", Name: "left"}, Status: objects.Status{Node: "n2", Deleting: true}}, "root.greedy", "vcore=1")
	for _, name := range []string{"g1", "g2", "g3", "g4"} {
		p.pod(objects.Pod{Identity: objects.Identity{Name: name}, Status: objects.Status{Node: "n1"}}, "root.greedy", "vcore=1")
	}
	p.pod(objects.Pod{Identity: objects.Identity{Name: "big"}}, "root.fair", "vcore=9")
	p.pod(objects.Pod{Identity: objects.Identity{Name: "a"}}, "root.fair", "vcore=2")
	p.Step(2 * time.Second)
	p.Plan("uid-big")
	p.Step(20 * time.Second)
	p.Plan("uid-big")
	p.require("uid-ds")
	p.makeRoom(stage)
	p.Record.Take()
	return handler(t, rest.Options{Inventory: p.Inventory, Record: p.Record})
}

// makeRoom makes room for ns/a as far as a stage says.
func (p preempting) makeRoom(stage string) {
	todo := slices.Index([]string{"refused", "planned", "leaving", "clear", "bound"}, stage)
	p.Step(time.Second)
	if todo >= 1 {
		p.Plan("uid-a")
	}
	if todo < 2 {
		return
	}
	p.Step(time.Second)
	going, _ := p.Store.Commit("uid-a", nil, p.Now)
	p.Store.VictimsDeleted("uid-a", p.Now)
	for _, v := range going {
		p.Step(time.Second)
		if todo >= 3 {
			p.Store.Delete(v.UID, p.Now)
		}
	}
	if todo >= 4 {
		p.Step(time.Second)
		p.pod(objects.Pod{Identity: objects.Identity{Name: "a"}, Status: objects.Status{Node: "n1"}}, "root.fair", "vcore=2")
	}
}

func (p preempting) pod(pod objects.Pod, queue, request string) {
	pod.Namespace = cmp.Or(pod.Namespace, "ns")
	pod.Labels = map[string]string{placement.KeyQueue: queue, placement.KeyApplicationID: queue}
	pod.Request = queuestest.Vector(request + " pods=1")
	p.Add(pod)
}

// require decides about the only node that a pod can run on.
func (p preempting) require(uid types.UID) {
	input, _ := p.Store.BeginNodeBoundPlan(uid, nil, p.Now)
	d := daemonset.Plan(input.Node, input.Ask, input.Params)
	p.Store.ApplyPlan(uid, &d, p.Now)
}

// live serves a whole scheduler.
func (s *session) live(t *testing.T, d *datadriven.TestData) {
	s.cluster = webtest.New(t, d.Input)
	s.serve(t, handler(t, rest.Options{
		Inventory: s.cluster.Inventory, Explainer: s.cluster.Store, Clock: s.cluster.Clock,
	}))
}

// previews answers with the outcome that the manifest names.
type previews struct{}

func (previews) Preview(_ context.Context, manifest []byte) (*documents.Preview, error) {
	outcome := strings.TrimSpace(string(manifest))
	p := &documents.Preview{
		Ref: objects.Ref{Namespace: "team", Name: "new"}, Outcome: outcome, Summary: "Pod team/new " + outcome, Profile: "yunikorn",
		Request: map[string]resources.Amount{"vcore": 2000}, Nodes: &documents.PreviewNodes{All: 3, Fit: 1, Refused: map[string]int{"Insufficient cpu": 2}},
		Queue:       &documents.ExplainedQueue{Path: "root.a", FoundBy: "provided", Application: "x", User: "ann"},
		Quota:       []documents.QueueQuota{{Queue: "root.a", Guaranteed: map[string]resources.Amount{"vcore": 4000}, UnderGuarantee: []string{"vcore"}}},
		NotLookedAt: []string{"scores"},
	}
	switch outcome {
	case documents.PreviewFits:
	case documents.PreviewWaits:
		p.Reason, p.ToDo = &documents.Reason{Code: "OverMax", Meaning: "It is over its max."}, []string{"Wait."}
	case documents.PreviewPreempts:
		used, guaranteed := resources.Amount(0), resources.Amount(4000)
		p.Decision = &record.Decision{
			Victims: []record.Victim{{Ref: objects.Ref{Namespace: "team", Name: "old"}, Queue: "root.b", Node: "n1", Requests: map[string]resources.Amount{"vcore": 2000}}},
			Numbers: []record.Number{{Law: "4", Queue: "root.a", Resource: "vcore", Used: &used, Guaranteed: &guaranteed}},
		}
		p.Makes, p.Waiting = true, 2
	default:
		return nil, &documents.ManifestError{Text: "kind: is missing; it must be Pod"}
	}
	return p, nil
}

// pod adds a pod to the cluster.
func (s *session) pod(t *testing.T, d *datadriven.TestData) {
	name, node := d.CmdArgs[0].Key, ""
	d.MaybeScanArgs(t, "node", &node)
	s.cluster.Add(objects.Pod{
		Identity: objects.Identity{Name: name, Labels: map[string]string{
			placement.KeyQueue: d.CmdArgs[1].Key, placement.KeyApplicationID: name,
		}},
		Status:  objects.Status{Node: node},
		Request: queuestest.Vector(d.Input + " pods=1"),
	})
	if d.HasArg("stuck") {
		why := reasons.New(reasons.NoNodeFits, "no node could take the pod")
		s.cluster.Store.NoNode(types.UID("uid-"+name), "", why, s.cluster.Now)
	}
}
