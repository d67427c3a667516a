package queues_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// A queue that does not exist gets no child and is not removed. For queues that exist see
// TestDraftProperty.
func TestDraftRefusesQueuesThatDoNotExist(t *testing.T) {
	d := draft(t, "root\n  a\n    b")
	before := queuestest.ShowSettings(d)
	expect.That(t, !adds(d, settings("root.x", 77)) && !d.Remove(77),
		"a queue that does not exist gets a child, or is removed")
	expect.Same(t, "the tree", before, queuestest.ShowSettings(d))
}

// settings are those of a queue with a path.
func settings(path string, parent queues.ID) queues.Settings {
	return queues.Settings{Settings: config.Settings{Name: path[strings.LastIndexByte(path, '.')+1:], Path: path}, Parent: parent}
}

// adds tells whether a queue is added; Add panics otherwise.
func adds(d *queues.Draft, s queues.Settings) (added bool) {
	defer func() {
		switch why := recover().(type) {
		case nil:
		case string:
			added = !strings.HasPrefix(why, "add queue ")
		default:
			panic(why)
		}
	}()
	d.Add(s)
	return true
}

func TestFindTakesExactPathsOnly(t *testing.T) {
	s := draft(t, "root\n  a\n    b\n  ab").Publish(nil)
	for path, want := range map[string]bool{
		"root": true, "root.a": true, "root.a.b": true, "root.ab": true,
		"": false, "a": false, "roo": false, "root.": false, "root.b": false, "root.a.": false,
		"root.a.b.c": false, "root.A": false, "other.a": false,
	} {
		q, found := s.Find(path)
		expect.That(t, found == want && (!found || q.Path == path), "Find(%q) found %v", path, found)
	}
	expect.That(t, s.Queue(-1) == nil && s.Queue(1_000_000) == nil, "an ID of no queue leads to one")
}

// An ID that became free is given out again, and old snapshots still show the queue that had it.
func TestIDsAreUsedAgain(t *testing.T) {
	d := draft(t, "root\n  a\n  b")
	old, a := d.Publish(nil), id(t, d, "root.a")
	d.Remove(a)
	between := d.Publish(old)
	expect.Same(t, "the ID of root.c", a, d.Add(settings("root.c", queues.RootID)))
	next := d.Publish(between)
	expect.That(t, between.Queue(a) == nil, "a snapshot without the queue has it")
	expect.Same(t, "before, after", "root.a, root.c", old.Queue(a).Path+", "+next.Queue(a).Path)
}

func TestPublishWithoutChangeReturnsTheSameSnapshot(t *testing.T) {
	d := draft(t, "root\n  a")
	s := d.Publish(nil)
	expect.That(t, d.Publish(s) == s, "nothing changed and there is a new snapshot")
	tree := d.TreeGeneration()
	d.Update(id(t, d, "root.a"), func(u *queues.Usage) { u.Running++ })
	n := d.Publish(s)
	expect.That(t, n != s && d.TreeGeneration() == tree, "a change of usage is not in the next snapshot, or is a new tree")
	d.SetCapacity(queuestest.Vector("vcore=1"))
	c := d.Publish(n)
	expect.That(t, c != n && c.Capacity().Equal(queuestest.Vector("vcore=1")) && n.Capacity().IsZero(),
		"a change of the capacity is not in the next snapshot, or in the one before")
	d.SetSettings(queues.RootID, *d.Root().Settings)
	expect.That(t, d.Publish(c) != c && d.TreeGeneration() > tree, "new settings are no new tree")
}

// One event copies the queues from its leaf to root and nothing else, in a tree of any size.
func TestPathCopyingSharesTheUntouched(t *testing.T) {
	d := queues.NewDraft(settings("root", queues.NoQueue))
	var leaf queues.ID
	for i := range 300 {
		parent := d.Add(settings(fmt.Sprintf("root.p%03d", i), queues.RootID))
		leaf = d.Add(settings(fmt.Sprintf("root.p%03d.leaf", i), parent))
	}
	before := d.Publish(nil)
	d.Update(leaf, func(u *queues.Usage) { u.Running++ })
	d.Update(leaf, func(u *queues.Usage) { u.Running++ })
	after := d.Publish(before)
	var copied []string
	for q := range after.All() {
		if before.Queue(q.ID) != q {
			copied = append(copied, q.Path)
		}
	}
	expect.Same(t, "copied queues", []string{"root", "root.p299", "root.p299.leaf"}, copied)
	expect.Same(t, "running, before and after", []int{0, 2}, []int{before.Root().Running, after.Root().Running})
}

func freeze(s *queues.Snapshot) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.Capacity())
	for q := range s.All() {
		fmt.Fprintf(&b, "%d %v %+v\n", q.ID, q.Children, *q.Settings)
	}
	return b.String() + queuestest.ShowUsage(s)
}

// change is a random change of a draft; numbers choose among what there is.
type change struct {
	kind       string
	queue, add int
	name       string
}

func changes() *rapid.Generator[[]change] {
	one := rapid.Custom(func(t *rapid.T) change {
		return change{
			kind:  rapid.SampledFrom([]string{"add", "add", "remove", "update", "update", "settings", "capacity", "publish", "publish"}).Draw(t, "kind"),
			queue: rapid.IntRange(0, 1000).Draw(t, "queue"),
			add:   rapid.IntRange(-3, 3).Draw(t, "add"),
			name:  rapid.SampledFrom([]string{"a", "b", "c", "ab"}).Draw(t, "name"),
		}
	})
	return rapid.Custom(func(t *rapid.T) []change {
		n := rapid.SampledFrom([]int{5, 30, 150}).Draw(t, "length")
		return rapid.SliceOfN(one, n, n).Draw(t, "changes")
	})
}

// plainTree is a tree as simple as it can be: what a draft should contain.
type plainTree map[string]*plainQueue

type plainQueue struct{ used, applications, max int }

func (p plainTree) paths() []string { return slices.Sorted(maps.Keys(p)) }

func (p plainTree) hasChild(path string) bool {
	return slices.ContainsFunc(p.paths(), func(other string) bool { return strings.HasPrefix(other, path+".") })
}

// replay makes the changes in a draft and in a plain tree, and compares the two
// after each change and all snapshots with what they were when published. With
// a bug, a snapshot is written to behind the draft's back.
func replay(steps []change, bug bool) error {
	d := queues.NewDraft(settings("root", queues.NoQueue))
	tree := plainTree{"root": {}}
	published := []*queues.Snapshot{d.Publish(nil)}
	copies := []string{freeze(published[0])}
	for i, s := range steps {
		if err := apply(d, tree, s); err != nil {
			return fmt.Errorf("step %d (%+v): %w", i, s, err)
		}
		if s.kind == "publish" {
			n := d.Publish(published[len(published)-1])
			published, copies = append(published, n), append(copies, freeze(n))
			if n.Len() != len(tree) {
				return fmt.Errorf("step %d (%+v): the snapshot counts %d queues, want %d", i, s, n.Len(), len(tree))
			}
		}
		if bug && s.kind == "update" {
			published[0].Root().Running++
		}
		if err := tree.compare(d); err != nil {
			return fmt.Errorf("step %d (%+v): %w", i, s, err)
		}
	}
	for i, s := range published {
		if diff := cmp.Diff(copies[i], freeze(s)); diff != "" {
			return fmt.Errorf("snapshot %d changed after it was published (-then +now):\n%s", i, diff)
		}
	}
	return nil
}

func apply(d *queues.Draft, tree plainTree, s change) error {
	paths := tree.paths()
	path := paths[s.queue%len(paths)]
	q, found := d.Find(path)
	if !found {
		return fmt.Errorf("%s is not found", path)
	}
	switch s.kind {
	case "add":
		child := path + "." + s.name
		_, exists := tree[child]
		if exists == adds(d, settings(child, q.ID)) {
			return fmt.Errorf("add %s, which exists: %v", child, exists)
		}
		if !exists {
			tree[child] = &plainQueue{}
		}
	case "remove":
		refused := path == "root" || tree.hasChild(path) || tree[path].applications != 0
		if refused == d.Remove(q.ID) {
			return fmt.Errorf("remove %s, which must be refused: %v", path, refused)
		}
		if !refused {
			delete(tree, path)
		}
	case "update":
		d.Update(q.ID, func(u *queues.Usage) {
			u.Running += s.add
			u.Applications += s.add
			u.Allocated = u.Allocated.Add(resources.VectorOf(resources.Entry{Name: "vcore", Amount: resources.Amount(s.add)}))
		})
		for p := range d.Ancestors(q.ID) {
			tree[p.Path].used += s.add
			tree[p.Path].applications += s.add
		}
	case "settings":
		n := *q.Settings
		n.MaxApplications = uint64(s.add + 3)
		d.SetSettings(q.ID, n)
		tree[path].max = s.add + 3
	case "capacity":
		d.SetCapacity(resources.VectorOf(resources.Entry{Name: "vcore", Amount: resources.Amount(s.queue)}))
	}
	return nil
}

func (p plainTree) compare(d *queues.Draft) error {
	seen := 0
	ids := map[queues.ID]bool{}
	last := map[queues.ID]string{}
	for q := range d.All() {
		seen++
		want := p[q.Path]
		switch {
		case want == nil:
			return fmt.Errorf("%s is there and should not be", q.Path)
		case ids[q.ID]:
			return fmt.Errorf("%s has the ID %d of another queue", q.Path, q.ID)
		case d.Queue(q.ID) != q:
			return fmt.Errorf("%s is not what its ID leads to", q.Path)
		case *want != plainQueue{q.Running, q.Applications, int(q.MaxApplications)},
			q.Allocated.Get("vcore") != resources.Amount(want.used):
			return fmt.Errorf("%s has %+v, max %d, want %+v", q.Path, q.Usage, q.MaxApplications, *want)
		case !q.IsRoot() && q.Name <= last[q.Parent]:
			return fmt.Errorf("%s comes after sibling %s", q.Path, last[q.Parent])
		}
		ids[q.ID], last[q.Parent] = true, q.Name
	}
	if seen != len(p) {
		return fmt.Errorf("%d queues, want %d", seen, len(p))
	}
	return nil
}

func TestDraftProperty(t *testing.T) {
	replayed := func(bug bool) func([]change) error {
		return func(steps []change) error { return replay(steps, bug) }
	}
	expect.Law(t, changes(), replayed(false), replayed(true))
}

func draft(tb testing.TB, tree string) *queues.Draft {
	tb.Helper()
	return queues.NewDraftFrom(queuestest.MustTree(tb, tree))
}

func id(tb testing.TB, d *queues.Draft, path string) queues.ID {
	tb.Helper()
	q, found := d.Find(path)
	if !found {
		tb.Fatalf("there is no queue %s", path)
	}
	return q.ID
}

// TestFork changes a fork and its origin; neither sees the changes of the other.
func TestFork(t *testing.T) {
	d := draft(t, "root\n  a\n  b parent")
	change := func(d *queues.Draft, name string) {
		for i := range 70 { // more than a chunk
			leaf := d.AddDynamic(fmt.Sprintf("root.b.%s%d", name, i), "ns")
			d.Update(leaf, func(u *queues.Usage) { u.Running++ })
		}
		parent, _ := d.Find("root.b")
		for _, leaf := range slices.Clone(parent.Children[:30]) {
			expect.That(t, d.Remove(leaf), "leaf %d is not removed", leaf)
		}
	}
	show := func(s *queues.Snapshot) string { return queuestest.ShowSettings(s) + queuestest.ShowUsage(s) }
	change(d, "x")
	before := d.Publish(nil)
	alone := show(before)
	f := d.Fork()
	expect.That(t, !f.Changed() && f.Publish(before) == before, "an unchanged fork is not its origin")
	change(f, "y")
	forked := f.Publish(nil)
	expect.Same(t, "the origin", alone, show(d.Publish(nil)))
	want := show(forked)
	change(d, "z")
	for _, s := range []*queues.Snapshot{forked, f.Publish(nil)} {
		expect.Same(t, "the fork", want, show(s))
	}
	expect.OK(t, counted(d))
	expect.OK(t, counted(f))
}

// TestApply runs the files of testdata/apply. Each is the history of one tree:
//
//	apply                     makes the tree follow the specification of the input
//	dynamic PATH [NAMESPACE]  makes a dynamic leaf and what is missing above it
//	quota NAMESPACE W...      sets the quota of a namespace; W as in queuestest.Tree; none
//	                          takes it away
//	use PATH APPLICATIONS     adds to the applications of a queue
//
// Every command prints the tree, see queuestest.ShowSettings.
func TestApply(t *testing.T) {
	datadriven.Walk(t, "testdata/apply", func(t *testing.T, file string) {
		var d *queues.Draft
		quotas := map[string]*config.Quota{}
		of := func(namespace string) *config.Quota { return quotas[namespace] }
		datadriven.RunTest(t, file, func(t *testing.T, td *datadriven.TestData) string {
			if least := map[string]int{"dynamic": 1, "quota": 1, "use": 2}[td.Cmd]; len(td.CmdArgs) < least {
				td.Fatalf(t, "%s takes %d arguments at least, not %q", td.Cmd, least, td.CmdArgs)
			}
			switch td.Cmd {
			case "apply":
				spec := queuestest.MustTree(t, td.Input)
				if d == nil {
					d = queues.NewDraftFrom(spec)
				} else {
					d.Apply(spec)
				}
			case "dynamic":
				namespace := ""
				if len(td.CmdArgs) > 1 {
					namespace = td.CmdArgs[1].Key
				}
				leaf := d.AddDynamic(td.CmdArgs[0].Key, namespace)
				d.ApplyQuotasTo(leaf, of)
				changed := d.ApplyQuotas(of)
				expect.That(t, len(changed) == 0, "ApplyQuotasTo left out %v", changed)
			case "quota":
				quotas[td.CmdArgs[0].Key] = namespaceQuota(t, td)
				d.ApplyQuotas(of)
			case "use":
				n := expect.Get(strconv.Atoi(td.CmdArgs[1].Key))(t)
				d.Update(id(t, d, td.CmdArgs[0].Key), func(u *queues.Usage) { u.Applications += n })
			default:
				td.Fatalf(t, "unknown command %s", td.Cmd)
			}
			return queuestest.ShowSettings(d)
		})
	})
}

func namespaceQuota(t *testing.T, td *datadriven.TestData) *config.Quota {
	t.Helper()
	if len(td.CmdArgs) <= 1 {
		return nil
	}
	words := []string{"root"}
	for _, arg := range td.CmdArgs[1:] {
		words = append(words, arg.String())
	}
	q := queuestest.MustTree(t, strings.Join(words, " ")).Root
	return &q.Quota
}

// counted checks that the limits admit as many queues as are missing from them, and no
// more, after the queues of the draft were counted anew.
func counted(d *queues.Draft) error {
	total, by := 0, map[string]int{}
	for q := range d.All() {
		if !q.Managed && q.Path != queues.RecoveryPath && !q.IsRoot() {
			total++
			by[q.MadeFor]++
		}
	}
	by["other"] += 0
	for namespace, n := range by {
		for l, want := range map[queues.DynamicLimits]reasons.Code{
			{Total: total + 2}: "", {PerNamespace: n + 2}: "",
			{Total: total + 1}: reasons.TooManyQueues, {PerNamespace: n + 1}: reasons.TooManyQueues,
		} {
			if why := l.Admit(d, "root.new.leaf", namespace); why.Code != want { // two queues would be made: root.new and its leaf
				return fmt.Errorf("%d queues, %d for %q; %+v: %v", total, n, namespace, l, why)
			}
		}
	}
	return nil
}

func TestDynamicQueuesAreCounted(t *testing.T) {
	specs := []*config.Spec{
		queuestest.MustTree(t, "root\n  a parent\n    b\n"), queuestest.MustTree(t, "root\n"),
		queuestest.MustTree(t, "root\n  a\n  c parent template.max.vcore=1\n"),
	}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // not for secrets
		d := queues.NewDraftFrom(specs[0])
		for step := range 50 {
			what := r.IntN(4)
			switch what {
			case 0:
				d.Apply(specs[r.IntN(len(specs))])
			case 1, 2:
				path := "root"
				for range 1 + r.IntN(3) {
					path += "." + string(rune('a'+r.IntN(4)))
				}
				d.AddDynamic(path, string(rune('x'+r.IntN(3))))
				d.ApplyQuotas(func(namespace string) *config.Quota {
					return map[string]*config.Quota{"x": {MaxApplications: 1}}[namespace]
				})
			case 3:
				for q := range d.All() {
					if r.IntN(3) == 0 && d.Remove(q.ID) {
						break
					}
				}
			}
			if err := counted(d); err != nil {
				t.Fatalf("seed %d, step %d (%d): %v", seed, step, what, err)
			}
		}
	}
}
