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
		if v.Reason.String() != c.want || v.OK() != (c.want == "") {
			t.Errorf("%s asks %s: got %q, want %q", c.leaf, c.ask, v.Reason, c.want)
		}
		if v.OK() != (v.At == queues.NoQueue) {
			t.Errorf("%s asks %s: refused at queue %d", c.leaf, c.ask, v.At)
		}
	}
}

func TestAdmitApplication(t *testing.T) {
	d := draft(t, `
root maxapps=3
  p maxapps=2
    a maxapps=1
    b maxapps=2
  q`)
	run := func(path string) { d.Update(id(t, d, path), func(u *queues.Usage) { u.Running++ }) }
	expect := func(path, want string) {
		t.Helper()
		expect.Same(t, path, want, queues.AdmitApplication(d, id(t, d, path), queues.OnCommitted).Reason.Text)
	}
	expect("root.p.a", "")
	run("root.p.a")
	expect("root.p.a", "queue root.p.a: 1 application running, maxapplications 1")
	expect("root.p.b", "")
	run("root.p.b")
	expect("root.p.b", "queue root.p: 2 applications running, maxapplications 2")
	expect("root.q", "")
	run("root.q")
	expect("root.q", "queue root: 3 applications running, maxapplications 3")
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
		if got := queues.MaySubmit(d, id(t, d, c.path), c.user, c.groups); got != c.want {
			t.Errorf("%s of %v to %s: %v", c.user, c.groups, c.path, got)
		}
	}
}

// The examples of YuniKorn's user guide on priorities.
func TestExposed(t *testing.T) {
	expose := func(d *queues.Draft, path string, p int64) map[string]int64 {
		got := map[string]int64{}
		for q := range d.Ancestors(id(t, d, path)) {
			if !q.IsRoot() {
				p = queues.Exposed(p, q.Policies)
				got[q.Path] = p
			}
		}
		return got
	}
	for _, c := range []struct {
		tree string
		p    int64
		leaf int64
		top  int64
	}{
		{"leaf props=priority.offset:3", 0, 3, 8},
		{"leaf props=priority.offset:3", 5, 8, 13},
		{"leaf props=priority.offset:3,priority.policy:fence", 0, 3, 8},
		{"leaf props=priority.offset:3,priority.policy:fence", 5, 3, 8},
		{"leaf props=priority.offset:2147483647", 2147483647, 2147483647, 2147483647},
		{"leaf props=priority.offset:-2147483648", -2147483648, -2147483648, -2147483643},
	} {
		d := draft(t, "root\n  parent props=priority.offset:5\n    "+c.tree)
		want := map[string]int64{"root.parent.leaf": c.leaf, "root.parent": c.top}
		expect.Same(t, fmt.Sprintf("%s, ask of %d", c.tree, c.p), want, expose(d, "root.parent.leaf", c.p))
	}
}

func TestRank(t *testing.T) {
	d := draft(t, `
root
  plain
  up props=priority.offset:1000
    low props=priority.offset:-10
    high props=priority.offset:2147483647
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
		{"root.pinned.in", 900, 7},
		{"root.flat.leaf", 900, 0},
		{"root.flat.own", 900, 0},
	} {
		expect.Same(t, fmt.Sprintf("rank of %d in %s", c.p, c.path), c.want, queues.Rank(d, id(t, d, c.path), c.p))
	}
	off := draft(t, "root props=application.sort.priority:disabled\n  a props=application.sort.priority:enabled")
	if got := queues.Rank(off, id(t, off, "root.a"), 9); got != 0 {
		t.Errorf("rank below a root that does not sort by priority: %d", got)
	}
}
