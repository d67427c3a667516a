package main

import (
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/queues/store"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest"
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
	s.serve(t, rest.NewServer(rest.Options{
		Inventory: inventory.New(s.store), Explainer: s.store, Clock: clocktesting.NewFakeClock(now),
	}).Handler())
}

// pod adds a pod to the store.
func (s *session) pod(t *testing.T, d *datadriven.TestData) {
	name := d.CmdArgs[0].Key
	p := store.Pod{
		UID: types.UID("uid-" + name), Namespace: "team", Name: name, Created: now,
		Labels:  map[string]string{placement.KeyQueue: d.CmdArgs[1].Key, placement.KeyApplicationID: name},
		Request: queuestest.Vector(d.Input + " pods=1"),
	}
	d.MaybeScanArgs(t, "node", &p.Node)
	s.store.Upsert(p, now)
	if d.HasArg("stuck") {
		s.store.Failed(p.UID, "", reasons.New(reasons.NoNodeFits, "no node could take the pod"), now)
	}
}
