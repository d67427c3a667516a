package web

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"hash/fnv"
	"html/template"
	"net/http"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/record"
)

// policy lets a browser take style sheets and pictures from here, send forms to
// here, and nothing else: no script runs, wherever it came from.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

//go:embed templates/*.html
var templates embed.FS

//go:embed static/style.css
var style []byte

//go:embed static/icon.svg
var icon []byte

// Options configure the pages.
type Options struct {
	// Inventory is what there is to show.
	Inventory *inventory.Inventory
	// Record is what was decided.
	Record *record.Record
	// Clock tells the time.
	Clock clock.PassiveClock
	// Configuration returns the state of the configuration.
	Configuration func() Configuration
	// Taint returns the taint by which other schedulers are kept off a held node, or
	// nothing.
	Taint func(node string) string
	// Health returns the last results of the checks.
	Health func() Checked
	// StandsBy tells whether another replica leads.
	StandsBy func() bool
	// Version is the version that the pages show; may be empty.
	Version string
}

// Pages answers for the pages of [Pages.Handlers].
type Pages struct {
	options Options
	started time.Time
	pages   []*page
}

// page is one of the pages.
type page struct {
	// path is below the root, without a slash; title is what it is called.
	path, title string
	// hidden pages are not in the list of pages.
	hidden bool
	// make returns the content of the page, or a sentence about what does not exist.
	make func(r *request) (content any, missing string)

	template *template.Template
}

// New makes the pages.
func New(o Options) *Pages {
	p := &Pages{options: o, started: o.Clock.Now()}
	p.pages = []*page{
		{path: "", title: "Queues", make: queuesPage},
		{path: "waiting", title: "Waiting pods", make: p.waitingPage},
		{path: "nodes", title: "Nodes", make: nodesPage},
		{path: "node", title: "Node", hidden: true, make: nodePage},
		{path: "decisions", title: "Decisions", make: p.decisionsPage},
		{path: "configuration", title: "Configuration", make: p.configurationPage},
		{path: "health", title: "Health", make: p.healthPage},
	}
	for _, one := range p.pages {
		one.template = parse(one.path)
	}
	return p
}

// parse reads the template of a page.
func parse(path string) *template.Template {
	if path == "" {
		path = "queues"
	}
	shared := template.New("frame.html").Funcs(template.FuncMap{
		"link": link, "visible": visible, "count": count, "at": at, "sentence": sentence, "queue": linkedQueue, "node": linkedNode,
		"requested": requested, "amounts": amounts, "withoutPods": withoutPods, "amount": amount, "unit": unit, "law": law,
		"victimMarks": victimMarks, "podMarks": podMarks, "problems": problemsOf,
	})
	return template.Must(shared.ParseFS(templates, "templates/frame.html", "templates/parts.html", "templates/"+path+".html"))
}

// Handlers are the pages by their paths, which are patterns of http.ServeMux without a method.
func (p *Pages) Handlers() map[string]http.HandlerFunc {
	all := map[string]http.HandlerFunc{
		"/style.css": read(func(w http.ResponseWriter, r *http.Request) { answer(w, r, "text/css; charset=utf-8", style) }),
		"/icon.svg":  read(func(w http.ResponseWriter, r *http.Request) { answer(w, r, "image/svg+xml", icon) }),
	}
	for _, one := range p.pages {
		all["/"+cmp.Or(one.path, "{$}")] = read(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, one) })
	}
	return all
}

// read sets the headers that all answers have, and refuses what does not only read.
func read(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "private, no-cache")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, r.Method+" does nothing here; use GET", http.StatusMethodNotAllowed)
			return
		}
		handler(w, r)
	}
}

// frame is what all pages have around their content.
type frame struct {
	Title    string
	Pages    []tab
	Warnings []warning
	Content  any
	Missing  string // a sentence about what does not exist; empty for nothing
	Version  string
}

// tab is a page in the list of pages.
type tab struct {
	Title, Address string
	Here           bool
}

// warning is a warning that every page has.
type warning struct{ Text, Link, Address string }

func (p *Pages) serve(w http.ResponseWriter, r *http.Request, one *page) {
	view, configuration := p.options.Inventory.View(), p.options.Configuration()
	content, missing := one.make(&request{View: view, now: p.options.Clock.Now(), page: one.path, values: r.URL.Query(), taint: p.options.Taint})
	f := frame{Title: one.title, Content: content, Missing: missing, Version: visible(p.options.Version), Warnings: warningsOf(view, configuration)}
	if p.options.StandsBy() {
		f.Warnings = append(f.Warnings, warning{Text: "This replica is a standby: only the leader knows what was tried and decided. Queues, nodes and waiting pods are shown as they are."})
	}
	for _, other := range p.pages {
		if !other.hidden {
			f.Pages = append(f.Pages, tab{other.title, link(other.path), other == one})
		}
	}
	var body bytes.Buffer
	if err := one.template.Execute(&body, f); err != nil {
		klog.Background().Error(err, "A page cannot be made", "page", one.path)
		http.Error(w, "this page cannot be made; the scheduler's log says why", http.StatusInternalServerError)
		return
	}
	if missing != "" {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write(body.Bytes())
		return
	}
	answer(w, r, "text/html; charset=utf-8", body.Bytes())
}

// answer sends the page, unless the client has it already.
func answer(w http.ResponseWriter, r *http.Request, kind string, body []byte) {
	tag := tagOf(body)
	w.Header().Set("ETag", tag)
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body) // an error means that the reader has gone away
}

// tagOf identifies a content. Tags are weak: the same content is sent compressed
// or not.
func tagOf(content []byte) string {
	h := fnv.New64a()
	_, _ = h.Write(content)
	return fmt.Sprintf(`W/"%x-%d"`, h.Sum64(), len(content))
}
