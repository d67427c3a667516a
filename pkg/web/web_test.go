package web_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	texttemplate "text/template"
	"time"

	"github.com/cockroachdb/datadriven"
	"golang.org/x/net/html"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
	"github.com/paddock-scheduler/paddock/pkg/web"
	"github.com/paddock-scheduler/paddock/pkg/web/webtest"
)

type site struct {
	*web.Pages
	cluster       *webtest.Cluster
	configuration web.Configuration
	checks        []web.CheckResult
	checked       time.Time
	taint         string
	mux           *http.ServeMux
}

func newSite(c *webtest.Cluster) *site {
	s := &site{cluster: c, mux: http.NewServeMux(), taint: "held=<of>-"}
	s.configuration = web.Configuration{Source: "the test", Since: c.Now.Add(-time.Hour)}
	s.checks = []web.CheckResult{{Name: "Books", Succeeded: true, Description: "all is right"}}
	s.checked = c.Now.Add(-3 * time.Second)
	s.Pages = web.New(web.Options{
		Inventory: c.Inventory, Record: c.Record, Clock: c.Clock, Version: "v0-test",
		Configuration: func() web.Configuration { return s.configuration },
		Taint:         func(node string) string { return s.taint + node },
		Health:        func() web.Checked { return web.Checked{At: s.checked, Checks: s.checks} },
		StandsBy:      func() bool { return false },
	})
	for path, handler := range s.Handlers() {
		s.mux.HandleFunc(path, handler)
	}
	return s
}

// get asks for a page, which may be one that the asker has.
func (s *site) get(method, path, tag string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	c := httptest.NewRecorder()
	s.mux.ServeHTTP(c, r)
	return c
}

func (s *site) page(t testing.TB, path string) string {
	t.Helper()
	c := s.get(http.MethodGet, path, "")
	expect.Same(t, path, http.StatusOK, c.Code)
	return c.Body.String()
}

func parsed(t testing.TB, page string) *html.Node {
	t.Helper()
	return expect.Get(html.Parse(strings.NewReader(page)))(t)
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// blocks are elements that begin a line of their own in a browser that shows text.
var blocks = []string{"p", "h1", "h2", "h3", "li", "tr", "div", "section", "form", "details", "summary", "table", "ul", "dl", "nav"}

// textOf is what a browser that shows text would show of the content of a page.
func textOf(t testing.TB, page string) string {
	t.Helper()
	var main *html.Node
	var out bytes.Buffer
	for n := range parsed(t, page).Descendants() {
		if n.Data == "main" {
			main = n
		}
	}
	var walk func(n *html.Node)
	walk = func(n *html.Node) {
		switch {
		case n.Type == html.TextNode:
			out.WriteString(strings.ReplaceAll(n.Data, "\n", " "))
			return
		case attribute(n, "aria-hidden") == "true":
			return // said in words beside it
		case slices.Contains(blocks, n.Data) || strings.Contains(attribute(n, "class"), "line"):
			out.WriteString("\n")
		case n.Data == "td" || n.Data == "th" || n.Data == "dd":
			out.WriteString(" | ")
		case n.Data == "option" && !slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "selected" }):
			return
		}
		for c := range n.ChildNodes() {
			walk(c)
		}
	}
	walk(main)
	var lines []string
	for line := range strings.Lines(out.String()) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// TestPages goes through testdata: pages of the busy cluster, as text or as they are.
func TestPages(t *testing.T) {
	s := newSite(webtest.Busy(t))
	_, err := config.Parse([]byte("partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n    - {name: a b, resources: {max: {vcore: x}}}\n"))
	failed := web.Failure{At: s.cluster.Now, Source: "ConfigMap yunikorn/yunikorn-configs", Err: err}
	corrected := failed
	corrected.Corrected = s.cluster.Now.Add(time.Minute)
	corrected.Err = errors.New("open queues.yaml: no such file or directory")
	datadriven.Walk(t, "testdata/pages", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.configuration.Failure = nil
			if d.HasArg("failed") {
				s.configuration.Failure = &failed
			} else if d.HasArg("corrected") {
				s.configuration.Failure = &corrected
			}
			s.checks = s.checks[:1]
			if d.HasArg("wrong") {
				s.checks = append(s.checks, web.CheckResult{Name: "Pods", Description: "none is lost", DiagnosisMessage: "pod team/x is lost"})
			}
			c := s.get(http.MethodGet, d.CmdArgs[0].String(), "")
			out := textOf(t, c.Body.String())
			if d.Cmd != "text" && d.Cmd != "html" {
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			if d.Cmd == "html" {
				_, after, _ := strings.Cut(c.Body.String(), "<h2>")
				out, _, _ = strings.Cut("<h2>"+after, "</main>")
			}
			if c.Code != http.StatusOK {
				out = fmt.Sprintf("status %d\n%s", c.Code, out)
			}
			return strings.TrimRight(out, "\n") + "\n"
		})
	})
}

// decided is a source of decisions.
type decided []output.Event

func (d decided) Ready() <-chan struct{}                    { return nil }
func (d decided) Take([]output.Event) ([]output.Event, int) { return d, 0 }

// TestVictimsOfAnEarlierProcess: of them only the UID is known.
func TestVictimsOfAnEarlierProcess(t *testing.T) {
	c := webtest.New(t, "")
	c.Record = record.New(decided{{Kind: output.Decided, Step: &output.Step{
		Ref: objects.Ref{UID: "uid-asker", Namespace: "team", Name: "asker"}, Kind: output.StepTakenUp, At: c.Now,
		Hold: reservations.Hold{Asker: "uid-asker", Node: "n1", Chosen: []types.UID{"uid-victim"}},
	}}})
	c.Record.Take()
	expect.Says(t, textOf(t, newSite(c).page(t, "/decisions")), "taken up after a restart", "1 victim\nuid-victim.\n")
}

// TestEachWaitingPodHasItsDecisions: also where several pods share one reason.
func TestEachWaitingPodHasItsDecisions(t *testing.T) {
	c := webtest.New(t, `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: '*'
    queues:
    - {name: a, resources: {guaranteed: {vcore: 3}}, properties: {preemption.delay: 1s}}
`)
	c.Node("n1", "vcore=1 pods=9")
	c.Pod("runs", "root.a", "runs", "vcore=1", "n1")
	for _, name := range []string{"one", "two"} {
		c.Pod(name, "root.a", name, "vcore=1", "")
		c.Store.NoNode(types.UID("uid-"+name), "", reasons.Brief(reasons.NoNodeFits), c.Now)
		c.Step(2 * time.Second)
		refused := c.Plan(types.UID("uid-" + name))
		c.Store.NoNode(types.UID("uid-"+name), "", refused, c.Now)
	}
	page := newSite(c).page(t, "/waiting")
	expect.Same(t, "reasons", 1, strings.Count(page, `class="why"`))
	expect.Says(t, page, "./decisions?namespace=team&amp;pod=one", "./decisions?namespace=team&amp;pod=two")
}

func TestHeader(t *testing.T) {
	s := newSite(webtest.Busy(t))
	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options":  "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer",
		"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "private, no-cache", "Access-Control-Allow-Origin": "",
	}
	check := func(name string, c *httptest.ResponseRecorder, status int) {
		t.Helper()
		expect.Same(t, name+": status", status, c.Code)
		for key, value := range want {
			expect.Same(t, name+": header "+key, value, c.Header().Get(key))
		}
	}
	const page = "text/html; charset=utf-8"
	kinds := map[string]string{
		"/": page, "/waiting": page, "/nodes": page, "/node?name=rack-1-a": page, "/decisions": page,
		"/configuration": page, "/health": page, "/icon.svg": "image/svg+xml",
		"/style.css": "text/css; charset=utf-8",
	}
	expect.Same(t, "pages", len(s.Handlers()), len(kinds))
	for path, kind := range kinds {
		got := s.get(http.MethodGet, path, "")
		check(path, got, http.StatusOK)
		expect.Same(t, path+": type", kind, got.Header().Get("Content-Type"))
		check("HEAD "+path, s.get(http.MethodHead, path, ""), http.StatusOK)
		check(path+" again", s.get(http.MethodGet, path, got.Header().Get("ETag")), http.StatusNotModified)
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			c := s.get(method, path, "")
			check(method+" "+path, c, http.StatusMethodNotAllowed)
			expect.Same(t, method+" "+path+": Allow", "GET, HEAD", c.Header().Get("Allow"))
		}
	}
	for path, says := range map[string]string{"/?queue=root.nowhere": "no queue root.nowhere", "/node?name=x": "no node x", "/node": "no node"} {
		c := s.get(http.MethodGet, path, "")
		check(path, c, http.StatusNotFound)
		expect.That(t, strings.Contains(c.Body.String(), says), "%s does not say %q", path, says)
	}
}

// TestAnswersAgainOnlyWhatChanged asks for pages that the asker has.
func TestAnswersAgainOnlyWhatChanged(t *testing.T) {
	c := webtest.Busy(t)
	s := newSite(c)
	still := []string{"/", "/?queue=root.sandbox", "/nodes", "/configuration"}
	held := "/node?name=" + c.Inventory.View().Holds.All()[0].Node
	moving := []string{held, "/waiting", "/decisions", "/health"}
	tags := map[string]string{}
	answers := func(what string, paths []string, changed bool) {
		t.Helper()
		for _, path := range paths {
			got := s.get(http.MethodGet, path, tags[path])
			expect.That(t, changed == (got.Code == http.StatusOK), "%s: %s answers %d", what, path, got.Code)
			expect.That(t, got.Code != http.StatusNotModified || got.Body.Len() == 0,
				"%s: %s has a body of %d bytes", what, path, got.Body.Len())
			tags[path] = got.Header().Get("ETag")
		}
	}
	all := append(slices.Clone(still), moving...)
	answers("at first", all, true)
	answers("again", all, false)
	c.Step(time.Second)
	answers("a second later", append(still, held), false)
	s.taint = "kept=<of>-"
	answers("another taint", []string{held}, true)
	answers("a second later", []string{"/waiting", "/decisions"}, true) // they say how long ago
	c.Pod("new", "root.sandbox", "new", "vcore=100m", "rack-2-a")
	answers("a pod more", []string{"/", "/?queue=root.sandbox", "/nodes"}, true)
	answers("a pod more", []string{"/configuration"}, false)
	s.configuration.Failure = &web.Failure{At: c.Now, Source: "maps", Err: errors.New("forbidden")}
	answers("another configuration", still, true)
	s.checks[0].Succeeded, s.checks[0].DiagnosisMessage = false, "it is not"
	answers("something is wrong", []string{"/health"}, true)
	c.Clock.SetTime(c.Now.Add(time.Hour))
	other := newSite(c)
	got := other.get(http.MethodGet, "/", tags["/"]) // its configuration is valid
	expect.Same(t, "another process for a page of this one", http.StatusOK, got.Code)
}

func TestBeforeTheStart(t *testing.T) {
	c := webtest.Unstarted(t)
	s := newSite(c)
	s.configuration = web.Configuration{Failure: &web.Failure{At: c.Now, Source: "maps", Err: errors.New("forbidden")}}
	for _, path := range []string{"/", "/waiting", "/nodes", "/decisions", "/configuration", "/health"} {
		expect.Says(t, s.page(t, path), "has not begun", "there was none before it")
	}
	expect.Says(t, s.page(t, "/configuration"), "Nothing is in force yet", "forbidden")
}

// found collects what links of a page with a prefix lead to, and returns where its
// list goes on; empty for the end.
func found(page *html.Node, prefix string, into map[string]bool) (next string) {
	for n := range page.Descendants() {
		if n.Data != "a" {
			continue
		}
		address := attribute(n, "href")
		if strings.HasPrefix(address, prefix) {
			into[strings.TrimPrefix(address, ".")] = true
		}
		if attribute(n, "rel") == "next" {
			next = strings.TrimPrefix(address, ".")
		}
	}
	return next
}

// largest is how large a page may be: what a phone can show.
const largest = 512 << 10

func TestEverythingIsFoundInALargeCluster(t *testing.T) {
	size := webtest.Size{Parents: 4, Leaves: 250, Nodes: 120, Apps: 100, Pods: 1200}
	s := newSite(webtest.Sized(t, size))
	read := func(path string) *html.Node {
		page := s.page(t, path)
		expect.That(t, len(page) <= largest, "%s has %d bytes", path, len(page))
		return parsed(t, page)
	}
	list := func(path, prefix string, into map[string]bool) {
		for path != "" {
			path = found(read(path), prefix, into)
		}
	}
	all := map[string]bool{}
	list("/", "./?queue=", all)
	for _, path := range slices.Collect(maps.Keys(all)) {
		if strings.Count(path, ".") == 1 {
			list(path, "./?queue=", all)
		}
	}
	expect.Same(t, "queues with root that are found from the first page", size.Parents*(size.Leaves+1)+1, len(all))
	for path, want := range map[string]int{"/?find=.Q1": 4 * 111, "/?show=short": 10} {
		all := map[string]bool{}
		list(path, "./?queue=", all)
		expect.Same(t, path+" leads to", want, len(all))
	}
	nodes, pods := map[string]bool{}, map[string]bool{}
	list("/nodes?show=foreign&find=NODE", "./node?name=", nodes)
	expect.Same(t, "nodes with pods of others, found in any case", size.Nodes, len(nodes))
	for path := "/waiting?each=pod"; path != ""; {
		page := read(path)
		for n := range page.Descendants() {
			if name := n.FirstChild; n.Data == "bdi" && name != nil && strings.HasPrefix(name.Data, "pod-") {
				pods[name.Data] = true
			}
		}
		path = found(page, "./none", nil)
	}
	expect.Same(t, "waiting pods that are found", size.Pods/10, len(pods))
}

// BenchmarkPages answers for a large cluster. Before each answer a pod comes and goes.
func BenchmarkPages(b *testing.B) {
	c := webtest.Sized(b, webtest.Large)
	s := newSite(c)
	for _, path := range []string{
		"/", "/?queue=root.p7", "/?queue=root.p7.q7", "/?find=q", "/?show=short", "/waiting", "/waiting?each=pod&page=40", "/waiting?queue=root.p0",
		"/nodes", "/nodes?show=held", "/node?name=node-007", "/decisions", "/configuration", "/health",
	} {
		b.Run(strings.Trim(path, "/"), func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				c.Pod("passing", "root.p1.q1", "passing", "vcore=1", "")
				c.Store.Delete("uid-passing", c.Now)
				size = len(s.page(b, path))
			}
			b.ReportMetric(float64(size), "bytes/answer")
		})
	}
}

// nasty are names that would do something if they were not escaped where they stand.
var nasty = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`,
	`</title></style></svg><script>alert(1)</script>`, "a\u202egnp.exe", `{{.Version}}`, `&lt;b&gt;`, `?queue=root&each=pod#x`, "x\x00y", "\xff\xfe",
}

func hostile(t testing.TB) *site {
	c := webtest.New(t, `
partitions:
- name: default
  placementrules: [{name: provided, create: true}]
  queues:
  - name: root
    submitacl: '*'
    queues:
    - name: a
      limits:
      - {limit: "<script>alert(1)</script>", users: ["*"], maxresources: {vcore: 100}}
      properties: {"<script>alert(1)</script>": "<script>alert(1)</script>"}
    - name: b
      resources: {guaranteed: {vcore: 4, "<script>": 1}}
      properties: {preemption.delay: 10s}
`)
	older := map[string]time.Duration{"waiting": -time.Second} // then the running pod is no originator
	type hostile struct {
		kind, name, queue, app, node, request string
		spec                                  objects.Spec
	}
	add := func(p hostile) {
		c.Add(objects.Pod{
			Identity: objects.Identity{
				UID: types.UID("uid-" + p.kind + p.name), Namespace: p.name, Name: p.name, Created: c.Now.Add(older[p.kind]),
				Labels:      map[string]string{placement.KeyQueue: p.queue, placement.KeyApplicationID: p.app, p.name: p.name},
				Annotations: map[string]string{placement.KeyUserInfo: fmt.Sprintf(`{"user":%q,"groups":[%q]}`, p.name, p.name)},
			},
			Spec: p.spec, Status: objects.Status{Node: p.node}, Request: queuestest.Vector(p.request + " pods=1"),
		})
	}
	for i, name := range nasty {
		const request = "vcore=1 <script>alert(1)</script>=1"
		c.Node(name, "vcore=4 memory=8Gi pods=20 <script>alert(1)</script>=3")
		add(hostile{kind: "running", name: name, queue: "root.a", app: name, node: name, request: request})
		add(hostile{kind: "waiting", name: name, queue: "root.a", app: name, request: request})
		add(hostile{kind: "lost", name: name, queue: "root.a." + name, app: name, request: request})
		add(hostile{kind: "made", name: name, queue: "root.made" + fmt.Sprint(i) + name, app: name, request: request})
		add(hostile{kind: "foreign", name: name, app: name, node: name, request: request, spec: objects.Spec{Foreign: true}})
	}
	for i := range 3 {
		add(hostile{
			kind: fmt.Sprint("more-", i), name: nasty[1], queue: "root.a", app: nasty[2], node: nasty[0], request: "vcore=1",
			spec: objects.Spec{Priority: -1},
		})
	}
	add(hostile{kind: "asker", name: nasty[0], queue: "root.b", app: "<asker>", request: "vcore=3"})
	c.Preempt("asker" + nasty[0])
	s := newSite(c)
	_, err := config.Parse([]byte("partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n    - {name: \"<script>alert(1)</script>\"}\n    - {name: c, '<b>': 1}\n"))
	s.configuration.Source = nasty[0]
	s.configuration.Failure = &web.Failure{At: c.Now, Source: nasty[1], Err: err}
	s.checks = []web.CheckResult{{Name: nasty[0], Description: nasty[1], DiagnosisMessage: nasty[4]}}
	return s
}

var allowed = strings.Fields("html head meta title link body a header p nav ul ol li main footer h1 h2 h3 form label input select option button " +
	"details summary section div span small strong code pre br wbr bdi time table thead tbody tr th td dl dt dd svg rect line")

// harmless finds elements and attributes that no page has, and links that lead away.
func harmless(t testing.TB, page string) error {
	var errs []error
	for n := range parsed(t, page).Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if !slices.Contains(allowed, n.Data) {
			errs = append(errs, fmt.Errorf("element %s", n.Data))
		}
		for _, a := range n.Attr {
			switch {
			case strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "src" || strings.ContainsAny(a.Key, "<>'\""):
				errs = append(errs, fmt.Errorf("attribute %s of %s", a.Key, n.Data))
			case a.Key == "href" || a.Key == "action":
				if u, err := url.Parse(a.Val); err != nil || u.Scheme != "" || u.Host != "" || !strings.HasPrefix(a.Val, "./") && !strings.HasPrefix(a.Val, "#") {
					errs = append(errs, fmt.Errorf("%s leads to %q", n.Data, a.Val))
				}
			}
		}
	}
	for _, hidden := range []string{"\u202e", "\x00"} {
		if strings.Contains(page, hidden) {
			errs = append(errs, fmt.Errorf("%q is on the page as it is", hidden))
		}
	}
	return errors.Join(errs...)
}

// hostileAddresses are all pages, asked for with every nasty name.
func hostileAddresses() []string {
	out := []string{"/", "/waiting", "/waiting?each=pod", "/nodes", "/decisions", "/configuration", "/health", "/?queue=root.a", "/?queue=root.b", "/?find=root"}
	for _, name := range nasty {
		q := url.QueryEscape(name)
		out = append(out,
			"/?find="+q, "/?queue="+q, "/?show="+q, "/waiting?queue="+q, "/waiting?namespace="+q+"&application="+q+"&each=pod",
			"/nodes?find="+q, "/node?name="+q, "/decisions?pod="+q+"&namespace="+q+"&queue="+q, "/nodes?page="+q+"&"+q+"="+q, "/configuration?page="+q)
	}
	return out
}

// TestNamesAreShownAsTheyAre reads back what was escaped.
func TestNamesAreShownAsTheyAre(t *testing.T) {
	s := hostile(t)
	for path, wants := range map[string][]string{
		"/waiting?each=pod": {nasty[0], nasty[1], nasty[2], nasty[3], `a\u202egnp.exe`},
		"/nodes":            {nasty[0], nasty[4], `x\u0000y`},
		"/decisions":        {nasty[0], nasty[1]},
		"/node?name=" + url.QueryEscape(nasty[1]): {nasty[1], "<script>alert(1)</script>"},
		"/configuration": {nasty[0], "line 6", "<b>"},
		"/health":        {nasty[0], nasty[1], nasty[4]},
	} {
		expect.Says(t, textOf(t, s.page(t, path)), wants...)
	}
}

func TestUnescapedNamesAreNoticed(t *testing.T) {
	plain := texttemplate.Must(texttemplate.ParseFiles("templates/parts.html"))
	for _, name := range nasty[:2] {
		var out strings.Builder
		expect.OK(t, plain.ExecuteTemplate(&out, "facts", []struct{ Name, Value string }{{"Quota of namespace", name}}))
		expect.That(t, harmless(t, out.String()) != nil, "not found: %q", name)
	}
	for _, page := range []string{
		`<p onclick="x">`, `<p style="color: red">`, `<script></script>`, `<a href="https://example.com">x</a>`, `<a href="//example.com">x</a>`,
		`<a href="javascript:alert(1)">x</a>`, `<img src="x">`, `<form action="/x">`, "<p>\u202e", `<iframe></iframe>`,
	} {
		expect.That(t, harmless(t, page) != nil, "not found: %s", page)
	}
}

// FuzzRequest asks for pages with whatever there may be in an address: those of a cluster with
// hostile names, first with all these names in the address.
func FuzzRequest(f *testing.F) {
	s := hostile(f)
	paths := []string{"/", "/waiting", "/nodes", "/node", "/decisions", "/configuration", "/health"}
	for _, address := range hostileAddresses() {
		path, query, _ := strings.Cut(address, "?")
		if i := slices.Index(paths, path); i >= 0 {
			f.Add(byte(i), query)
		}
	}
	f.Add(byte(0), "page=-1&apps=99999999999999999999&queue=..&show=%zz")
	f.Add(byte(1), strings.Repeat("namespace=", 100)+strings.Repeat("%e2%80%ae", 500))
	f.Fuzz(func(t *testing.T, page byte, query string) {
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: paths[int(page)%len(paths)], RawQuery: query}, Header: http.Header{}}
		w := httptest.NewRecorder()
		s.mux.ServeHTTP(w, r)
		expect.That(t, w.Code == http.StatusOK || w.Code == http.StatusNotFound, "status %d", w.Code)
		expect.Holds(t, harmless(t, w.Body.String()))
	})
}
