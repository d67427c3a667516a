package store

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// copyOf is a reader's copy of a store.
type copyOf struct {
	pods  map[types.UID]*output.PodRecord
	apps  map[uint64]*output.AppRecord
	nodes map[string]*output.NodeRecord
	rest  *output.Rest
	calls int
}

func newCopy() *copyOf {
	return &copyOf{pods: map[types.UID]*output.PodRecord{}, apps: map[uint64]*output.AppRecord{}, nodes: map[string]*output.NodeRecord{}}
}

// bite takes one portion of changes and tells whether there are more.
func (c *copyOf) bite(s *Store, limit int) bool {
	changes := s.TakeChanges(limit)
	for _, uid := range changes.GonePods {
		delete(c.pods, uid)
	}
	for _, serial := range changes.GoneApps {
		delete(c.apps, serial)
	}
	for _, name := range changes.GoneNodes {
		delete(c.nodes, name)
	}
	for _, r := range changes.Pods {
		c.pods[r.UID] = r
	}
	for _, r := range changes.Apps {
		c.apps[r.Serial] = r
	}
	for _, r := range changes.Nodes {
		c.nodes[r.Name] = r
	}
	c.rest = changes.Rest
	return c.rest == nil
}

// compare returns how a complete copy differs from the store.
func (c *copyOf) compare(s *Store) error {
	fresh := newCopy()
	for uid, p := range s.model.Pods {
		fresh.pods[uid] = s.model.RecordOf(p)
	}
	for _, a := range s.model.Apps.All() {
		fresh.apps[a.Serial] = s.model.RecordOfApp(a)
	}
	for n := range s.model.Cache.Nodes.All() {
		if n.Known() {
			fresh.nodes[n.Name()] = model.RecordOfNode(&model.SeenNode{Node: n})
		}
	}
	switch {
	case !reflect.DeepEqual(c.pods, fresh.pods):
		return fmt.Errorf("pods: the copy has %v, the store %v", c.pods, fresh.pods)
	case !reflect.DeepEqual(c.apps, fresh.apps):
		return fmt.Errorf("applications: the copy has %v, the store %v", c.apps, fresh.apps)
	case !reflect.DeepEqual(c.nodes, fresh.nodes):
		return fmt.Errorf("nodes: the copy has %v, the store %v", c.nodes, fresh.nodes)
	case c.rest.Queues != s.Snapshot() || c.rest.Holds != s.Holds() || c.rest.Spec != s.model.Cache.Spec || c.rest.Started != s.model.Started:
		return fmt.Errorf("the rest is not that of this moment: %+v", c.rest)
	}
	return nil
}

// read takes one portion, or all.
func (c *copyOf) read(s *Store) error {
	if c.calls++; c.calls%5 != 0 {
		c.bite(s, 2)
		return nil
	}
	for c.bite(s, 2) {
	}
	return c.compare(s)
}

// TestAStoreWithoutReaders: a store without a reader keeps nothing of objects that are gone.
func TestAStoreWithoutReaders(t *testing.T) {
	s := New(config.Default(), model.Options{})
	s.Start(epoch)
	for i := range 3 * model.FinishedKept {
		uid := types.UID(fmt.Sprint("u", i))
		s.UpsertNode(string(uid), resources.Vector{}, epoch)
		p := newPod(string(uid), "", string(uid), queuestest.Vector("pods=1"))
		p.Node = string(uid)
		s.Upsert(p, epoch)
		s.Delete(uid, epoch)
		s.DeleteNode(string(uid), epoch)
	}
	if r := &s.model.History; !r.Empty() {
		t.Errorf("remembers %d pods, %d applications, %d nodes", r.Pods.Len(), r.Apps.Len(), r.Nodes.Len())
	}
	last := s.TakeChanges(1).Rest.Finished
	if len(last) != model.FinishedKept || last[0].ID != fmt.Sprint("u", 2*model.FinishedKept) || last[model.FinishedKept-1].ID != fmt.Sprint("u", 3*model.FinishedKept-1) {
		t.Errorf("%d finished applications, from %s to %s", len(last), last[0].ID, last[len(last)-1].ID)
	}
}

func TestTimesOfAnApplication(t *testing.T) {
	s := New(config.Default(), model.Options{})
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	s.Start(at(0))
	p := newPod("u", "", "a", queuestest.Vector("pods=1 vcore=5m"))
	p.Created = at(-5)
	s.Upsert(p, at(1))
	p.Node = "n"
	s.Upsert(p, at(2))
	p.Request = queuestest.Vector("pods=1 vcore=3m memory=7")
	s.Upsert(p, at(3))
	running := s.TakeChanges(10)
	s.Delete("u", at(4))
	over := s.TakeChanges(10)
	if len(running.Apps) != 1 || len(over.GoneApps) != 1 || over.GoneApps[0] != running.Apps[0].Serial || len(over.Rest.Finished) != 1 {
		t.Fatalf("running: %+v\nover: %+v", running, over)
	}
	a, f := running.Apps[0], over.Rest.Finished[0]
	expect.That(t, a.Submitted.Equal(at(-5)) && a.Accepted.Equal(at(1)) && a.Running.Equal(at(2)) &&
		a.Finished.IsZero(), "running: %+v", a)
	expect.That(t, f.Accepted.Equal(at(1)) && f.Running.Equal(at(2)) && f.Finished.Equal(at(4)),
		"over: %+v", f)
	expect.Same(t, "most used", "memory=7 pods=1 vcore=5", f.MostUsed.String())
}
