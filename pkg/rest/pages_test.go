package rest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/planner/search"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// podArgs are the arguments of a pod in testdata/pages.
type podArgs struct {
	name, queue, app, request, node, user, groups, required, failed, label string
	priority                                                               int
	foreign, static, deleting, gated                                       bool
}

func scanPod(t *testing.T, d *datadriven.TestData) podArgs {
	var a podArgs
	for key, into := range map[string]any{
		"name": &a.name, "queue": &a.queue, "app": &a.app, "request": &a.request, "node": &a.node, "user": &a.user, "groups": &a.groups,
		"required": &a.required, "failed": &a.failed, "label": &a.label, "priority": &a.priority,
	} {
		d.MaybeScanArgs(t, key, into)
	}
	a.foreign, a.static, a.deleting, a.gated = d.HasArg("foreign"), d.HasArg("static"), d.HasArg("deleting"), d.HasArg("gated")
	return a
}

// pod is the pod that the arguments describe, made at the given time.
func (a podArgs) pod(t *testing.T, created, now time.Time) objects.Pod {
	p := objects.Pod{
		Identity: objects.Identity{
			UID: types.UID("uid-" + a.name), Namespace: "ns", Name: a.name, Created: created,
			Labels: map[string]string{}, Annotations: map[string]string{},
		},
		Spec: objects.Spec{Priority: int32(a.priority), RequiredNode: a.required, Foreign: a.foreign, Static: a.static},
		Status: objects.Status{
			Node:     a.node,
			Deleting: a.deleting, Gated: a.gated,
		},
		Request: amountsOf(t, strings.ReplaceAll(a.request, ",", " ")+" pods=1"),
	}
	for key, value := range map[string]string{
		placement.KeyQueue: a.queue, placement.KeyApplicationID: a.app, "label": a.label,
	} {
		if value != "" {
			p.Labels[key] = value
		}
	}
	if a.user != "" {
		p.Annotations[placement.KeyUserInfo] = fmt.Sprintf(`{"user":%q,"groups":[%q]}`, a.user, a.groups)
	}
	if p.Node != "" {
		p.Scheduled = now
	}
	return p
}

// TestPages goes through testdata/pages: what the cluster does, and what is
// answered then.
func TestPages(t *testing.T) {
	datadriven.Walk(t, "testdata/pages", func(t *testing.T, path string) {
		var c *cluster
		created := map[string]time.Time{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "config":
				if c == nil {
					c = newCluster(t, d.Input)
				} else {
					c.configure(t, d.Input)
				}
			case "node":
				var name string
				d.ScanArgs(t, "name", &name)
				c.node(t, name, d.Input)
				c.store.SetNodeSchedulable(name, !d.HasArg("cordoned"), c.now)
			case "tick":
				c.step(time.Second)
			case "sample":
				c.server.history.Count(c.store.Snapshot(), c.now)
			case "pod":
				a := scanPod(t, d)
				if created[a.name].IsZero() {
					created[a.name] = c.now
				}
				c.store.Upsert(a.pod(t, created[a.name], c.now), c.now)
				if d.HasArg("stuck") {
					c.store.NoNode(types.UID("uid-"+a.name), "", reasons.New(reasons.NoNodeFits, "no node could take the pod"), c.now)
				}
				if a.failed != "" {
					c.store.NoNode(types.UID("uid-"+a.name), "", reasons.New(reasons.BackingOff, "%s", a.failed), c.now)
				}
			case "bounce": // a pod gets a node, and its bind is refused
				uid := c.uid(t, d)
				c.store.Assume(uid, "n1", store.NoSnapshot, c.now)
				c.store.Forget(uid, c.now)
			case "hint": // something happened that may help a pod that no node took
				c.store.Gate(c.uid(t, d), c.now)
			case "delete":
				c.store.Delete(c.uid(t, d), c.now)
			case "preempt":
				return c.preempt(t, d)
			case "require":
				return c.require(t, d)
			case "commit", "victims-deleted", "fail":
				return c.execute(t, d)
			case "wait":
				var d0 string
				d.ScanArgs(t, "for", &d0)
				by := expect.Get(time.ParseDuration(d0))(t)
				c.step(by)
			case "get", "post":
				return c.page(t, d)
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			expect.OK(t, c.store.Check())
			return "ok\n"
		})
	})
}

// uid is that of the pod that a command names.
func (c *cluster) uid(t *testing.T, d *datadriven.TestData) types.UID {
	var name string
	d.ScanArgs(t, "name", &name)
	return types.UID("uid-" + name)
}

// step lets time go on.
func (c *cluster) step(by time.Duration) {
	c.now = c.now.Add(by)
	c.clock.SetTime(c.now)
	c.store.Tick(c.now)
	c.store.NextReports(c.now, 0) // it computes the demand, as the reporter does each second
}

// preempt makes a plan for a pod and starts to carry it out.
func (c *cluster) preempt(t *testing.T, d *datadriven.TestData) string {
	var name string
	d.ScanArgs(t, "name", &name)
	uid := types.UID("uid-" + name)
	input, why := c.store.BeginPlan(uid, "", nil, c.now)
	if !why.None() {
		return why.String() + "\n"
	}
	plan := search.Plan(input.Snapshot, input.Ask, planner.Params{})
	if plan.Outcome == planner.Refuse {
		return c.store.RejectPlan(uid, &plan, c.now).Text + "\n"
	}
	c.store.AcceptPlan(uid, &plan, c.now)
	return "ok\n"
}

// require decides about the only node that a pod can run on.
func (c *cluster) require(t *testing.T, d *datadriven.TestData) string {
	var name string
	d.ScanArgs(t, "name", &name)
	uid := types.UID("uid-" + name)
	input, why := c.store.BeginNodeBoundPlan(uid, nil, c.now)
	if !why.None() {
		return why.String() + "\n"
	}
	plan := daemonset.Plan(input.Node, input.Ask, input.Params)
	held, why := c.store.ApplyPlan(uid, &plan, c.now)
	return fmt.Sprintf("held %t: %s\n", held, why.Text)
}

// execute tells what the executor does for a pod.
func (c *cluster) execute(t *testing.T, d *datadriven.TestData) string {
	var name string
	d.ScanArgs(t, "name", &name)
	uid := types.UID("uid-" + name)
	switch d.Cmd {
	case "commit":
		going, why := c.store.Commit(uid, nil, c.now)
		if !why.None() {
			return why.Text + "\n"
		}
		return fmt.Sprintf("%d go\n", len(going))
	case "victims-deleted":
		c.store.VictimsDeleted(uid, c.now)
	default:
		c.store.FailPlan(uid, reasons.New(reasons.HoldGivenUp, "%s", d.Input), nil, c.now)
	}
	return "ok\n"
}

// page asks for a page and renders the answer.
func (c *cluster) page(t *testing.T, d *datadriven.TestData) string {
	c.record.Take()
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
