package integration

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
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

// decode reads a URL that answers in JSON.
func decode(ctx context.Context, url string, into any) error {
	body, err := fetch(ctx, http.DefaultClient, url)
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	return err
}

// read decodes the answer of REST to a path.
func (e *env) read(ctx context.Context, path string, into any) error {
	return decode(ctx, "http://"+e.rest+path, into)
}

func (e *env) readQueues(ctx context.Context) (*documents.Queue, error) {
	root := &documents.Queue{}
	return root, e.read(ctx, "/ws/v1/partition/default/queues", root)
}

// checkBuild checks that the scheduler reports the version that it was linked with.
func (e *env) checkBuild() {
	var clusters []struct{ RMBuildInformation []map[string]string }
	e.ok(e.read(e.Context(), "/ws/v1/clusters", &clusters))
	if len(clusters) != 1 || len(clusters[0].RMBuildInformation) != 1 {
		e.Fatalf("not one cluster with one build: %+v", clusters)
	}
	got := clusters[0].RMBuildInformation[0]
	ldflags := ""
	for _, s := range expect.Get(buildinfo.ReadFile(suite.scheduler))(e).Settings {
		if s.Key == "-ldflags" {
			ldflags = s.Value
		}
	}
	flags := map[string]string{"buildVersion": "Version", "coreSHA": "Commit", "shimSHA": "Commit", "buildDate": "Date"}
	for field, flag := range flags {
		_, want, _ := strings.Cut(ldflags, "/pkg/rest/documents.Build"+flag+"=")
		want, _, _ = strings.Cut(want, " ")
		expect.That(e, want != "" && got[field] == want,
			"%s is %q, and the build was told %q (flags %q)", field, got[field], want, ldflags)
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

// accounts are the amounts that queues use and request, parents included, without zeros,
// by queue, state and type.
type accounts map[string]resources.Amount

func (a accounts) add(path, state string, amounts map[string]resources.Amount) {
	for name, amount := range amounts {
		if amount != 0 {
			a[path+" "+state+" "+name] += amount
		}
	}
}

// book adds a queue, and those below it, by REST.
func (a accounts) book(q *documents.Queue) {
	a.add(q.QueueName, "allocated", q.AllocatedResource)
	a.add(q.QueueName, "pending", q.PendingResource)
	for _, c := range q.Children {
		a.book(c)
	}
}

// recount sums up the requests of the pods that the API server has now, in the queue that
// each one names. A pod without the name of an existing queue is in none.
func (e *env) recount(root *documents.Queue) accounts {
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
		state := "allocated"
		if p.Spec.NodeName == "" {
			state = "pending"
		}
		for ; path != ""; path = path[:max(strings.LastIndex(path, "."), 0)] {
			out.add(path, state, request)
		}
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
		books.book(root)
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

func (e *env) metrics() (text string) {
	e.Helper()
	// A scheduler that has just started may not have read the client CA from the API server yet.
	// Until it has, it takes the request for an anonymous one, or refuses its certificate.
	eventually(e, patience, "the scheduler knows the user that asks for its metrics", func() (bool, string) {
		var err error
		text, err = e.metricsAs(suite.cluster.AdminConfig())
		if err != nil && (strings.Contains(err.Error(), "system:anonymous") || strings.Contains(err.Error(), "401 Unauthorized")) {
			return false, err.Error()
		}
		e.ok(err)
		return true, ""
	})
	return text
}

// metricsAs reads /metrics with the credentials of a client configuration.
func (e *env) metricsAs(access *clientrest.Config) (string, error) {
	e.Helper()
	access = clientrest.CopyConfig(access)
	access.Insecure, access.CAData, access.CAFile = true, nil, "" // the scheduler signs its own certificate
	client := expect.Get(clientrest.HTTPClientFor(access))(e)
	defer client.CloseIdleConnections()
	body, err := fetch(e.Context(), client, e.process.URL()+"/metrics")
	return string(body), err
}

func (e *env) awaitMetric(name, want string) {
	e.Helper()
	eventually(e, patience, "metric "+name+" is "+want, func() (bool, string) {
		value := e.metric(name)
		return value == want, value
	})
}

// logLines returns the lines of the scheduler's log with all of the texts.
func (e *env) logLines(texts ...string) (found []string) {
	e.Helper()
	log, err := os.ReadFile(e.process.Log())
	expect.Holds(e, err)
	for line := range strings.SplitSeq(string(log), "\n") {
		if !slices.ContainsFunc(texts, func(t string) bool { return !strings.Contains(line, t) }) {
			found = append(found, line)
		}
	}
	return found
}

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
		var seen []string
		for _, v := range expect.Get(eventsOf(e.Context(), o))(e) {
			lacks := func(t string) bool { return !strings.Contains(v.Message, t) }
			if (reason == "" || v.Reason == reason) && !slices.ContainsFunc(texts, lacks) {
				found = v
				return true, ""
			}
			seen = append(seen, v.Reason+": "+v.Message)
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

// awaitText waits until the answer to a path, such as a web page, has a text.
func (e *env) awaitText(path, text string) {
	e.Helper()
	eventually(e, patience, path+" says "+text, func() (bool, string) {
		body, err := fetch(e.Context(), http.DefaultClient, "http://"+e.rest+path)
		return err == nil && strings.Contains(string(body), text), fmt.Sprintf("%v: %s", err, body)
	})
}

// awaitTold waits until the condition PodScheduled of a pod, or an event about it,
// contains a text, in upper or lower case.
func (e *env) awaitTold(p *corev1.Pod, text string) {
	e.Helper()
	says := func(s string) bool { return strings.Contains(strings.ToLower(s), strings.ToLower(text)) }
	eventually(e, patience, fmt.Sprintf("pod %s is told of %q", p.Name, text), func() (bool, string) {
		now := e.get(p)
		if c := conditionOf(now, corev1.PodScheduled); c != nil && says(c.Message) {
			return true, ""
		}
		list := expect.Get(eventsOf(e.Context(), p))(e)
		for i := range list {
			if says(list[i].Message) {
				return true, ""
			}
		}
		return false, describe(e.Context(), now)
	})
}
