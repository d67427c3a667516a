package queues_test

import (
	"fmt"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
)

// use adds to what a queue and its ancestors have allocated and admitted.
func use(t *testing.T, d *queues.Draft, path, allocated, admitted string) {
	t.Helper()
	d.Update(id(t, d, path), func(u *queues.Usage) {
		u.Allocated = u.Allocated.Add(queuestest.Vector(allocated))
		u.Admitted = u.Admitted.Add(queuestest.Vector(admitted))
	})
}

func TestAdmit(t *testing.T) {
	d := draft(t, `
root
  p max.vcore=10 max.gpu=0
    a max.vcore=4
    b
  q max.memory=2Gi`)
	use(t, d, "root.p.a", "vcore=3 memory=1Gi", "vcore=500m")
	use(t, d, "root.p.b", "vcore=5", "")
	use(t, d, "root.q", "memory=3Gi", "")
	d.SetCapacity(queuestest.Vector("vcore=1"))
	for _, c := range []struct {
		leaf, ask string
		on        queues.Basis
		want      string
	}{
		{"root.p.a", "vcore=1", queues.OnAllocated, ""},
		{"root.p.a", "vcore=1", queues.OnCommitted,
			"OverMax: queue root.p.a: vcore used 3.5 (with pods about to be placed), requested 1, max 4"},
		{"root.p.a", "vcore=1001m", queues.OnAllocated, "OverMax: queue root.p.a: vcore used 3, requested 1.001, max 4"},
		{"root.p.b", "vcore=2", queues.OnAllocated, ""},
		{"root.p.b", "vcore=2", queues.OnCommitted, "OverMax: queue root.p: vcore used 8.5 (with pods about to be placed), requested 2, max 10"},
		{"root.p.b", "memory=100Gi", queues.OnCommitted, ""},
		{"root.p.b", "gpu=1", queues.OnAllocated, "OverMax: queue root.p: gpu used 0, requested 1, max 0: it can never start, because the request alone is more"},
		// Over its max in memory already: only asks for memory mind.
		{"root.q", "vcore=7 pods=1", queues.OnAllocated, ""},
		{"root.q", "memory=1 pods=1", queues.OnAllocated, "OverMax: queue root.q: memory used 3Gi, requested 1, max 2Gi"},
		// The nodes are never in the way.
		{"root.p.b", "tape=5", queues.OnAllocated, ""},
		{"root.p.b", "", queues.OnCommitted, ""},
	} {
		v := queues.Admit(d, id(t, d, c.leaf), queuestest.Vector(c.ask), c.on)
		expect.Same(t, c.leaf+" asks "+c.ask, c.want, v.Reason.String())
		granted := c.want == ""
		expect.Same(t, c.leaf+" asks "+c.ask, []bool{granted, granted}, []bool{v.OK(), v.At == queues.NoQueue})
	}
}

func TestHeadroom(t *testing.T) {
	d := draft(t, `
root
  p max.vcore=10 max.memory=1Gi
    a max.vcore=4
    b max.gpu=0
  q`)
	use(t, d, "root.p.a", "vcore=5", "vcore=1")
	use(t, d, "root.p.b", "vcore=1 memory=2Gi", "")
	for path, want := range map[string]string{
		"root.p.a": "memory=-1Gi vcore=-1",
		"root.p.b": "gpu=0 memory=-1Gi vcore=4",
		"root.p":   "memory=-1Gi vcore=4",
		"root.q":   "",
		"root":     "",
	} {
		expect.Same(t, "headroom of "+path, want, queuestest.Amounts(queues.Headroom(d, id(t, d, path)).All()))
	}
}

func TestMaySubmit(t *testing.T) {
	d := draft(t, `
root submit=boss
  open submit=*
    leaf
  team submit=alice,bob/devs admin=/ops
    leaf
  shut`)
	for _, c := range []struct {
		path, user string
		groups     []string
		want       bool
	}{
		{"root.open.leaf", "anybody", nil, true},
		{"root.team.leaf", "bob", nil, true},
		{"root.team.leaf", "eve", []string{"users", "devs"}, true},
		{"root.team.leaf", "eve", []string{"ops"}, true},
		{"root.team.leaf", "eve", []string{"users"}, false},
		{"root.team.leaf", "devs", nil, false},
		{"root.team.leaf", "eve", []string{"alice"}, false},
		{"root.team.leaf", "boss", nil, true},
		{"root.shut", "boss", nil, true},
		{"root.shut", "alice", []string{"devs", "ops"}, false},
		{"root.shut", "", []string{""}, false},
	} {
		what := fmt.Sprintf("%s of %v to %s", c.user, c.groups, c.path)
		expect.Same(t, what, c.want, queues.MaySubmit(d, id(t, d, c.path), c.user, c.groups))
	}
}

func TestRank(t *testing.T) {
	d := draft(t, `
root
  plain
  up props=priority.offset:1000
    low props=priority.offset:-10
    high props=priority.offset:2147483647
  bounds props=priority.offset:-2147483648
    high props=priority.offset:2147483647
    low
  pinned props=priority.policy:fence,priority.offset:7
    in props=priority.offset:50
  flat props=application.sort.priority:disabled
    leaf
    own props=application.sort.priority:enabled`)
	for _, c := range []struct {
		path string
		p    int32
		want int64
	}{
		{"root.plain", 5, 5},
		{"root.plain", -5, -5},
		{"root.plain", 2_000_001_000, 1_000_000_000},
		{"root.up.low", 20, 1010},
		{"root.up.high", 1, 1_000_000_000},
		{"root.bounds.high", 2147483647, -1}, // each queue clamps to 32 bits
		{"root.bounds.low", -1, -2147483648},
		{"root.pinned.in", 900, 7},
		{"root.flat.leaf", 900, 0},
		{"root.flat.own", 900, 0},
	} {
		expect.Same(t, fmt.Sprintf("rank of %d in %s", c.p, c.path), c.want, queues.Rank(d, id(t, d, c.path), c.p))
	}
	off := draft(t, "root props=application.sort.priority:disabled\n  a props=application.sort.priority:enabled")
	expect.Same(t, "rank below a root that does not sort by priority", int64(0), queues.Rank(off, id(t, off, "root.a"), 9))
}
