package order_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/order"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// TestOrder runs the files of testdata. Commands:
//
//	tree [capacity=vcore=N,memory=N] [strict]
//
// sets the queues of the input, see queuestest.Tree, and drops all other state. With
// strict, guarantees are strict.
//
//	asks
//	NAME QUEUE [app=NAME] [prio=N] [age=SECONDS] [TYPE=AMOUNT ...]
//
// adds asks, one per line; older ones have the larger age. An ask without amounts
// requests vcore=1; an ask without app belongs to application "app".
//
//	used QUEUE app=NAME TYPE=AMOUNT ...
//
// sets what an application of a leaf uses.
//
//	leaving QUEUE TYPE=AMOUNT ...
//
// sets the usage of leaving pods of a leaf.
//
//	block NAME at=QUEUE          unblock NAME
//
// block and unblock the group of an ask.
//
//	bind [N]
//
// takes the first ask, N times or until there is none, adds its request to the usage of
// its application, and prints its queue and name.
func TestOrder(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		if filepath.Ext(file) != ".txt" {
			return // rapid stores failures there
		}
		var f *fixture
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "tree" {
				f = newFixture(t, d)
				return ""
			}
			out := f.command(t, d)
			if err := f.r.index.Check(); err != nil {
				return out + "!! " + err.Error() + "\n"
			}
			return out
		})
	})
}

// fixture is a tree with asks. The runner makes each change in model and index.
type fixture struct {
	r     *runner
	names map[string]*modelAsk
}

func newFixture(t *testing.T, d *datadriven.TestData) *fixture {
	f := &fixture{r: newRunner(queuestest.MustTree(t, d.Input), ""), names: map[string]*modelAsk{}}
	var capacity []string
	for _, arg := range d.CmdArgs {
		if arg.Key == "strict" {
			f.r.m.strict = true
			f.r.index.SetStrict(true)
			continue
		}
		capacity = append(capacity, arg.Vals...)
	}
	f.r.m.capacity = queuestest.Vector(strings.Join(capacity, " "))
	f.r.index.SetCapacity(f.r.m.capacity)
	return f
}

func (f *fixture) command(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "asks":
		for _, line := range strings.Split(d.Input, "\n") {
			f.ask(t, d, strings.Fields(line))
		}
		return ""
	case "used":
		leaf, app, _, rest := f.words(t, d, d.CmdArgs[0].Key, argWords(d.CmdArgs[1:]))
		a := f.r.app(leaf, app, epoch, order.Class{})
		f.r.use(a, rest.Sub(a.used))
		return ""
	case "leaving":
		leaf, _, _, v := f.words(t, d, d.CmdArgs[0].Key, argWords(d.CmdArgs[1:]))
		f.r.leave(leaf, v)
		return ""
	case "unblock":
		f.r.index.Unblock(f.r.asks[f.names[d.CmdArgs[0].Key]].Group())
		return ""
	case "block":
		at := f.queue(t, d, d.CmdArgs[1].Vals[0])
		f.r.index.Block(f.r.asks[f.names[d.CmdArgs[0].Key]].Group(), queues.Verdict{At: at})
		return ""
	case "bind":
		n := -1
		if len(d.CmdArgs) > 0 {
			n, _ = strconv.Atoi(d.CmdArgs[0].Key)
		}
		return f.bind(n)
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func (f *fixture) queue(t *testing.T, d *datadriven.TestData, path string) queues.ID {
	t.Helper()
	q, found := f.r.m.draft.Find(path)
	if !found {
		d.Fatalf(t, "no queue %s", path)
	}
	return q.ID
}

func argWords(args []datadriven.CmdArg) []string {
	var words []string
	for _, a := range args {
		words = append(words, a.Key+"="+strings.Join(a.Vals, ","))
	}
	return words
}

func (f *fixture) words(t *testing.T, d *datadriven.TestData, path string, words []string) (leaf queues.ID, app string, key order.AskKey, rest resources.Vector) {
	t.Helper()
	app, key.Created = "app", epoch
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		n, _ := strconv.Atoi(value)
		switch name {
		case "app":
			app = value
		case "prio":
			key.Priority = int32(n)
		case "age":
			key.Created = epoch.Add(-time.Duration(n) * time.Second)
		default:
			rest = rest.Add(queuestest.Vector(word))
		}
	}
	return f.queue(t, d, path), app, key, rest
}

func (f *fixture) ask(t *testing.T, d *datadriven.TestData, words []string) {
	leaf, name, key, request := f.words(t, d, words[1], words[2:])
	if request.IsZero() {
		request = queuestest.Vector("vcore=1")
	}
	key.UID = words[0]
	app := f.r.app(leaf, name, epoch, order.Class{})
	if key.Created.Before(app.submitted) {
		app.submitted = key.Created
		f.r.index.SetSubmitted(f.r.apps[app], key.Created)
	}
	f.names[key.UID] = &modelAsk{app: app, key: key, request: request}
	f.r.ask(f.names[key.UID])
}

// bind takes asks in the order of the index; the model is not used.
func (f *fixture) bind(n int) string {
	var b strings.Builder
	for ; n != 0; n-- {
		next, ok := f.r.index.Next()
		if !ok {
			break
		}
		a := f.names[next.UID()]
		fmt.Fprintf(&b, "%s %s\n", strings.TrimPrefix(f.r.m.draft.Queue(a.app.leaf).Path, "root."), a.key.UID)
		f.r.use(a.app, a.request)
		f.r.remove(a)
	}
	return b.String()
}

// BenchmarkNext measures the next of 100,000 asks in 5,125 queues, six levels deep: the
// ask is found and removed, the usage of its queues grows, and another ask is added.
func BenchmarkNext(b *testing.B) {
	for _, policy := range []config.SortPolicy{config.SortFIFO, config.SortFair} {
		b.Run(string(policy), func(b *testing.B) { benchmarkNext(b, policy) })
	}
}

func benchmarkNext(b *testing.B, policy config.SortPolicy) {
	policies := config.DefaultPolicies()
	policies.ApplicationSort = policy
	d := queues.NewDraft(queues.Settings{Settings: config.Settings{Name: "root", Path: "root", Policies: policies}})
	var leaves []queues.ID
	var grow func(parent queues.ID, path string, fanouts []int)
	grow = func(parent queues.ID, path string, fanouts []int) {
		if len(fanouts) == 0 {
			leaves = append(leaves, parent)
			return
		}
		for i := range fanouts[0] {
			name := fmt.Sprintf("q%d", i)
			s := queues.Settings{Settings: config.Settings{Name: name, Path: path + "." + name, Policies: policies}, Parent: parent}
			s.Guaranteed = resources.GuaranteeFrom(map[string]resources.Amount{resources.CPU: resources.Amount(1000 * (1 + i))})
			id := d.Add(s)
			grow(id, path+"."+name, fanouts[1:])
		}
	}
	grow(queues.RootID, "root", []int{4, 5, 5, 5, 9})
	x := order.NewIndex()
	for q := range d.All() {
		x.SetQueue(q.ID, q.Settings)
	}
	type running struct {
		app  *order.App
		leaf queues.ID
		used resources.Vector
	}
	request := queuestest.Vector("vcore=500m memory=1Gi pods=1")
	owners := map[string]*running{}
	used := map[queues.ID]resources.Vector{}
	key := func(i int) order.AskKey {
		return order.AskKey{Priority: int32(i % 3), Created: epoch.Add(time.Duration(i)), UID: fmt.Sprintf("%07d", i)}
	}
	for i := range 100_000 {
		leaf := leaves[i%len(leaves)]
		r := &running{leaf: leaf}
		if i < 3*len(leaves) {
			r.app = x.NewApp(leaf, fmt.Sprintf("app%d", i), epoch, order.Class{})
		} else {
			r = owners[fmt.Sprintf("%07d", i-3*len(leaves))]
		}
		owners[fmt.Sprintf("%07d", i)] = r
		x.Push(r.app, key(i), request, "")
	}
	b.ReportAllocs()
	for i := 100_000; b.Loop(); i++ {
		a, _ := x.Next()
		r := owners[a.UID()]
		x.Remove(a)
		r.used = r.used.Add(request)
		x.SetAppUsed(r.app, r.used)
		for q := range d.Ancestors(r.leaf) {
			used[q.ID] = used[q.ID].Add(request)
			x.SetUsed(q.ID, used[q.ID], used[q.ID])
		}
		k := key(i)
		owners[k.UID] = r
		x.Push(r.app, k, request, "")
	}
}
