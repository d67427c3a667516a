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
		var w *world
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "tree" {
				w = newWorld(t, d)
				return ""
			}
			out := w.command(t, d)
			if err := w.r.index.Check(); err != nil {
				return out + "!! " + err.Error() + "\n"
			}
			return out
		})
	})
}

// world is a tree with asks. The runner makes each change in model and index.
type world struct {
	r     *runner
	names map[string]*modelAsk
}

func newWorld(t *testing.T, d *datadriven.TestData) *world {
	w := &world{r: newRunner(queuestest.MustTree(t, d.Input), ""), names: map[string]*modelAsk{}}
	var capacity []string
	for _, arg := range d.CmdArgs {
		if arg.Key == "strict" {
			w.r.m.strict = true
			w.r.index.SetStrict(true)
			continue
		}
		capacity = append(capacity, arg.Vals...)
	}
	w.r.m.capacity = queuestest.Vector(strings.Join(capacity, " "))
	w.r.index.SetCapacity(w.r.m.capacity)
	return w
}

func (w *world) command(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "asks":
		for _, line := range strings.Split(d.Input, "\n") {
			w.ask(t, d, strings.Fields(line))
		}
		return ""
	case "used":
		leaf, app, _, rest := w.words(t, d, d.CmdArgs[0].Key, argWords(d.CmdArgs[1:]))
		a := w.app(leaf, app)
		w.r.use(a, rest.Sub(a.used))
		return ""
	case "leaving":
		leaf, _, _, v := w.words(t, d, d.CmdArgs[0].Key, argWords(d.CmdArgs[1:]))
		w.r.leave(leaf, v)
		return ""
	case "block", "unblock":
		a := w.names[d.CmdArgs[0].Key]
		if d.Cmd == "unblock" {
			w.r.index.Unblock(w.r.asks[a].Group())
			return ""
		}
		q, found := w.r.m.draft.Find(d.CmdArgs[1].Vals[0])
		if !found {
			d.Fatalf(t, "no queue %s", d.CmdArgs[1].Vals[0])
		}
		w.r.index.Block(w.r.asks[a].Group(), queues.Verdict{At: q.ID})
		return ""
	case "bind":
		n := -1
		if len(d.CmdArgs) > 0 {
			n, _ = strconv.Atoi(d.CmdArgs[0].Key)
		}
		return w.bind(n)
	}
	d.Fatalf(t, "unknown command %s", d.Cmd)
	return ""
}

func argWords(args []datadriven.CmdArg) []string {
	var words []string
	for _, a := range args {
		words = append(words, a.Key+"="+strings.Join(a.Vals, ","))
	}
	return words
}

func (w *world) words(t *testing.T, d *datadriven.TestData, path string, words []string) (leaf queues.ID, app string, key order.AskKey, rest resources.Vector) {
	t.Helper()
	q, found := w.r.m.draft.Find(path)
	if !found {
		d.Fatalf(t, "no queue %s", path)
	}
	app, key.Created = "app", epoch
	var amounts []string
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
			amounts = append(amounts, word)
		}
	}
	return q.ID, app, key, queuestest.Vector(strings.Join(amounts, " "))
}

func (w *world) app(leaf queues.ID, name string) *modelApp {
	for _, a := range w.r.m.apps {
		if a.leaf == leaf && a.name == name {
			return a
		}
	}
	a := &modelApp{leaf: leaf, name: name, submitted: epoch}
	w.r.m.apps = append(w.r.m.apps, a)
	w.r.apps[a] = w.r.index.NewApp(leaf, name, a.submitted, a.class)
	return a
}

func (w *world) ask(t *testing.T, d *datadriven.TestData, words []string) {
	leaf, name, key, request := w.words(t, d, words[1], words[2:])
	if request.IsZero() {
		request = queuestest.Vector("vcore=1")
	}
	key.UID = words[0]
	app := w.app(leaf, name)
	if key.Created.Before(app.submitted) {
		app.submitted = key.Created
		w.r.index.SetSubmitted(w.r.apps[app], key.Created)
	}
	a := &modelAsk{app: app, key: key, request: request}
	w.r.m.asks = append(w.r.m.asks, a)
	w.r.asks[a] = w.r.index.Push(w.r.apps[app], key, request, "")
	w.names[key.UID] = a
}

// bind takes asks in the order of the index; the model is not used.
func (w *world) bind(n int) string {
	var b strings.Builder
	for ; n != 0; n-- {
		next, ok := w.r.index.Next()
		if !ok {
			break
		}
		a := w.names[next.UID()]
		fmt.Fprintf(&b, "%s %s\n", strings.TrimPrefix(w.r.m.draft.Queue(a.app.leaf).Path, "root."), a.key.UID)
		w.r.use(a.app, a.request)
		w.r.remove(a)
	}
	return b.String()
}
