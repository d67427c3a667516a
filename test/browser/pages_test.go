package browser

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/rest"
	"github.com/paddock-scheduler/paddock/pkg/web"
	"github.com/paddock-scheduler/paddock/pkg/web/webtest"
)

// patience is for a browser on a busy machine.
const patience = 5 * time.Minute

// pictures is the directory for pictures of the pages.
const pictures = "../../bin/pictures"

func start(t *testing.T) *Browser {
	t.Helper()
	// The test's own context ends before the cleanup, which closes the browser.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	b := expect.Get(Start(ctx))(t)
	t.Cleanup(func() { expect.OK(t, b.Close()) })
	return b
}

// open opens a tab of a browser of its own.
func open(t *testing.T, look Look) *Tab {
	t.Helper()
	return expect.Get(start(t).Open(look))(t)
}

func eval[T any](t *testing.T, tab *Tab, expression string) T {
	t.Helper()
	return expect.Get(Eval[T](tab, expression))(t)
}

// serve serves the pages of a cluster, as the scheduler does.
func serve(t *testing.T, c *webtest.Cluster, configuration web.Configuration) string {
	t.Helper()
	server := rest.NewServer(rest.Options{
		Inventory: c.Inventory, Record: c.Record, Clock: c.Clock, Build: map[string]string{"buildVersion": "v0-test"},
		Configuration: func() web.Configuration { return configuration },
		Leading:       func() bool { return true },
		Taint:         func(string) string { return "" },
		Checks:        []rest.HealthCheck{{Name: "Books", Description: "every queue, user and group is charged with the sum of its pods", Run: c.Store.Check}},
	})
	server.CheckHealth()
	s := httptest.NewServer(server.Handler())
	t.Cleanup(s.Close)
	return s.URL
}

func failed(t *testing.T) web.Configuration {
	_, err := config.Parse([]byte("partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n    - {name: a b, resources: {max: {vcore: x}}}\n    - {name: c, resources: {guaranteed: {memory: 2Gi}, max: {memory: 1Gi}}}\n"))
	expect.That(t, err != nil, "the document is valid")
	at := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	return web.Configuration{
		Source: "ConfigMaps yunikorn-defaults and yunikorn-configs in namespace yunikorn", Since: at.Add(-time.Hour),
		Failure: &web.Failure{At: at, Source: "ConfigMap yunikorn/yunikorn-configs", Err: err},
	}
}

// views are pages of each cluster.
var views = map[string][]string{
	"empty": {"", "waiting", "nodes", "decisions", "configuration", "health"},
	"one":   {"", "?queue=root.only", "waiting", "nodes", "decisions", "configuration", "health"},
	"busy": {
		"", "?queue=root.research.genomics", "?show=short", "?find=nothing-like-it", "waiting", "waiting?each=pod&queue=root.production",
		"nodes", "node?name=rack-1-b", "decisions", "configuration", "health",
	},
	"large": {
		"", "?queue=root.p7", "?queue=root.p7.q7", "?find=q1", "?show=waiting&page=3", "waiting", "waiting?each=pod&page=40",
		"nodes?page=20", "node?name=node-007", "decisions", "configuration?page=3", "health",
	},
}

var looks = map[string]Look{"wide": {Width: 1400, Height: 900}, "narrow": {Width: 420, Height: 800}, "dark": {Width: 1400, Height: 900, Dark: true}}

// TestPages checks every page with no queue, with one, with a busy few and with 5,000,
// and leaves pictures.
func TestPages(t *testing.T) {
	b := start(t)
	expect.OK(t, os.MkdirAll(pictures, 0o755))
	where := expect.Get(filepath.Abs(pictures))(t)
	t.Log("pictures are in", where)
	one := webtest.New(t, "partitions: [{name: default, queues: [{name: root, queues: [{name: only}]}]}]")
	known := web.Configuration{Source: "file queues.yaml", Since: one.Now.Add(-time.Minute)}
	clusters := map[string]string{
		"empty": serve(t, webtest.New(t, ""), web.Configuration{}),
		"one":   serve(t, one, known),
		"busy":  serve(t, webtest.Busy(t), failed(t)),
		"large": serve(t, webtest.Sized(t, webtest.Large), known),
	}
	for cluster, pages := range views {
		for name, look := range looks {
			if cluster != "busy" && name != "wide" {
				continue // no colours or layout change
			}
			tab := expect.Get(b.Open(look))(t)
			for _, page := range pages {
				expect.OK(t, tab.Go(clusters[cluster]+"/"+page))
				for _, problem := range append(tab.Problems(), eval[[]string](t, tab, badlyMade)...) {
					t.Errorf("%s /%s, %s: %s", cluster, page, name, problem)
				}
				file := strings.Join([]string{cluster, name, fileName.Replace(cmp.Or(page, "queues"))}, "-") + ".png"
				picture := expect.Get(tab.Picture(4000))(t)
				expect.That(t, len(picture) >= 1000, "%s: a picture of %d bytes", file, len(picture))
				expect.OK(t, os.WriteFile(filepath.Join(pictures, file), picture, 0o644))
			}
			expect.OK(t, tab.Close())
		}
	}
}

// TestKeyboard uses the first page without a mouse.
func TestKeyboard(t *testing.T) {
	tab := open(t, looks["wide"])
	expect.OK(t, tab.Go(serve(t, webtest.Busy(t), web.Configuration{})))
	focus := func() string {
		return eval[string](t, tab, `document.activeElement.textContent.trim() || document.activeElement.name`)
	}
	press := func(until string) {
		t.Helper()
		for range 40 {
			expect.OK(t, tab.Press(kb.Tab))
			if focus() == until {
				return
			}
		}
		t.Fatalf("%q is not reached; the focus is on %q", until, focus())
	}
	expect.OK(t, tab.Press(kb.Tab))
	got := focus()
	expect.That(t, got == "Skip to the content", "the first stop is %q", got)
	press("find")
	press("How to read the bars")
	expect.OK(t, tab.Press(kb.Enter))
	expect.That(t, eval[bool](t, tab, "document.querySelector('details.legend').open"),
		"Enter does not unfold the legend")
	press("2 queues in production")
	press("web")
	expect.OK(t, tab.load(chromedp.KeyEvent(kb.Enter)))
	title := eval[string](t, tab, "document.getElementById('queue').textContent")
	expect.That(t, strings.HasPrefix(title, "root.production.web"), "Enter on the link leads to %q", title)
	for _, problem := range tab.Problems() {
		t.Error(problem)
	}
}

// badlyMade finds elements without a name for screen readers, headings that skip a level, and
// that the page needs horizontal scrolling.
const badlyMade = `(() => {
	const wrong = [];
	const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
	if (over > 0) wrong.push('the page is ' + over + ' pixels wider than the window');
	for (const e of document.querySelectorAll('a, button, summary, th, h1, h2, h3'))
		if (!e.textContent.trim()) wrong.push('nameless ' + e.outerHTML.slice(0, 100));
	for (const e of document.querySelectorAll('input, select'))
		if (!e.labels.length) wrong.push('without a label: ' + e.outerHTML.slice(0, 100));
	for (const e of document.querySelectorAll('svg'))
		if (e.getAttribute('aria-hidden') !== 'true' && !e.getAttribute('aria-label')) wrong.push('a drawing without words');
	for (const e of document.querySelectorAll('nav, [role=region]'))
		if (!e.getAttribute('aria-label')) wrong.push('a region without a name: ' + e.outerHTML.slice(0, 100));
	const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
	if (new Set(ids).size !== ids.length) wrong.push('an id is there twice');
	let level = 0;
	for (const e of document.querySelectorAll('h1, h2, h3')) {
		const here = Number(e.tagName[1]);
		if (here > level + 1) wrong.push('heading ' + e.textContent + ' skips a level');
		level = here;
	}
	if (document.querySelectorAll('h1').length !== 1 || !document.documentElement.lang || !document.title) wrong.push('no heading, language or title');
	return wrong;
})()`

func TestBadlyMadePagesAreNoticed(t *testing.T) {
	tab := open(t, looks["wide"])
	for body, want := range map[string]int{
		"<h1>fine</h1><h2>x</h2><a href='#'>x</a><label>x <input></label><svg aria-hidden='true'/>": 0,
		"<h1>x</h1><a href='#'></a>": 1, "<h1>x</h1><input>": 1, "<h1>x</h1><svg></svg>": 1, "<h1>x</h1><nav></nav>": 1,
		"<h1>x</h1><h3>x</h3>": 1, "<p>x": 1, "<h1>x</h1><p id=a><p id=a>": 1, "<h1>x</h1><div role=region></div><button></button>": 2,
		"<h1>x</h1><p style='width: 5000px'>x": 1,
	} {
		expect.OK(t, tab.Go("data:text/html,"+url.PathEscape("<!DOCTYPE html><html lang=en><title>t</title>"+body)))
		wrong := eval[[]string](t, tab, badlyMade)
		expect.That(t, len(wrong) == want, "%s: %q, want %d problems", body, wrong, want)
	}
}

// fileName makes a part of a file name of an address.
var fileName = strings.NewReplacer("?", "_", "&", "_", "=", "_", ".", "_", "/", "_")

// TestFaultsAreNoticed is the negative test of the tests above: pages with one fault
// each, under the same policy.
func TestFaultsAreNoticed(t *testing.T) {
	b := start(t)
	policy := serve(t, webtest.New(t, ""), web.Configuration{})
	r, err := http.Get(policy) //nolint:noctx // a server of this test
	expect.OK(t, err)
	expect.OK(t, r.Body.Close())
	strict := r.Header.Get("Content-Security-Policy")
	for _, fault := range []struct{ name, policy, body, want string }{
		{"none", strict, "<p>fine", ""},
		{"a script", strict, "<script>document.title = 'ran'</script>", "Content"},
		{"a style", strict, `<p style="color: red">red`, "Content"},
		{"a handler", strict, `<img src="/icon.svg" onload="document.title = 'ran'">`, "Content"},
		{"a picture of elsewhere", strict, `<img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">`, "Content"},
		{"a frame", strict, `<iframe src="/"></iframe>`, "Content"},
		{"console", "", "<script>console.error('no good')</script>", "no good"},
		{"exception", "", "<script>null.f()</script>", "TypeError"},
		{"something missing", strict, `<img alt="" src="/missing.png">`, "404"},
	} {
		t.Run(fault.name, func(t *testing.T) {
			pages := http.NewServeMux()
			pages.HandleFunc("/icon.svg", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "image/svg+xml")
				_, _ = fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>`)
			})
			pages.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
				if fault.policy != "" {
					w.Header().Set("Content-Security-Policy", fault.policy)
				}
				w.Header().Set("Content-Type", "text/html")
				_, _ = fmt.Fprint(w, `<!DOCTYPE html><html lang="en"><meta name="viewport" content="width=device-width"><link rel="icon" href="/icon.svg"><title>t</title>`+fault.body)
			})
			s := httptest.NewServer(pages)
			defer s.Close()
			tab := expect.Get(b.Open(Look{Width: 800, Height: 600}))(t)
			expect.OK(t, tab.Go(s.URL))
			problems := tab.Problems()
			expect.That(t, eval[string](t, tab, "document.title") == "t", "the script ran")
			if fault.want == "" && len(problems) > 0 || !strings.Contains(strings.Join(problems, "\n"), fault.want) {
				t.Errorf("problems %q, want %q", problems, fault.want)
			}
			expect.OK(t, tab.Close())
		})
	}
}
