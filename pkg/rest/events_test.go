package rest

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/eventlog"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

const batchPath = "/ws/v1/events/batch"

type batch struct {
	InstanceUUID        string
	LowestID, HighestID uint64
	EventRecords        []event
}

type event struct {
	Type      int    `json:"type"`
	Object    string `json:"objectID"`
	Message   string `json:"message"`
	Nanos     int64  `json:"timestampNano"`
	Change    int    `json:"eventChangeType"`
	Detail    int    `json:"eventChangeDetail"`
	Reference string `json:"referenceID"`
	Resource  struct {
		Resources map[string]struct{ Value int64 }
	} `json:"resource"`
}

func (c *cluster) batch(t *testing.T, query string) batch {
	t.Helper()
	return read[batch](t, c, batchPath+query)
}

func (c *cluster) foreign(n int) {
	for range n {
		c.foreigners++
		c.Add(objects.Pod{
			Identity: objects.Identity{UID: types.UID(fmt.Sprint("f", c.foreigners))},
			Spec:     objects.Spec{Foreign: true}, Status: objects.Status{Node: "n"},
			Request: queuestest.Vector("vcore=1 pods=1"),
		})
	}
}

func TestEventBatch(t *testing.T) {
	c := newCluster(t, "")
	empty := c.batch(t, "")
	_, err := time.Parse(time.RFC3339, empty.InstanceUUID)
	expect.That(t, err != nil && len(empty.InstanceUUID) == 36, "instance: %s", empty.InstanceUUID)
	expect.That(t, empty.EventRecords != nil && empty.LowestID == 0 && empty.HighestID == 0, "%+v", empty)
	c.foreign(5)
	all := c.batch(t, "")
	expect.Same(t, "instance", empty.InstanceUUID, all.InstanceUUID)
	expect.That(t, all.LowestID == 0 && all.HighestID == 4, "%+v", all)
	want := event{Type: 3, Object: "n", Message: "foreign allocation: default", Nanos: c.Now.UnixNano(), Change: 2, Detail: 303, Reference: "f1"}
	want.Resource.Resources = map[string]struct{ Value int64 }{"vcore": {1000}, "pods": {1}}
	expect.Same(t, "", want, all.EventRecords[0])
	for query, want := range map[string][]string{
		"?count=2": {"f1", "f2"}, "?start=3": {"f4", "f5"}, "?start=1&count=1": {"f2"}, "?start=5": {}, "?start=18446744073709551615": {},
		"?count=18446744073709551615&start=4": {"f5"},
	} {
		got := c.batch(t, query)
		pods := []string{}
		for _, e := range got.EventRecords {
			pods = append(pods, e.Reference)
		}
		expect.Same(t, query, want, pods)
		expect.Same(t, query+": numbers", []uint64{0, 4}, []uint64{got.LowestID, got.HighestID})
	}
	for _, query := range []string{"?count=0", "?count=-1", "?count=x", "?start=-1", "?start=1.5"} {
		r, _ := c.do(http.MethodGet, batchPath+query)
		expect.Same(t, query, http.StatusBadRequest, r.Code)
	}
}

func TestEventBatchIsBounded(t *testing.T) {
	c := newCluster(t, "")
	c.server.options.Events = eventlog.New(c.Store.Follow(output.Facts), batchSize+5)
	c.foreign(batchSize + 10)
	all := c.batch(t, "?count=1000000")
	expect.Same(t, "records", batchSize, len(all.EventRecords))
	expect.Same(t, "numbers", []uint64{5, batchSize + 9}, []uint64{all.LowestID, all.HighestID})
	expect.Same(t, "the first one", "f6", all.EventRecords[0].Reference)
	old := c.batch(t, "?start=4")
	expect.That(t, len(old.EventRecords) == 0 && old.LowestID == 5, "records that are not kept: %+v", old)
}

// TestRecordsAreYuniKorns: each combination of numbers is one that its interface has.
func TestRecordsAreYuniKorns(t *testing.T) {
	known := readJSON(t, "testdata/events.json")
	c := busyCluster(t)
	_, why := c.Store.Commit("uid-a1", nil, c.Now) // its victims hear of it by records of type REQUEST
	expect.That(t, why.None(), "%s", why)
	seen := map[string]bool{}
	for _, e := range c.batch(t, "").EventRecords {
		changes, _ := known[fmt.Sprint(e.Type)].(map[string]any)
		details, _ := changes[fmt.Sprint(e.Change)].([]any)
		expect.That(t, slices.Contains(details, any(float64(e.Detail))),
			"YuniKorn has no records %d/%d/%d", e.Type, e.Change, e.Detail)
		expect.That(t, e.Object != "" && e.Nanos != 0, "record without object or time: %+v", e)
		seen[fmt.Sprint(e.Type)] = true
	}
	for kind := range known {
		expect.That(t, seen[kind], "no record of type %s", kind)
	}
}
