package rest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/audit"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/web/webtest"
)

// benchCluster is the cluster of the benchmarks.
func benchCluster(b *testing.B) *cluster { return show(webtest.Sized(b, webtest.Large)) }

// benchPages are pages for all routes.
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

// BenchmarkPages answers for everything there is, compressed. Before each answer a
// pod comes and goes.
func BenchmarkPages(b *testing.B) {
	c := benchCluster(b)
	if _, _, err := c.server.documents.Of(c.Store.Spec()); err != nil {
		b.Fatal(err)
	}
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
// a pod may have to wait for. The last one is for tests only.
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
	for _, bench := range []struct {
		name string
		do   func(i int)
	}{
		{"explanation", func(i int) { c.Store.Explanation(waits[i%len(waits)], c.Now) }},
		{"whys of 64 pods", func(int) { c.Store.Whys(waits) }},
		{"gated", func(int) { c.Store.Gated() }},
		{"256 owners", func(int) { c.Store.OwnersUse(owners) }},
		{"check", func(int) { _ = c.Store.Check() }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				bench.do(i)
				i++
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
		expect.OK(b, books.Check(func(time.Duration) bool { return true }))
	}
}
