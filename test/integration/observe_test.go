package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// fetch reads a URL.
func fetch(ctx context.Context, client *http.Client, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return body, nil
}

// readQueues asks REST for the tree of queues.
func (e *env) readQueues(ctx context.Context) (*documents.Queue, error) {
	body, err := fetch(ctx, http.DefaultClient, "http://"+e.rest+"/ws/v1/partition/default/queues")
	if err != nil {
		return nil, err
	}
	root := &documents.Queue{}
	if err := json.Unmarshal(body, root); err != nil {
		return nil, fmt.Errorf("queues by REST: %w", err)
	}
	return root, nil
}

// checkBuild checks that the scheduler reports the version that it was linked with.
func (e *env) checkBuild() {
	e.Helper()
	body := expect.Get(fetch(e.Context(), http.DefaultClient, "http://"+e.rest+"/ws/v1/clusters"))(e)
	var clusters []documents.Cluster
	e.ok(json.Unmarshal(body, &clusters))
	if len(clusters) != 1 || len(clusters[0].RMBuildInformation) != 1 {
		e.Fatalf("not one cluster with one build: %s", body)
	}
	got := clusters[0].RMBuildInformation[0]
	for flag, fields := range map[string][]string{"Version": {"buildVersion"}, "Commit": {"coreSHA", "shimSHA"}, "Date": {"buildDate"}} {
		_, want, _ := strings.Cut(suite.ldflags, "/pkg/rest/documents.Build"+flag+"=")
		want, _, _ = strings.Cut(want, " ")
		for _, field := range fields {
			if want == "" || got[field] != want {
				e.Errorf("%s is %q, and the build was told %q (flags %q)", field, got[field], want, suite.ldflags)
			}
		}
	}
}

// queue returns a queue as REST shows it; nil if it does not exist.
func (e *env) queue(path string) *documents.Queue {
	e.Helper()
	root := expect.Get(e.readQueues(e.Context()))(e)
	return find(root, path)
}

func find(q *documents.Queue, path string) *documents.Queue {
	if q.QueueName == path {
		return q
	}
	for _, c := range q.Children {
		if f := find(c, path); f != nil {
			return f
		}
	}
	return nil
}

// awaitQueue waits until a queue exists and fulfils a condition.
func (e *env) awaitQueue(path, what string, check func(*documents.Queue) bool) {
	e.Helper()
	eventually(e, patience, "queue "+path+": "+what, func() (bool, string) {
		q := e.queue(path)
		if q == nil {
			return false, "it does not exist"
		}
		text := expect.Get(json.Marshal(q))(e)
		return check(q), string(text)
	})
}

// show lists the queues in a readable form.
func show(q *documents.Queue, lines *[]string) {
	*lines = append(*lines, fmt.Sprintf("%s %s: max %v guaranteed %v allocated %v pending %v, %d applications",
		q.QueueName, q.Status, q.MaxResource, q.GuaranteedResource, q.AllocatedResource, q.PendingResource, q.RunningApps))
	for _, c := range q.Children {
		show(c, lines)
	}
}

// account is the usage and the pending requests of a queue, without zeros.
type account struct{ Allocated, Pending map[string]resources.Amount }

// accounts are those of all queues, parents included, without empty ones.
type accounts map[string]account

func (a accounts) add(path string, pending bool, request map[string]resources.Amount) {
	for p := path; p != ""; p = p[:max(strings.LastIndex(p, "."), 0)] {
		q, known := a[p]
		if !known {
			q = account{map[string]resources.Amount{}, map[string]resources.Amount{}}
			a[p] = q
		}
		for name, amount := range request {
			if amount != 0 && pending {
				q.Pending[name] += amount
			} else if amount != 0 {
				q.Allocated[name] += amount
			}
		}
	}
}

// booked returns the accounts by REST.
func booked(q *documents.Queue, into accounts) {
	a := account{maps.Clone(q.AllocatedResource), maps.Clone(q.PendingResource)}
	for _, m := range []*map[string]resources.Amount{&a.Allocated, &a.Pending} {
		if *m == nil {
			*m = map[string]resources.Amount{}
		}
		maps.DeleteFunc(*m, func(_ string, amount resources.Amount) bool { return amount == 0 })
	}
	if len(a.Allocated)+len(a.Pending) > 0 {
		into[q.QueueName] = a
	}
	for _, c := range q.Children {
		booked(c, into)
	}
}

// recount sums up the requests of the pods that the API server has now, in the queue that
// each one names. A pod without the name of an existing queue is in none.
func (e *env) recount(root *documents.Queue) accounts {
	e.Helper()
	pods := expect.Get(e.listPods(e.Context()))(e)
	out := accounts{}
	for i := range pods {
		p := &pods[i]
		finished := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
		if p.Spec.SchedulerName != profile || finished || len(p.Spec.SchedulingGates) > 0 {
			continue
		}
		path := p.Labels[placement.KeyQueue]
		if q := find(root, path); q == nil || !q.IsLeaf {
			continue
		}
		request := map[string]resources.Amount{"pods": 1}
		for name, q := range resourcehelper.PodRequests(p, resourcehelper.PodResourcesOptions{UseStatusResources: true}) {
			if name == corev1.ResourceCPU {
				request["vcore"] = resources.Amount(q.MilliValue())
			} else {
				request[string(name)] = resources.Amount(q.Value())
			}
		}
		out.add(path, p.Spec.NodeName == "", request)
	}
	return out
}

// expectBooks waits until REST agrees with a recount.
func (e *env) expectBooks() {
	e.Helper()
	eventually(e, patience, "the books agree with the pods (-pods +books)", func() (bool, string) {
		root, err := e.readQueues(e.Context())
		if err != nil {
			return false, err.Error()
		}
		books := accounts{}
		booked(root, books)
		diff := cmp.Diff(e.recount(root), books)
		return diff == "", diff
	})
}

// metric reads a metric from the scheduler's own /metrics; empty where it has no
// value yet. The name includes the labels, in the order in which they are shown.
func (e *env) metric(name string) string {
	e.Helper()
	for line := range strings.Lines(e.metrics()) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (e *env) metrics() string {
	e.Helper()
	admin := suite.cluster.AdminConfig()
	admin.TLSClientConfig.Insecure = true // the scheduler signs its own certificate
	admin.TLSClientConfig.CAData, admin.TLSClientConfig.CAFile = nil, ""
	client, err := clientrest.HTTPClientFor(admin)
	e.ok(err)
	defer client.CloseIdleConnections()
	// A scheduler that has just started may not have read the client CA from the API server yet.
	// Until it has, it takes the request for an anonymous one, or refuses its certificate.
	var body []byte
	eventually(e, patience, "the scheduler knows the user that asks for its metrics", func() (bool, string) {
		body, err = fetch(e.Context(), client, e.process.URL()+"/metrics")
		if err != nil && (strings.Contains(err.Error(), "system:anonymous") || strings.Contains(err.Error(), "401 Unauthorized")) {
			return false, err.Error()
		}
		e.ok(err)
		return true, ""
	})
	return string(body)
}

func (e *env) awaitMetric(name, want string) {
	e.Helper()
	eventually(e, patience, "metric "+name+" is "+want, func() (bool, string) {
		value := e.metric(name)
		return value == want, value
	})
}

// lastLogLine returns the last line with all of the texts; empty for none.
func (e *env) lastLogLine(texts ...string) string {
	e.Helper()
	lines := e.logLines(texts...)
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// logLines returns the lines of the scheduler's log with all of the texts.
func (e *env) logLines(texts ...string) []string {
	e.Helper()
	log, err := os.Open(e.process.Log())
	if err != nil {
		e.Error(err)
		return nil
	}
	defer log.Close()
	var found []string
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if !slices.ContainsFunc(texts, func(t string) bool { return !strings.Contains(line, t) }) {
			found = append(found, line)
		}
	}
	expect.Holds(e, lines.Err())
	return found
}

// eventsOf returns the events about an object.
func eventsOf(ctx context.Context, o metav1.Object) ([]corev1.Event, error) {
	list, err := suite.client.CoreV1().Events(o.GetNamespace()).List(ctx, metav1.ListOptions{
		FieldSelector: "involvedObject.uid=" + string(o.GetUID()),
	})
	if err != nil {
		return nil, fmt.Errorf("list events of %s: %w", o.GetName(), err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Event) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// awaitEvent waits for an event about an object with all of the texts and, unless it is
// empty, a reason.
func (e *env) awaitEvent(o metav1.Object, reason string, texts ...string) corev1.Event {
	e.Helper()
	var found corev1.Event
	eventually(e, patience, fmt.Sprintf("event %s about %s with %q", reason, o.GetName(), texts), func() (bool, string) {
		list := expect.Get(eventsOf(e.Context(), o))(e)
		var seen []string
		for i := range list {
			lacks := func(t string) bool { return !strings.Contains(list[i].Message, t) }
			if (reason == "" || list[i].Reason == reason) && !slices.ContainsFunc(texts, lacks) {
				found = list[i]
				return true, ""
			}
			seen = append(seen, list[i].Reason+": "+list[i].Message)
		}
		return false, strings.Join(seen, " | ")
	})
	return found
}

// describe returns the part of kubectl describe pod that explains the state.
func describe(ctx context.Context, p *corev1.Pod) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Name: %s/%s\nNode: %s\nStatus: %s %s\nConditions:\n", p.Namespace, p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.Reason)
	for _, c := range p.Status.Conditions {
		fmt.Fprintf(&b, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	fmt.Fprintln(&b, "Events:")
	list, err := eventsOf(ctx, p)
	if err != nil {
		fmt.Fprintf(&b, "  (%v)\n", err)
	}
	for i := range list {
		fmt.Fprintf(&b, "  %s %s: %s\n", list[i].Type, list[i].Reason, list[i].Message)
	}
	return b.String()
}

// own requests a page below /api/v1.
func (e *env) own(page string, into any) {
	e.Helper()
	body := expect.Get(fetch(e.Context(), http.DefaultClient, "http://"+e.rest+"/api/v1/"+page))(e)
	e.ok(json.Unmarshal(body, into))
}

// awaitText waits until the answer to a path, such as a web page, has a text.
func (e *env) awaitText(path, text string) {
	e.Helper()
	eventually(e, patience, path+" says "+text, func() (bool, string) {
		body, err := fetch(e.Context(), http.DefaultClient, "http://"+e.rest+path)
		return err == nil && strings.Contains(string(body), text), fmt.Sprintf("%v: %s", err, body)
	})
}
