package reservations

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

var start = time.Unix(1000, 0)

// hold returns a hold with one chosen victim that is gone and the given victims that are not.
func hold(asker, node string, victims ...types.UID) Hold {
	chosen := append([]types.UID{"gone"}, victims...)
	return Hold{Asker: types.UID(asker), Namespace: "ns", Name: asker, Node: node, Since: start, Awaited: victims, Chosen: chosen}
}

// but returns a function for Ledger.Overdue that counts each time-out from when the hold
// is clear, and exempts some askers.
func but(busy ...types.UID) From {
	return func(asker types.UID, clear time.Time) (time.Time, bool) { return clear, !slices.Contains(busy, asker) }
}

func required(h Hold, priority int32, created time.Time) Hold {
	h.NodeBound, h.Priority, h.Created = true, priority, created
	return h
}

func place(t *testing.T, l *Ledger, holds ...Hold) {
	t.Helper()
	for _, h := range holds {
		expect.OK(t, l.Place(h))
		expect.OK(t, l.Check())
	}
}

// due fails a test unless the next time-out of a minute is so long after the start.
func due(t *testing.T, l *Ledger, from From, want time.Duration) {
	t.Helper()
	at, ok := l.NextDue(time.Minute, from)
	expect.That(t, ok && at.Sub(start) == want, "next due after %v (%v), want %v", at.Sub(start), ok, want)
}

// overdue fails a test unless these holds, by time, timed out a minute ago at least.
func overdue(t *testing.T, l *Ledger, from From, after time.Duration, want ...types.UID) {
	t.Helper()
	got := askers(l.Overdue(start.Add(after), time.Minute, from))
	expect.Same(t, fmt.Sprint("overdue after ", after), want, got)
}

func askers(holds []Hold) (out []types.UID) {
	for _, h := range holds {
		out = append(out, h.Asker)
	}
	return out
}

func TestPlaceRefusesWhatCannotBe(t *testing.T) {
	l := NewLedger()
	place(t, l, hold("a", "n1"))
	for want, h := range map[string]Hold{
		"the asker has no UID":           hold("", "n1"),
		"no node is named":               hold("b", ""),
		"it has no beginning":            {Asker: "b", Node: "n1", NodeBound: true},
		"no pod was chosen to go for it": {Asker: "b", Node: "n1", Since: start, Awaited: []types.UID{"v"}},
		"it holds node n1":               hold("a", "n2"),
	} {
		expect.Fails(t, l.Place(h), want)
	}
}

func TestTheTimeOutCountsFromTheLastVictim(t *testing.T) {
	l := NewLedger()
	place(t, l, hold("slow", "n1", "v"), hold("clear", "n2"))
	due(t, l, but(), time.Minute)
	l.Commit("slow", start.Add(time.Hour))
	overdue(t, l, but(), time.Hour, "clear") // the pods of the other one were told to go just now
	overdue(t, l, but(), time.Hour+time.Minute, "clear", "slow")
	l.VictimGone("v", start.Add(time.Hour))
	overdue(t, l, but(), time.Hour+time.Minute-1, "clear")
	overdue(t, l, but(), time.Hour+time.Minute, "clear", "slow")
}

// A pod that was not chosen and is gone left anyway.
func TestTheTimeOutCountsFromTheBeginIfNoPodWasChosen(t *testing.T) {
	l, without := NewLedger(), required(hold("without", "n1", "v"), 0, start)
	without.Chosen = nil
	place(t, l, without)
	l.VictimGone("v", start.Add(50*time.Second))
	due(t, l, but(), time.Minute)
}

func TestAPodThatStaysIsNotAwaited(t *testing.T) {
	l, without := NewLedger(), required(hold("without", "n1", "v"), 0, start)
	without.Chosen = nil
	place(t, l, without, hold("with", "n2", "v"), hold("both", "n2", "v", "w"))
	expect.Same(t, "they waited", []types.UID{"both", "with", "without"}, l.VictimStays("v"))
	for asker, want := range map[types.UID]time.Time{"without": start, "with": start, "both": {}} {
		h, _ := l.Of(asker)
		expect.Same(t, string(asker)+" is clear since", want, h.ClearSince)
	}
	expect.Same(t, "they wait for a pod that stays", []types.UID(nil), l.VictimStays("v"))
}

// It does not matter that pods were told to go later.
func TestTheTimeOutIsBounded(t *testing.T) {
	l, again := NewLedger(), required(hold("again", "n1", "v"), 0, start)
	again.LatestFrom = start.Add(time.Minute)
	place(t, l, again, hold("late", "n2", "w"))
	for _, asker := range []types.UID{"late", "again"} {
		l.Commit(asker, start.Add(time.Hour))
	}
	expect.OK(t, l.Check())
	due(t, l, but(), 2*time.Minute)
	overdue(t, l, but(), 2*time.Minute, "again")
}

// A time-out may count from a time later than when the hold became clear.
func TestTimeOutCountsFromALaterTime(t *testing.T) {
	l := NewLedger()
	place(t, l, hold("a", "n1"), hold("b", "n2"), hold("c", "n3", "v"))
	l.VictimGone("v", start.Add(time.Second))
	from := func(asker types.UID, clear time.Time) (time.Time, bool) {
		if asker == "a" {
			clear = start.Add(time.Hour)
		}
		return clear, asker != "b"
	}
	due(t, l, from, time.Minute+time.Second)
	overdue(t, l, from, 2*time.Minute, "c")
	overdue(t, l, from, time.Hour+time.Minute, "a", "c")
}

// The older asker is first, even if the other one has held the node for longer.
func TestHoldersAreServedInOrder(t *testing.T) {
	l := NewLedger()
	late := required(hold("old", "n1"), 5, start)
	late.Since = start.Add(time.Hour)
	place(t, l,
		hold("second", "n1"), hold("first", "n2"),
		required(hold("low", "n1"), 1, start),
		required(hold("young", "n1"), 5, start.Add(time.Second)),
		late,
		required(hold("twin", "n1"), 5, start),
		hold("third", "n1"))
	expect.Same(t, "", []types.UID{"old", "twin", "young", "low", "second", "third"}, askers(l.On("n1")))
}

func TestMayUse(t *testing.T) {
	ordinary, daemon := NewLedger(), NewLedger()
	place(t, ordinary, hold("a", "n1"), hold("b", "n1"), hold("c", "n3"))
	binding := NewLedger()
	committed := hold("a", "n1")
	committed.Chosen = []types.UID{"v"}
	place(t, binding, committed)
	binding.Commit("a", start)
	place(t, daemon, hold("a", "n1"), required(hold("d1", "n1"), 9, start), required(hold("d2", "n1"), 1, start))
	placed := NewLedger()
	place(t, placed, hold("a", "n1"), required(hold("d1", "n1"), 9, start), required(hold("d2", "n2"), 9, start), hold("a2", "n2"))
	placed.SetPlaced("d1", true)
	placed.SetPlaced("a", true)
	placed.SetPlaced("d2", true)
	placed.SetPlaced("d2", false)
	for _, c := range []struct {
		name     string
		ledger   *Ledger
		node     string
		pod      types.UID
		required bool
		want     types.UID // the blocking holder; empty for none
	}{
		{"a node without a hold", ordinary, "n2", "x", false, ""},
		{"a stranger", ordinary, "n1", "x", false, "a"},
		{"the holder", ordinary, "n1", "a", false, ""},
		{"the later of two ordinary holders", ordinary, "n1", "b", false, ""},
		{"a holder on another node, no victim disrupted yet", ordinary, "n2", "a", false, ""},
		{"a holder on another node", binding, "n2", "a", false, "a"},
		{"a holder on another held node", ordinary, "n3", "a", false, "c"},
		{"a DaemonSet pod passes ordinary holds", ordinary, "n1", "d", true, ""},
		{"the first DaemonSet pod", daemon, "n1", "d1", true, ""},
		{"the second DaemonSet pod waits for the first", daemon, "n1", "d2", true, "d1"},
		{"a third one, without a hold, waits too", daemon, "n1", "d3", true, "d1"},
		{"an ordinary holder waits for them", daemon, "n1", "a", false, "d1"},
		{"a stranger", daemon, "n1", "x", false, "d1"},
		{"a stranger, and all holders have the node", placed, "n1", "x", false, ""},
		{"a second DaemonSet pod, and the first has the node", placed, "n1", "d3", true, ""},
		{"a stranger, and a holder had the node", placed, "n2", "x", false, "d2"},
	} {
		got := c.ledger.MayUse(c.node, Pod{UID: c.pod, Required: c.required})
		expect.That(t, got.OK == (c.want == "") && got.Holder.Asker == c.want,
			"%s: ok %v, in the way %q; want %q", c.name, got.OK, got.Holder.Asker, c.want)
	}
}

// TestMayJoin: a plan may use a held node, unless a DaemonSet pod waits for its room there.
func TestMayJoin(t *testing.T) {
	l := NewLedger()
	place(t, l, hold("a", "n1"), required(hold("d", "n2"), 1, start))
	may := func() []bool {
		v := l.View()
		return []bool{v.MayJoin("n1", "x").OK, v.MayJoin("n2", "x").OK, v.MayJoin("n2", "d").OK, v.MayJoin("n3", "x").OK}
	}
	expect.Same(t, "while it waits", []bool{true, false, true, true}, may())
	l.SetPlaced("d", true)
	expect.Same(t, "once it has the node", []bool{true, true, true, true}, may())
}

// TestAHoldForPodsOfItsOwnKeepsItsRequestOnly: the user of these pods decides how long they stay,
// so pods of other namespaces may use the rest of the node meanwhile.
func TestAHoldForPodsOfItsOwnKeepsItsRequestOnly(t *testing.T) {
	l := NewLedger()
	own := required(hold("d", "n1", "mine", "theirs"), 1, start)
	own.Own = []types.UID{"mine"}
	place(t, l, own, hold("a", "n1"), required(hold("e", "n2", "mine"), 1, start))
	try := func() (got []bool) {
		v := l.View()
		for _, p := range []Pod{{UID: "x", Namespace: "other"}, {UID: "x", Namespace: "ns"}, {UID: "x", Namespace: "other", Required: true}, {UID: "a", Namespace: "other"}} {
			got = append(got, v.MayUse("n1", p).OK)
		}
		return append(got, v.MayJoin("n1", "x").OK, len(v.Keeping("n1", Pod{Namespace: "other"})) == 1, len(v.Keeping("n1", Pod{Namespace: "ns"})) == 1, v.MayUse("n2", Pod{UID: "x", Namespace: "other"}).OK)
	}
	expect.Same(t, "a pod of another namespace leaves, too", []bool{false, false, false, false, false, false, false, false}, try())
	l.VictimGone("theirs", start)
	expect.Same(t, "beside an ordinary hold", []bool{false, false, true, true, false, true, false, false}, try())
	l.End("a")
	yields := []bool{true, false, true, true, false, true, false, false}
	expect.Same(t, "only pods of its own leave", yields, try())
	l.VictimGone("mine", start)
	expect.Same(t, "they are gone", yields, try())
	l.SetPlaced("d", true)
	expect.Same(t, "it has the node", []bool{true, true, true, true, true, false, false, false}, try())
	l.SetPlaced("d", false)
	l.Choose("d", own, start)
	expect.Same(t, "pods of others were chosen again", []bool{false, false, false, false, false, false, false, false}, try())
	expect.OK(t, l.Check())
}

// TestHoldersLeaveRoomForTheHoldersBeforeThem: such a hold keeps its request from a pod that holds the
// node only if its asker is before that pod, and from a node-bound pod only if it is one, too.
func TestHoldersLeaveRoomForTheHoldersBeforeThem(t *testing.T) {
	l := NewLedger()
	yielding := func(h Hold) Hold {
		h.Own = h.Awaited
		return h
	}
	place(t, l, yielding(required(hold("d1", "n1", "x"), 2, start)), yielding(required(hold("d2", "n1", "x"), 1, start)), yielding(hold("a", "n1", "x")))
	for pod, want := range map[Pod][]types.UID{
		{UID: "p"}:                  {"d1", "d2", "a"},
		{UID: "p", Required: true}:  {"d1", "d2"},
		{UID: "d2", Required: true}: {"d1"},
		{UID: "d1", Required: true}: nil,
		{UID: "a"}:                  {"d1", "d2"},
	} {
		pod.Namespace = "other"
		expect.Same(t, fmt.Sprintf("for %+v", pod), want, askers(l.View().Keeping("n1", pod)))
	}
}

// TestHoldersGetTheirRoomInTheirTurn: a holder that fits has its room now. What a later holder waits
// for may stay longer, so it makes up for no room that an earlier one needs.
func TestHoldersGetTheirRoomInTheirTurn(t *testing.T) {
	cpu := func(milli resources.Amount) resources.Vector {
		return resources.VectorOf(resources.Entry{Name: resources.CPU, Amount: milli})
	}
	asks := func(milli resources.Amount, awaits ...types.UID) Hold {
		return Hold{Request: cpu(milli), Awaited: awaits}
	}
	of := map[types.UID]resources.Amount{"soon": 100, "late": 300}
	uses := func(uid types.UID) resources.Vector { return cpu(of[uid]) }
	for _, c := range []struct {
		want  resources.Amount
		holds []Hold
	}{
		{300, nil},
		{200, []Hold{asks(100, "soon")}},
		{300, []Hold{asks(400, "soon", "late", "elsewhere")}},
		{50, []Hold{asks(350, "soon"), asks(300, "late")}},
		{100, []Hold{asks(200, "soon"), asks(200, "soon", "late")}},
		{100, []Hold{asks(100, "soon"), asks(500, "late")}},
		{0, []Hold{asks(400, "soon"), asks(100, "soon", "late")}},
	} {
		expect.Same(t, fmt.Sprint("left beside ", c.holds), c.want, LeftBeside(cpu(300), c.holds, uses).Get(resources.CPU))
	}
}

// TestAPodOfItsOwnCountsForAllRequiredHolders: otherwise the hold of another tenant's DaemonSet pod
// would close the node for the time that the first one may not.
func TestAPodOfItsOwnCountsForAllRequiredHolders(t *testing.T) {
	l := NewLedger()
	owner := required(hold("owner", "n1", "mine"), 0, start)
	owner.Own = []types.UID{"mine"}
	member := required(hold("member", "n1", "mine"), 0, start)
	member.Group = "ns/g"
	place(t, l, required(hold("agent", "n1", "mine"), 1, start), required(hold("other", "n1", "mine", "theirs"), 1, start), hold("ordinary", "n1", "mine"), member)
	only := func() []types.UID {
		expect.OK(t, l.Check())
		return slices.Sorted(maps.Keys(l.View().RequestOnly("n1")))
	}
	expect.Same(t, "without the owner", []types.UID(nil), only())
	place(t, l, owner)
	expect.Same(t, "with the owner", []types.UID{"agent", "owner"}, only())
	l.VictimGone("theirs", start)
	expect.Same(t, "once a pod of others is gone", []types.UID{"agent", "other", "owner"}, only())
	l.SetPlaced("owner", true)
	expect.Same(t, "once the owner has the node", []types.UID{"owner"}, only())
	l.SetPlaced("owner", false)
	l.End("owner")
	expect.Same(t, "once the owner is gone", []types.UID(nil), only())
}

func TestMembersOfAGroupUseTheRoomBesideEachOther(t *testing.T) {
	l := NewLedger()
	mate := hold("a", "n1", "v")
	mate.Group = "ns/g"
	place(t, l, mate, hold("b", "n2", "v"))
	for _, c := range []struct {
		node, group string
		ok          bool
	}{{"n1", "ns/g", true}, {"n1", "ns/h", false}, {"n1", "", false}, {"n2", "ns/g", false}} {
		got := l.MayUse(c.node, Pod{UID: "x", Group: c.group})
		expect.That(t, got.OK == c.ok, "node %s, group %q: ok %v", c.node, c.group, got.OK)
	}
	expect.Same(t, "holds of the group", []types.UID{"a"}, askers(l.View().OfGroup("ns/g")))
}

// TestCheckFindsHoldsThatWronglyKeepTheirRequestOnly: the ledger computes them with each change of a node.
func TestCheckFindsHoldsThatWronglyKeepTheirRequestOnly(t *testing.T) {
	l := NewLedger()
	place(t, l, hold("a", "n1", "v"))
	expect.OK(t, l.Check())
	l.nodes[shardOf("n1")]["n1"] = nodeHolds{l.at("n1"), map[types.UID]bool{"a": true}}
	expect.That(t, l.Check() != nil, "not found")
}

// TestNothingIsKnownOfAnAskerWithoutAHold: a hold may end before a decision about it is there.
func TestNothingIsKnownOfAnAskerWithoutAHold(t *testing.T) {
	l := NewLedger()
	l.Commit("a", start)
	l.Choose("a", Hold{Chosen: []types.UID{"v"}}, start)
	_, has := l.Of("a")
	expect.That(t, !has && len(l.Nodes()) == 0, "the asker has a hold")
}

// history runs random steps on a ledger. With leak, it deletes one index entry at each
// end, which Check must notice.
func history(t *rapid.T, leak bool) (broken error) {
	l := NewLedger()
	now := start
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		now = now.Add(time.Second)
		asker := types.UID(fmt.Sprintf("a%d", rapid.IntRange(0, 5).Draw(t, "asker")))
		node := fmt.Sprintf("n%d", rapid.IntRange(0, 2).Draw(t, "node"))
		switch rapid.IntRange(0, 6).Draw(t, "step") {
		case 0, 1:
			h := hold(string(asker), node)
			h.Since, h.NodeBound, h.Priority = now, rapid.Bool().Draw(t, "required"), rapid.Int32Range(0, 2).Draw(t, "priority")
			h.Created = start.Add(-time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Second)
			for range rapid.IntRange(0, 3).Draw(t, "victims") {
				h.Awaited = append(h.Awaited, types.UID(fmt.Sprintf("v%d", rapid.IntRange(0, 4).Draw(t, "victim"))))
			}
			_, had := l.Of(asker)
			if err := l.Place(h); (err != nil) != had {
				t.Fatalf("place for an asker that has a hold %v: %v", had, err)
			}
		case 2:
			gone := types.UID(fmt.Sprintf("v%d", rapid.IntRange(0, 4).Draw(t, "gone")))
			if rapid.Bool().Draw(t, "stays") {
				l.VictimStays(gone)
			} else {
				l.VictimGone(gone, now)
			}
		case 3:
			if h := l.of(asker); leak && h != nil {
				l.setAsker(asker, nil)
			} else {
				l.End(asker)
			}
		case 4:
			d := Hold{Note: rapid.SampledFrom([]string{"", "it waits"}).Draw(t, "note"), Chosen: []types.UID{"gone"}}
			for range rapid.IntRange(0, 3).Draw(t, "anew") {
				d.Awaited = append(d.Awaited, types.UID(fmt.Sprintf("v%d", rapid.IntRange(0, 4).Draw(t, "victim"))))
			}
			_, had := l.Of(asker)
			l.Choose(asker, d, now)
			if _, has := l.Of(asker); has != had {
				t.Fatalf("after choose the asker has a hold: %v, before: %v", has, had)
			}
		case 5:
			_, had := l.Of(asker)
			placed := rapid.Bool().Draw(t, "placed")
			if l.SetPlaced(asker, placed); l.Placed(asker) != (placed && had) {
				t.Fatalf("placed %v is read for an asker that has a hold: %v", !placed, had)
			}
		case 6:
			if err := sameAs(l.View(), l); err != nil {
				return err
			}
		}
		if err := l.Check(); err != nil {
			return err
		}
	}
	for _, node := range l.Nodes() {
		for _, h := range l.On(node) {
			l.End(h.Asker)
		}
	}
	if len(l.waiting) > 0 || len(l.due) > 0 || len(l.Nodes()) > 0 {
		return fmt.Errorf("after all ends: %d nodes, %d victims, %d due", len(l.Nodes()), len(l.waiting), len(l.due))
	}
	return sameAs(l.View(), l)
}

func sameAs(v *View, l *Ledger) error {
	for i := range shards {
		if !maps.Equal(v.askers[i], l.askers[i]) || !maps.EqualFunc(v.nodes[i], l.nodes[i], func(a, b nodeHolds) bool {
			return slices.Equal(a.holds, b.holds) && maps.Equal(a.requestOnly, b.requestOnly)
		}) {
			return fmt.Errorf("part %d of the view is not that of the ledger", i)
		}
	}
	if v.size != len(l.due) {
		return fmt.Errorf("the view has %d holds, the ledger %d", v.size, len(l.due))
	}
	return nil
}

// A later decision keeps the beginning of a hold and its place; the time-out counts from
// when the last victim is gone.
func TestChooseAgainKeepsTheHold(t *testing.T) {
	l := NewLedger()
	place(t, l, required(hold("first", "n1"), 5, start), required(hold("second", "n1"), 5, start.Add(time.Second)))
	later := start.Add(time.Hour)
	l.Choose("first", Hold{Note: "it waits"}, later)
	l.Choose("nobody", Hold{}, later)
	due(t, l, but("second"), time.Minute) // after it began, as no pod was chosen for it
	l.Choose("first", Hold{Awaited: []types.UID{"v"}, Chosen: []types.UID{"v"}, Decision: "d2"}, later)
	h, _ := l.Of("first")
	expect.That(t, h.Since.Equal(start) && h.Decision == "d2", "%+v", h)
	expect.That(t, !h.Clear() && h.Note == "" && h.NodeBound, "%+v", h)
	l.VictimGone("v", later.Add(time.Minute))
	l.Choose("first", Hold{Chosen: []types.UID{"v"}}, later.Add(time.Hour))
	due(t, l, but("second"), time.Hour+2*time.Minute)
	expect.Same(t, "served", []types.UID{"first", "second"}, askers(l.On("n1")))
	expect.Holds(t, l.Check())
}

// TestAnyHistoryLeavesNothingBehind: the planted bug, a ledger that forgets an index, is found, too.
func TestAnyHistoryLeavesNothingBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := history(t, false); err != nil {
			t.Fatal(err)
		}
	})
	noticed := false
	rapid.Check(t, func(t *rapid.T) { noticed = history(t, true) != nil || noticed })
	expect.That(t, noticed, "a ledger that forgets an index passes Check")
}

func TestViewDoesNotChange(t *testing.T) {
	l := NewLedger()
	place(t, l, hold("a", "n1", "v1", "v2"), hold("b", "n1", "v1"), hold("c", "n2"))
	show := func(v *View) string {
		var b strings.Builder
		for _, asker := range []types.UID{"a", "b", "c", "d"} {
			h, ok := v.Of(asker)
			fmt.Fprintln(&b, h, ok, v.Beside(asker), v.MayUse("n1", Pod{UID: asker}), v.MayUse("n2", Pod{UID: asker}))
		}
		return b.String()
	}
	for name, change := range map[string]func(){
		"victim gone": func() { l.VictimGone("v1", start) },
		"commit":      func() { l.Commit("a", start) },
		"place":       func() { place(t, l, required(hold("d", "n1"), 1, start)) },
		"end":         func() { l.End("b") },
		"placed":      func() { l.SetPlaced("c", true) },
	} {
		v, before := l.View(), show(l.View())
		change()
		expect.Same(t, name+": the view before", before, show(v))
		expect.That(t, show(l.View()) != before, "%s: a new view does not show it", name)
		expect.OK(t, l.Check())
	}
}
