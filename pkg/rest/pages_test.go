package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/audit"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/web/webtest"
)

// TestPages goes through testdata/pages: what the cluster does, and what is answered then.
func TestPages(t *testing.T) {
	datadriven.Walk(t, "testdata/pages", func(t *testing.T, path string) {
		var c *cluster
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if c == nil {
				c = newCluster(t, d.Input)
				return "ok\n"
			}
			return c.command(t, d)
		})
	})
}

// does carries out commands of testdata/pages, one a line, and returns their outputs.
func (c *cluster) does(t *testing.T, script string) (outputs []string) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(script)) {
		command, args, err := datadriven.ParseLine(line)
		expect.OK(t, err)
		outputs = append(outputs, c.command(t, &datadriven.TestData{Pos: line, Cmd: command, CmdArgs: args}))
	}
	return outputs
}

// ofOne are the commands about one pod or node.
var ofOne = []string{"node", "pod", "bounce", "hint", "delete", "preempt", "require", "commit", "victims-deleted", "fail"}

func (c *cluster) command(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	if slices.Contains(ofOne, d.Cmd) && argument(d, "name") == "" {
		d.Fatalf(t, "%s wants a name", d.Cmd)
	}
	uid := types.UID("uid-" + argument(d, "name")) // of the pod that most commands name
	switch d.Cmd {
	case "config":
		c.Configure(d.Input)
	case "node":
		c.Node(argument(d, "name"), d.Input)
		c.Store.SetNodeSchedulable(argument(d, "name"), !d.HasArg("cordoned"), c.Now)
	case "sample":
		c.server.history.Count(c.Store.Snapshot(), c.Now)
	case "pod":
		c.pod(t, d)
		if d.HasArg("stuck") {
			c.Store.NoNode(uid, "", reasons.New(reasons.NoNodeFits, "no node could take the pod"), c.Now)
		}
		if why := argument(d, "failed"); why != "" {
			c.Store.NoNode(uid, "", reasons.New(reasons.BackingOff, "%s", why), c.Now)
		}
	case "bounce": // a pod gets a node, and its bind is refused
		c.Store.Assume(uid, "n1", store.NoSnapshot, c.Now)
		c.Store.Forget(uid, c.Now)
	case "hint": // something happened that may help a pod that no node took
		c.Store.Gate(uid, c.Now)
	case "delete":
		c.Store.Delete(uid, c.Now)
	case "preempt":
		if why := c.Plan(uid); why.Text != "" {
			return why.Text + "\n"
		}
	case "require":
		return c.require(uid)
	case "commit":
		going, why := c.Store.Commit(uid, nil, c.Now)
		if !why.None() {
			return why.Text + "\n"
		}
		return fmt.Sprintf("%d go\n", len(going))
	case "victims-deleted":
		c.Store.VictimsDeleted(uid, c.Now)
	case "fail":
		c.Store.FailPlan(uid, reasons.New(reasons.HoldGivenUp, "%s", d.Input), nil, c.Now)
	case "tick":
		c.step(time.Second)
	case "wait":
		c.step(expect.Get(time.ParseDuration(argument(d, "for")))(t))
	case "get", "post":
		return c.page(d)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	expect.OK(t, c.Store.Check())
	return "ok\n"
}

// argument returns the value of an argument; empty if there is none.
func argument(d *datadriven.TestData, key string) string {
	arg, _ := d.Arg(key)
	return strings.Join(arg.Vals, ",")
}

// pod adds the pod that the arguments of a command describe, or changes it.
func (c *cluster) pod(t *testing.T, d *datadriven.TestData) {
	name := argument(d, "name")
	if c.created[name].IsZero() {
		c.created[name] = c.Now
	}
	p := objects.Pod{
		Identity: objects.Identity{
			Namespace: "ns", Name: name, Created: c.created[name],
			Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: objects.Spec{
			RequiredNode: argument(d, "required"), Foreign: d.HasArg("foreign"), Static: d.HasArg("static"),
		},
		Status: objects.Status{
			Node: argument(d, "node"), Deleting: d.HasArg("deleting"), Gated: d.HasArg("gated"),
		},
		Request: queuestest.Vector(strings.ReplaceAll(argument(d, "request"), ",", " ") + " pods=1"),
	}
	if text := argument(d, "priority"); text != "" {
		p.Priority = int32(expect.Get(strconv.Atoi(text))(t))
	}
	for label, key := range map[string]string{
		placement.KeyQueue: "queue", placement.KeyApplicationID: "app", "label": "label",
	} {
		if value := argument(d, key); value != "" {
			p.Labels[label] = value
		}
	}
	if user, groups := argument(d, "user"), argument(d, "groups"); user != "" {
		p.Annotations[placement.KeyUserInfo] = fmt.Sprintf(`{"user":%q,"groups":[%q]}`, user, groups)
	}
	c.Add(p)
}

func (c *cluster) step(by time.Duration) {
	c.Step(by)
	c.Store.NextReports(c.Now, 0) // it computes the demand, as the reporter does each second
}

// require decides about the only node that a pod can run on.
func (c *cluster) require(uid types.UID) string {
	input, why := c.Store.BeginNodeBoundPlan(uid, nil, c.Now)
	if !why.None() {
		return why.String() + "\n"
	}
	plan := daemonset.Plan(input.Node, input.Ask, input.Params)
	held, why := c.Store.ApplyPlan(uid, &plan, c.Now)
	return fmt.Sprintf("held %t: %s\n", held, why.Text)
}

func (c *cluster) page(d *datadriven.TestData) string {
	c.Record.Take()
	r := httptest.NewRequest(strings.ToUpper(d.Cmd), d.CmdArgs[0].String(), strings.NewReader(d.Input))
	if d.HasArg("json") {
		r.Header.Set("Accept", "application/json")
	}
	w := c.ask(r)
	var body bytes.Buffer
	if err := json.Indent(&body, w.Body.Bytes(), "", " "); err != nil {
		body.Reset()
		body.Write(w.Body.Bytes())
	}
	out := strings.TrimRight(body.String(), "\n") + "\n"
	if w.Code != 200 {
		out = fmt.Sprintf("status %d\n%s", w.Code, out)
	}
	return out
}

func benchCluster(b *testing.B) *cluster { return show(webtest.Sized(b, webtest.Large)) }

func benchPages() []string {
	pages := pagesOf(new(Server), "{queue}", "root.p7.q7", "{application}", "app-7", "{node}", "node-007",
		"{user}", "nobody", "{group}", "none")
	return append(pages, partitionPath+"applications/rejected", partitionPath+"applications/completed")
}

// pagesOf returns the paths of all routes. The names are pairs of a word in braces and what is
// put in its place.
func pagesOf(s *Server, names ...string) (pages []string) {
	fill := strings.NewReplacer(append(names, "{partition}", documents.Partition, "{state}", "active")...)
	for page := range s.routes() {
		pages = append(pages, "/ws/v1/"+fill.Replace(page))
	}
	return pages
}

// BenchmarkPages answers for everything there is, compressed. Before each answer a pod comes and goes.
func BenchmarkPages(b *testing.B) {
	c := benchCluster(b)
	_, _, err := c.server.documents.Of(c.Store.Spec())
	expect.OK(b, err)
	for _, page := range benchPages() {
		b.Run(strings.TrimPrefix(page, "/ws/v1/"), func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				c.Pod("passing", "root.p1.q1", "passing", "vcore=1", "node-001")
				c.Store.Delete("uid-passing", c.Now)
				r := httptest.NewRequest(http.MethodGet, page, nil)
				r.Header.Set("Accept-Encoding", "gzip")
				w := c.ask(r)
				if w.Code != http.StatusOK && w.Code != http.StatusNotFound {
					b.Fatal(w.Code)
				}
				size = w.Body.Len()
			}
			b.ReportMetric(float64(size), "bytes/answer")
		})
	}
}

// BenchmarkUnderLock is each thing that readers do under the lock of the store: what
// a pod may have to wait for. The check is for tests only.
func BenchmarkUnderLock(b *testing.B) {
	c := benchCluster(b)
	var waits []types.UID
	var owners []queues.Charged
	for i := range 64 {
		waits = append(waits, types.UID(fmt.Sprint("uid-pod-", 10*i)))
	}
	for _, a := range c.Inventory.View().Applications[:256] {
		owners = append(owners, queues.Charged{Queue: queues.RootID, Name: a.User})
	}
	b.Run("bite of 256 pods", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			for i := range 256 {
				p := webtest.Large.Pod(i)
				p.Priority = int32(b.N)
				c.Add(p)
			}
			b.StartTimer()
			c.Store.TakeChanges(256)
		}
	})
	for _, work := range []struct {
		name string
		do   func(i int)
	}{
		{"explanation", func(i int) { c.Store.Explanation(waits[i%len(waits)], c.Now) }},
		{"whys of 64 pods", func(int) { c.Store.Whys(waits) }},
		{"gated", func(int) { c.Store.Gated() }},
		{"256 owners", func(int) { c.Store.OwnersUse(owners) }},
		{"check", func(int) { _ = c.Store.Check() }},
	} {
		b.Run(work.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				work.do(i)
			}
		})
	}
}

// BenchmarkBooks is the check of the books, which takes no lock of the store for long.
func BenchmarkBooks(b *testing.B) {
	c := benchCluster(b)
	books := &audit.Books{Inventory: c.Inventory, Owners: c.Store.OwnersUse}
	c.Inventory.View()
	for b.Loop() {
		if err := books.Check(); err != nil {
			b.Fatal(err)
		}
	}
}
