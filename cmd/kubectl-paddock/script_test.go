package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
	"github.com/paddock-scheduler/paddock/pkg/web"
	"github.com/paddock-scheduler/paddock/pkg/web/webtest"
)

// The files in testdata are sessions in an empty directory without a kubeconfig:
//
//	file NAME          the input becomes a file
//	run                the first line is a command line; the rest is its standard input.
//	                   The result is what it prints, errors marked with "! ", and its exit code
//	scheduler          the input is a queues.yaml; $SERVER is the REST interface of a
//	                   scheduler with it: the real handler, on a tree without pods
//	nodes              what the nodes of that scheduler hold: type=amount ...
//	pods QUEUE         what the pods of a queue use or, with pending, ask for; the queue
//	                   is made where it is missing
//	preempts STAGE     $SERVER is a scheduler in which room is made for pod ns/a: it did not
//	                   come to that yet (refused), victims are chosen (planned), leave
//	                   (leaving), is gone (clear), or the pod runs (bound)
//	live               the same on a whole scheduler, with these pods:
//	pod NAME QUEUE     one that requests type=amount ...; node=NAME where it has a node, stuck
//	                   where no node took it
//	answer STATUS      $SERVER is something that answers every request like this
//	standby            what was served last leads, and $SERVER are two replicas of which
//	                   the other one answers first; with "both", that one too stands by
//	silent             $SERVER is something that never answers
//	breaks             $SERVER is something that breaks off in the middle of its answer
//	gone               $SERVER is where no server listens any more
//	kubeconfig         a file "kubeconfig" for an API server with a service proxy that leads to
//	                   what was served last; it wants namespace/name:port of the input
func TestScripts(t *testing.T) {
	files := expect.Get(filepath.Abs("testdata"))(t)
	datadriven.Walk(t, files, func(t *testing.T, path string) {
		t.Chdir(t.TempDir())
		t.Setenv("KUBECONFIG", "")
		t.Setenv("HOME", t.TempDir())
		s := &session{}
		datadriven.RunTest(t, path, s.command)
	})
}

// session is what the commands of one file share.
type session struct {
	draft   *queues.Draft
	cluster *webtest.Cluster // of a whole scheduler
	handler http.Handler     // of $SERVER
	url     string
}

func (s *session) command(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	switch d.Cmd {
	case "file":
		expect.OK(t, os.WriteFile(d.CmdArgs[0].Key, []byte(d.Input+"\n"), 0o600))
	case "run":
		return s.run(d.Input)
	case "scheduler":
		spec := expect.Get(config.Parse([]byte(d.Input)))(t)
		s.draft = queues.NewDraftFrom(spec)
		s.serve(t, handler(t, rest.Options{Inventory: inventory.New(drafted{s, spec})}))
	case "nodes":
		s.draft.SetCapacity(queuestest.Vector(d.Input))
	case "pods":
		s.pods(t, d)
	case "preempts":
		s.serve(t, preempts(t, d.CmdArgs[0].Key))
	case "live":
		s.live(t, d)
	case "pod":
		s.pod(t, d)
	case "answer":
		code, body := expect.Get(strconv.Atoi(d.CmdArgs[0].Key))(t), d.Input
		s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			fmt.Fprintln(w, body)
		}))
	case "standby":
		s.standBy(t, d.HasArg("both"))
	case "silent":
		s.serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	case "breaks":
		s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"queuename": "root"`)
		}))
	case "gone":
		server := httptest.NewServer(nil)
		s.url = server.URL
		server.Close()
	case "kubeconfig":
		s.kubeconfig(t, d.Input)
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return ""
}

// handler is the REST interface of a scheduler that leads. What a test does not give is
// that of an empty one.
func handler(t *testing.T, o rest.Options) http.Handler {
	empty := webtest.Unstarted(t)
	o.Record = cmp.Or(o.Record, empty.Record)
	o.Explainer = cmp.Or(o.Explainer, &empty.Store.Readers)
	o.Clock = cmp.Or[clock.WithTicker](o.Clock, clock.RealClock{})
	o.Events = empty.Events
	o.Previewer = func() rest.Previewer { return previews{} }
	o.Taint = func(node string) string { return map[string]string{"n1": "held=of-n1"}[node] }
	o.Leading = func() bool { return true }
	o.Configuration = func() web.Configuration { return web.Configuration{} }
	o.NodeLabels = func(string) map[string]string { return nil }
	return rest.NewServer(o).Handler()
}

// drafted is a cluster of which only the queues are known.
type drafted struct {
	session *session
	spec    *config.Spec
}

func (d drafted) Snapshot() *queues.Snapshot { return d.session.draft.Publish(nil) }

func (d drafted) Spec() *config.Spec { return d.spec }

func (d drafted) Whys([]types.UID) []reasons.Reason { return nil }

func (d drafted) TakeChanges(int) output.Changes {
	return output.Changes{Rest: &output.Rest{Started: true, Queues: d.Snapshot(), Holds: &reservations.View{}, Spec: d.spec}}
}

// run returns what a command line prints and its exit code.
func (s *session) run(input string) string {
	line, stdin, _ := strings.Cut(input, "\n")
	args := strings.Fields(strings.ReplaceAll(line, "$SERVER", s.url))
	var out, errs bytes.Buffer
	code := run(args, streams{in: strings.NewReader(stdin), out: &out, err: &errs})
	var b strings.Builder
	b.Write(out.Bytes())
	for line := range strings.Lines(errs.String()) {
		b.WriteString("! " + line)
	}
	fmt.Fprintf(&b, "exit %d\n", code)
	text := b.String()
	if s.url != "" {
		text = strings.ReplaceAll(text, s.url, "$SERVER")
		text = strings.ReplaceAll(text, strings.TrimPrefix(s.url, "http://"), "$ADDRESS")
	}
	return text
}

func (s *session) serve(t *testing.T, handler http.Handler) {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	s.handler, s.url = handler, server.URL
}

// pods adds what pods use, or ask for, to a queue.
func (s *session) pods(t *testing.T, d *datadriven.TestData) {
	id := s.draft.AddDynamic(d.CmdArgs[0].Key, "")
	v := queuestest.Vector(d.Input)
	s.draft.Update(id, func(u *queues.Usage) {
		if d.HasArg("pending") {
			u.Pending = u.Pending.Add(v)
		} else {
			u.Allocated = u.Allocated.Add(v)
		}
		u.Running++
	})
}

// standBy serves two replicas in turn, as the service proxy of an API server might:
// one that stands by, and what was served last.
func (s *session) standBy(t *testing.T, both bool) {
	leads, asked := s.handler, 0
	s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked++; both || asked%2 == 1 {
			w.Header().Set(documents.RoleHeader, documents.RoleStandby)
		}
		if asked%2 == 0 {
			leads.ServeHTTP(w, r)
			return
		}
		fmt.Fprintln(w, `{"decisions": [], "holds": [], "ended": []}`)
	}))
}

// kubeconfig starts an API server that knows one service and nothing else, and lets all
// users in except eve.
func (s *session) kubeconfig(t *testing.T, service string) {
	namespace, name, _ := strings.Cut(service, "/")
	proxy := fmt.Sprintf("/api/v1/namespaces/%s/services/%s/proxy", namespace, name)
	behind := s.handler
	s.serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Impersonate-User") == "eve":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","message":"User \"eve\" cannot get that"}`)
		case !strings.HasPrefix(r.URL.Path, proxy+"/"):
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","message":"not found"}`)
		default:
			http.StripPrefix(proxy, behind).ServeHTTP(w, r)
		}
	}))
	expect.OK(t, os.WriteFile("kubeconfig", []byte(kubeconfigText(s.url, "{token: secret}")), 0o600))
}

// preempting is a cluster in which room is made.
type preempting struct{ *webtest.Cluster }

// preempts is the REST interface of a scheduler in which room was made for pod ns/a as
// far as a stage says. A DaemonSet pod holds another node, where a pod is leaving anyway.
func preempts(t *testing.T, stage string) http.Handler {
	p := preempting{webtest.New(t, `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: fair, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1s}}
    - {name: greedy, resources: {guaranteed: {vcore: 1}}}
`)}
	p.Node("n1", "vcore=4 pods=20")
	p.Node("n2", "vcore=2 pods=20")
	p.pod(objects.Pod{Identity: objects.Identity{Name: "own"}, Spec: objects.Spec{Priority: 9}, Status: objects.Status{Node: "n2"}}, "root.fair", "vcore=1")
	p.pod(objects.Pod{Identity: objects.Identity{Name: "ds"}, Spec: objects.Spec{RequiredNode: "n2"}}, "root.fair", "vcore=1")
	p.pod(objects.Pod{Identity: objects.Identity{Namespace: "other", Name: "left"}, Status: objects.Status{Node: "n2", Deleting: true}}, "root.greedy", "vcore=1")
	for _, name := range []string{"g1", "g2", "g3", "g4"} {
		p.pod(objects.Pod{Identity: objects.Identity{Name: name}, Status: objects.Status{Node: "n1"}}, "root.greedy", "vcore=1")
	}
	p.pod(objects.Pod{Identity: objects.Identity{Name: "big"}}, "root.fair", "vcore=9")
	p.pod(objects.Pod{Identity: objects.Identity{Name: "a"}}, "root.fair", "vcore=2")
	p.Step(2 * time.Second)
	p.Plan("uid-big")
	p.Step(20 * time.Second)
	p.Plan("uid-big")
	p.require("uid-ds")
	p.makeRoom(stage)
	p.Record.Take()
	return handler(t, rest.Options{Inventory: p.Inventory, Record: p.Record})
}

// makeRoom makes room for ns/a as far as a stage says.
func (p preempting) makeRoom(stage string) {
	todo := slices.Index([]string{"refused", "planned", "leaving", "clear", "bound"}, stage)
	p.Step(time.Second)
	if todo >= 1 {
		p.Plan("uid-a")
	}
	if todo < 2 {
		return
	}
	p.Step(time.Second)
	going, _ := p.Store.Commit("uid-a", nil, p.Now)
	p.Store.VictimsDeleted("uid-a", p.Now)
	for _, v := range going {
		p.Step(time.Second)
		if todo >= 3 {
			p.Store.Delete(v.UID, p.Now)
		}
	}
	if todo >= 4 {
		p.Step(time.Second)
		p.pod(objects.Pod{Identity: objects.Identity{Name: "a"}, Status: objects.Status{Node: "n1"}}, "root.fair", "vcore=2")
	}
}

func (p preempting) pod(pod objects.Pod, queue, request string) {
	pod.Namespace = cmp.Or(pod.Namespace, "ns")
	pod.Labels = map[string]string{placement.KeyQueue: queue, placement.KeyApplicationID: queue}
	pod.Request = queuestest.Vector(request + " pods=1")
	p.Add(pod)
}

// require decides about the only node that a pod can run on.
func (p preempting) require(uid types.UID) {
	input, _ := p.Store.BeginNodeBoundPlan(uid, nil, p.Now)
	d := daemonset.Plan(input.Node, input.Ask, input.Params)
	p.Store.ApplyPlan(uid, &d, p.Now)
}

func (s *session) live(t *testing.T, d *datadriven.TestData) {
	s.cluster = webtest.New(t, d.Input)
	s.serve(t, handler(t, rest.Options{
		Inventory: s.cluster.Inventory, Explainer: &s.cluster.Store.Readers, Clock: s.cluster.Clock,
	}))
}

// previews answers with the outcome that the manifest names.
type previews struct{}

func (previews) Preview(_ context.Context, manifest []byte) (*documents.Preview, error) {
	outcome := strings.TrimSpace(string(manifest))
	p := &documents.Preview{
		Ref: objects.Ref{Namespace: "team", Name: "new"}, Outcome: outcome, Summary: "Pod team/new " + outcome, Profile: "yunikorn",
		Request: map[string]resources.Amount{"vcore": 2000}, Nodes: &documents.PreviewNodes{All: 3, Fit: 1, Refused: map[string]int{"Insufficient cpu": 2}},
		Queue:       &documents.ExplainedQueue{Path: "root.a", FoundBy: "provided", Application: "x", User: "ann"},
		Quota:       []documents.QueueQuota{{Queue: "root.a", Guaranteed: map[string]resources.Amount{"vcore": 4000}, UnderGuarantee: []string{"vcore"}}},
		NotLookedAt: []string{"scores"},
	}
	switch outcome {
	case documents.PreviewFits:
	case documents.PreviewWaits:
		p.Reason, p.ToDo = &documents.Reason{Code: "OverMax", Meaning: "It is over its max."}, []string{"Wait."}
	case documents.PreviewPreempts:
		used, guaranteed := resources.Amount(0), resources.Amount(4000)
		p.Decision = &record.Decision{
			Victims: []record.Victim{{Ref: objects.Ref{Namespace: "team", Name: "old"}, Queue: "root.b", Node: "n1", Requests: map[string]resources.Amount{"vcore": 2000}}},
			Numbers: []record.Number{{Law: "4", Queue: "root.a", Resource: "vcore", Used: &used, Guaranteed: &guaranteed}},
		}
		p.Makes, p.Waiting = true, 2
	default:
		return nil, &documents.ManifestError{Text: "kind: is missing; it must be Pod"}
	}
	return p, nil
}

func (s *session) pod(t *testing.T, d *datadriven.TestData) {
	name, node := d.CmdArgs[0].Key, ""
	d.MaybeScanArgs(t, "node", &node)
	s.cluster.Add(objects.Pod{
		Identity: objects.Identity{Name: name, Labels: map[string]string{
			placement.KeyQueue: d.CmdArgs[1].Key, placement.KeyApplicationID: name,
		}},
		Status:  objects.Status{Node: node},
		Request: queuestest.Vector(d.Input + " pods=1"),
	})
	if d.HasArg("stuck") {
		why := reasons.New(reasons.NoNodeFits, "no node could take the pod")
		s.cluster.Store.NoNode(types.UID("uid-"+name), "", why, s.cluster.Now)
	}
}
