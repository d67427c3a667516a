package inventory_test

import (
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// A pod that was made anew under its name is found, whichever of the two is told of last.
func TestFind(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := store.New(config.Default(), store.Options{})
	s.Start(now)
	i := inventory.New(s)
	expect := func(namespace string, want types.UID) {
		t.Helper()
		var got types.UID
		if p := i.Find(namespace, "a"); p != nil {
			got = p.UID
		}
		if got != want {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	expect("ns", "")
	s.Upsert(objects.Pod{Identity: objects.Identity{UID: "old", Namespace: "ns", Name: "a", Created: now}}, now)
	expect("ns", "old")
	expect("other", "")
	s.Upsert(objects.Pod{Identity: objects.Identity{UID: "new", Namespace: "ns", Name: "a", Created: now.Add(1)}}, now)
	expect("ns", "new")
	s.Delete("old", now)
	expect("ns", "new")
	s.Delete("new", now)
	expect("ns", "")
}
