package documents

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// TestUntilIsShownOnceAHoldIsClear: the store says when a hold ends. It is shown once no victim is left
// and none may still be chosen.
func TestUntilIsShownOnceAHoldIsClear(t *testing.T) {
	end := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v := &inventory.View{Rest: output.Rest{Until: map[types.UID]time.Time{"a": end}}}
	for name, c := range map[string]struct {
		hold reservations.Hold
		want time.Time
	}{
		"clear":                {reservations.Hold{Asker: "a"}, end},
		"a victim is left":     {reservations.Hold{Asker: "a", Awaited: []types.UID{"v"}}, time.Time{}},
		"none is decided yet":  {reservations.Hold{Asker: "a", Note: "it waits"}, time.Time{}},
		"its asker has a node": {reservations.Hold{Asker: "placed"}, time.Time{}},
	} {
		expect.Same(t, name, c.want, HoldOf(v, &c.hold).Until)
	}
}

func TestAHoldNamesWhatItWaitsFor(t *testing.T) {
	v := &inventory.View{InHolds: map[types.UID]*inventory.Pod{}}
	h := reservations.Hold{Node: "n1", Awaited: []types.UID{"elsewhere", "foreign", "victim"}}
	for _, uid := range h.Awaited {
		v.InHolds[uid] = &inventory.Pod{PodRecord: &output.PodRecord{
			Pod: &objects.Pod{Identity: objects.Identity{UID: uid, Namespace: "ns", Name: string(uid)}},
		}}
	}
	for _, l := range HoldOf(v, &h).WaitsFor {
		expect.Same(t, "name of "+string(l.UID), string(l.UID), l.Name)
	}
}
