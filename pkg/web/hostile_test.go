package web_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	texttemplate "text/template"
	"time"

	"golang.org/x/net/html"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/web"
	"github.com/paddock-scheduler/paddock/pkg/web/webtest"
)

// nasty are names that would do something if they were not escaped where they stand.
var nasty = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `javascript:alert(1)`,
	`</title></style></svg><script>alert(1)</script>`, "a\u202egnp.exe", `{{.Version}}`, `&lt;b&gt;`, `?queue=root&each=pod#x`, "x\x00y", "\xff\xfe",
}

// hostile is a cluster with names chosen by an attacker.
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

// allowed are the elements of the pages.
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

// TestUnescapedNamesAreNoticed: a template that does not escape is noticed.
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
		s.ServeHTTP(w, r)
		expect.That(t, w.Code == http.StatusOK || w.Code == http.StatusNotFound, "status %d", w.Code)
		expect.Holds(t, harmless(t, w.Body.String()))
	})
}
