package queues_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

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
		"root.p.a": "memory=-1Gi vcore=-1", "root.p.b": "gpu=0 memory=-1Gi vcore=4",
		"root.p": "memory=-1Gi vcore=4", "root.q": "", "root": "",
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
		{"root.team.leaf", "eve", []string{"users"}, false}, {"root.team.leaf", "devs", nil, false},
		{"root.team.leaf", "eve", []string{"alice"}, false}, {"root.team.leaf", "boss", nil, true},
		{"root.shut", "boss", nil, true}, {"root.shut", "alice", []string{"devs", "ops"}, false},
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
		{"root.plain", 5, 5}, {"root.plain", -5, -5}, {"root.plain", 2_000_001_000, 1_000_000_000},
		{"root.up.low", 20, 1010}, {"root.up.high", 1, 1_000_000_000},
		{"root.bounds.high", 2147483647, -1}, {"root.bounds.low", -1, -2147483648}, // each queue clamps to 32 bits
		{"root.pinned.in", 900, 7}, {"root.flat.leaf", 900, 0}, {"root.flat.own", 900, 0},
	} {
		expect.Same(t, fmt.Sprintf("rank of %d in %s", c.p, c.path), c.want, queues.Rank(d, id(t, d, c.path), c.p))
	}
	off := draft(t, "root props=application.sort.priority:disabled\n  a props=application.sort.priority:enabled")
	expect.Same(t, "rank below a root that does not sort by priority", int64(0), queues.Rank(off, id(t, off, "root.a"), 9))
}

// A named group anywhere on the way to root beats a wildcard below it; the
// user's groups are tried in their order at each queue, leaf first.
func TestGroupFor(t *testing.T) {
	d := draft(t, `
root limit=/dev,ops;max.vcore=9
  a limit=/qa;max.vcore=5 limit=/*;max.vcore=1
    leaf limit=/lab;max.vcore=2 limit=bob;max.vcore=2
  b
  c limit=/ops;max.vcore=1`)
	free := draft(t, "root\n  a")
	for _, c := range []struct {
		path   string
		groups []string
		want   string
	}{
		{"root.a.leaf", []string{"dev", "lab"}, "lab"},
		{"root.a.leaf", []string{"dev", "qa"}, "qa"},
		{"root.a.leaf", []string{"guests", "dev"}, "dev"}, {"root.a.leaf", []string{"guests"}, "*"},
		{"root.a.leaf", nil, "*"},
		{"root.b", []string{"guests"}, ""}, {"root.b", []string{"ops", "dev"}, "ops"},
		{"root.b", []string{"dev", "ops"}, "dev"}, {"root.c", []string{"dev", "ops"}, "ops"},
	} {
		expect.Same(t, fmt.Sprintf("group of %v in %s", c.groups, c.path), c.want, queues.GroupFor(d, id(t, d, c.path), c.groups))
	}
	expect.Same(t, "group without a limit", "", queues.GroupFor(free, id(t, free, "root.a"), []string{"dev"}))
}

func charge(t *testing.T, l *queues.Ledger, d *queues.Draft, path string, o queues.Owner, allocated, admitted string, running int) {
	t.Helper()
	l.Update(d, id(t, d, path), o, func(u *queues.OwnerUsage) {
		u.Allocated = u.Allocated.Add(queuestest.Vector(allocated))
		u.Admitted = u.Admitted.Add(queuestest.Vector(admitted))
		u.Running += running
	})
}

func TestLedgerAdmit(t *testing.T) {
	d := draft(t, `
root limit=alice;max.vcore=10 limit=*;max.vcore=3 limit=/dev;max.vcore=6
  a limit=bob;max.vcore=2
  b limit=/*;max.memory=1Gi`)
	l := queues.NewLedger()
	alice, bob, carol := queues.Owner{User: "alice"}, queues.Owner{User: "bob", Group: "dev"}, queues.Owner{User: "carol", Group: "dev"}
	charge(t, l, d, "root.a", alice, "vcore=5", "", 0)
	charge(t, l, d, "root.a", bob, "vcore=1", "vcore=1", 0)
	charge(t, l, d, "root.b", carol, "vcore=3", "", 0)
	eve := queues.Owner{User: "eve"}
	l.Update(d, id(t, d, "root.a"), eve, func(u *queues.OwnerUsage) { u.Arriving = queuestest.Vector("vcore=2") })
	for _, c := range []struct {
		path     string
		owner    queues.Owner
		ask      string
		on       queues.Basis
		want, at string
	}{
		// Named beats wildcard, whichever is stricter.
		{"root.b", alice, "vcore=5", queues.OnCommitted, "", ""},
		{"root.b", alice, "vcore=6", queues.OnCommitted, "OverUserLimit: user alice in queue root: vcore used 5, requested 6, limit 10", "root"},
		{"root.a", bob, "vcore=1", queues.OnAllocated, "", ""},
		{"root.a", bob, "vcore=1", queues.OnCommitted, "OverUserLimit: user bob in queue root.a: vcore used 2 (with pods about to be placed), requested 1, limit 2", "root.a"},
		// The wildcard is for each user on his own, the group is for all of it together.
		{"root.b", bob, "vcore=1", queues.OnAllocated, "", ""},
		{"root.b", bob, "vcore=2", queues.OnCommitted, "OverUserLimit: user bob in queue root: vcore used 2 (with pods about to be placed), requested 2, limit 3", "root"},
		{"root.b", queues.Owner{User: "dora", Group: "dev"}, "vcore=3", queues.OnCommitted,
			"OverGroupLimit: group dev in queue root: vcore used 5 (with pods about to be placed), requested 3, limit 6", "root"},
		{"root.b", queues.Owner{User: "dora"}, "vcore=3", queues.OnCommitted, "", ""},
		{"root.b", queues.Owner{User: "dora", Group: "*"}, "memory=2Gi", queues.OnCommitted,
			"OverGroupLimit: group * in queue root.b: memory used 0, requested 2Gi, limit 1Gi: it can never start, because the request alone is more", "root.b"},
		{"root.a", eve, "vcore=2", queues.OnArriving,
			"OverUserLimit: user eve in queue root: vcore used 2 (with pods that hold a node), requested 2, limit 3", "root"},
		// A type without a limit is not looked at.
		{"root.a", bob, "memory=100Gi", queues.OnCommitted, "", ""},
	} {
		v := l.Admit(d, id(t, d, c.path), c.owner, queuestest.Vector(c.ask), c.on)
		what := fmt.Sprintf("%s asks %s in %s", c.owner.User, c.ask, c.path)
		if expect.Same(t, what, c.want, v.Reason.String()); c.at != "" {
			expect.Same(t, what+": refused at", c.at, d.Queue(v.At).Path)
		}
	}
}

// Usage is kept where there is a limit and is gone when it is given back.
func TestLedgerUsage(t *testing.T) {
	d := draft(t, `
root
  a limit=*;max.vcore=9
    leaf
  b`)
	l, empty := queues.NewLedger(), queues.NewLedger()
	bob := queues.Owner{User: "bob", Group: "dev"}
	charge(t, l, d, "root.b", bob, "vcore=1", "", 1)
	expect.That(t, l.Equal(empty), "usage is kept without a limit")
	charge(t, l, d, "root.a.leaf", bob, "vcore=1", "vcore=2", 1)
	at := id(t, d, "root.a")
	want := queues.OwnerUsage{Allocated: queuestest.Vector("vcore=1"), Admitted: queuestest.Vector("vcore=2"), Running: 1}
	for name, group := range map[string]bool{"bob": false, "dev": true} {
		expect.Same(t, "usage of "+name, want, l.Usage(at, group, name))
	}
	expect.That(t, !l.Equal(empty) && !empty.Equal(l), "a ledger with usage equals one without")
	charge(t, l, d, "root.a.leaf", bob, "vcore=-1", "vcore=-2", -1)
	expect.That(t, l.Equal(empty), "usage that was given back is still there")
}

// TestDemandOnTop: what is added to a demand on top of another one is refused beside both,
// and the other one does not have it.
func TestDemandOnTop(t *testing.T) {
	tree := draft(t, "root\n  a max.vcore=3 maxapps=2")
	leaf, one := id(t, tree, "root.a"), queuestest.Vector("vcore=1")
	below := queues.NewDemand()
	below.Add(tree, leaf, queues.Owner{}, one, true)
	top := below.OnTop()
	top.Add(tree, leaf, queues.Owner{}, one, true)
	for d, fits := range map[*queues.Demand]bool{top: false, below: true} {
		on := queues.OnDemand(d)
		expect.Same(t, "two more fit", fits, queues.Admit(tree, leaf, one.Add(one), on).OK())
		expect.Same(t, "another application starts", fits, queues.AdmitApplication(tree, leaf, on).OK())
	}
}

// TestTightProperty: no queue is tight for a demand on top of another one exactly if every
// quota allows its pods one after another, in any order.
func TestTightProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := func(what string) int { return rapid.IntRange(2, 5).Draw(rt, what) }
		apps := func(what string) int { return rapid.IntRange(1, 4).Draw(rt, "applications of "+what) }
		tree := draft(t, fmt.Sprintf(`
root maxapps=%d limit=alice;max.vcore=%d;maxapps=%d limit=/dev;max.vcore=%d;maxapps=%d
  a max.vcore=%d maxapps=%d
    b max.vcore=%d limit=*;max.vcore=%d;maxapps=%d
  c`, apps("root"), n("alice"), apps("alice"), n("dev"), apps("dev"), n("a"), apps("a"), n("b"), n("user of b"), apps("user of b")))
		use(t, tree, "root.a.b", fmt.Sprintf("vcore=%d", n("used")-2), "")
		ledger, before, all := queues.NewLedger(), queues.NewDemand(), queues.NewDemand()
		leaf := func(what string) queues.ID {
			return id(t, tree, rapid.SampledFrom([]string{"root.a.b", "root.c"}).Draw(rt, what))
		}
		before.Add(tree, leaf("leaf before"), queues.Owner{User: "alice"}, queuestest.Vector("vcore=1"), true)
		type pod struct {
			leaf   queues.ID
			owner  queues.Owner
			vcore  string
			starts bool
		}
		var pods []pod
		for range rapid.IntRange(0, 4).Draw(rt, "pods") {
			pods = append(pods, pod{
				leaf("leaf"),
				queues.Owner{User: rapid.SampledFrom([]string{"alice", "bob"}).Draw(rt, "user"), Group: rapid.SampledFrom([]string{"", "dev"}).Draw(rt, "group")},
				fmt.Sprintf("vcore=%d", rapid.IntRange(0, 2).Draw(rt, "request")), rapid.Bool().Draw(rt, "starts"),
			})
		}
		for _, p := range pods {
			all.Add(tree, p.leaf, p.owner, queuestest.Vector(p.vcore), p.starts)
		}
		sum, allowed := before.OnTop(), true
		for _, p := range rapid.Permutation(pods).Draw(rt, "order") {
			on, request := queues.OnDemand(sum), queuestest.Vector(p.vcore)
			allowed = allowed && queues.Admit(tree, p.leaf, request, on).OK() && ledger.Admit(tree, p.leaf, p.owner, request, on).OK()
			if p.starts {
				allowed = allowed && queues.AdmitApplication(tree, p.leaf, on).OK() && ledger.AdmitApplication(tree, p.leaf, p.owner, on).OK()
			}
			sum.Add(tree, p.leaf, p.owner, request, p.starts)
		}
		if tight := all.Tight(tree, ledger, queues.OnDemand(before)); (len(tight) == 0) != allowed {
			rt.Fatalf("all are allowed one after another: %v; tight: %v", allowed, tight)
		}
	})
}
