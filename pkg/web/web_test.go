package web_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"golang.org/x/net/html"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/web"
	"github.com/paddock-scheduler/paddock/pkg/web/webtest"
)

// site is the pages of a cluster.
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
	for _, path := range s.Paths() {
		s.mux.Handle(path, s.Pages)
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
			switch {
			case d.HasArg("failed"):
				s.configuration.Failure = &failed
			case d.HasArg("corrected"):
				s.configuration.Failure = &corrected
			default:
				s.configuration.Failure = nil
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
	expect.Same(t, "pages", len(s.Paths()), len(kinds))
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
	if got := other.get(http.MethodGet, "/", tags["/"]); got.Code != http.StatusOK { // its configuration is valid
		t.Errorf("another process answers %d for a page of this one", got.Code)
	}
}

func TestBeforeTheStart(t *testing.T) {
	c := webtest.Unstarted(t)
	s := newSite(c)
	s.configuration = web.Configuration{Failure: &web.Failure{At: c.Now, Source: "maps", Err: errors.New("forbidden")}}
	for _, path := range []string{"/", "/waiting", "/nodes", "/decisions", "/configuration", "/health"} {
		page := s.page(t, path)
		expect.Says(t, page, "has not begun", "there was none before it")
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
	list("/nodes?show=foreign", "./node?name=", nodes)
	expect.Same(t, "nodes with pods of others", size.Nodes, len(nodes))
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
