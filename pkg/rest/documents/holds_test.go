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

// TestUntilIsWhenAHoldTimesOut: the time-out counts from the begin of a hold without victims,
// otherwise from when they were gone, and no later than from the bound of the hold. A hold does
// not time out while its asker has a node.
func TestUntilIsWhenAHoldTimesOut(t *testing.T) {
	began, chosen := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), []types.UID{"v"}
	after := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	v := &inventory.View{Rest: output.Rest{HoldTimeout: 10 * time.Minute}, InHolds: map[types.UID]*inventory.Pod{
		"placed": {PodRecord: &output.PodRecord{Node: "n1"}}, "waits": {PodRecord: &output.PodRecord{}},
	}}
	for name, c := range map[string]struct {
		hold reservations.Hold
		want time.Time
	}{
		"pods left anyway": {reservations.Hold{Since: began, ClearSince: after(5)}, after(10)},
		"victims went":     {reservations.Hold{Since: began, ClearSince: after(5), Chosen: chosen, LatestFrom: after(10)}, after(15)},
		"it is placed":     {reservations.Hold{Asker: "placed", Since: began, ClearSince: after(5)}, time.Time{}},
		"it waits":         {reservations.Hold{Asker: "waits", Since: began, ClearSince: after(5)}, after(10)},
		"victims went late": {
			reservations.Hold{Since: began, ClearSince: after(14), Chosen: chosen, LatestFrom: after(10)}, after(20),
		},
	} {
		expect.Same(t, name, c.want, HoldOf(v, &c.hold).Until)
	}
}

func TestAHoldNamesWhatItWaitsFor(t *testing.T) {
	v := &inventory.View{InHolds: map[types.UID]*inventory.Pod{}}
	h := reservations.Hold{Node: "n1", Waits: reservations.Waits{Awaited: []types.UID{"elsewhere", "foreign", "victim"}}}
	for _, uid := range h.Awaited {
		v.InHolds[uid] = &inventory.Pod{PodRecord: &output.PodRecord{
			Pod: &objects.Pod{Identity: objects.Identity{UID: uid, Namespace: "ns", Name: string(uid)}},
		}}
	}
	for _, l := range HoldOf(v, &h).WaitsFor {
		expect.Same(t, "name of "+string(l.UID), string(l.UID), l.Name)
	}
}
