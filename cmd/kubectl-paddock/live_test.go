package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// now is the moment at which everything happens.
var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// live serves a store.
func (s *session) live(t *testing.T, d *datadriven.TestData) {
	spec, err := config.Parse([]byte(d.Input))
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	s.store = store.New(spec, store.Options{})
	s.store.Start(now)
	s.serve(t, handler(rest.Options{
		Inventory: inventory.New(s.store), Explainer: s.store, Clock: clocktesting.NewFakeClock(now),
		Previewer: func() rest.Previewer { return previews{} },
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

// pod adds a pod to the store.
func (s *session) pod(t *testing.T, d *datadriven.TestData) {
	name := d.CmdArgs[0].Key
	p := objects.Pod{
		Identity: objects.Identity{
			UID: types.UID("uid-" + name), Namespace: "team", Name: name, Created: now,
			Labels: map[string]string{placement.KeyQueue: d.CmdArgs[1].Key, placement.KeyApplicationID: name},
		},
		Request: queuestest.Vector(d.Input + " pods=1"),
	}
	d.MaybeScanArgs(t, "node", &p.Node)
	s.store.Upsert(p, now)
	if d.HasArg("stuck") {
		s.store.NoNode(p.UID, "", reasons.New(reasons.NoNodeFits, "no node could take the pod"), now)
	}
}
