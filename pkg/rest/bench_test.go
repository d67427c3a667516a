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
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// The cluster of the benchmarks: 5,000 queues, 1,000 nodes and 20,000 pods of
// 1,000 applications, of which every tenth waits, and a foreign pod on each node.
const (
	benchParents, benchLeaves = 50, 99
	benchNodes                = 1000
	benchApps                 = 1000
	benchPods                 = 20000
)

func benchDocument() string {
	var document strings.Builder
	document.WriteString("partitions:\n- name: default\n  placementrules: [{name: provided}]\n  queues:\n  - name: root\n    submitacl: '*'\n    limits: [{limit: all, users: ['*'], maxresources: {vcore: 100000}}]\n    queues:\n")
	for i := range benchParents {
		fmt.Fprintf(&document, "    - name: p%d\n      parent: true\n      resources: {max: {vcore: 1000, memory: 1Ti}}\n      limits: [{limit: all, users: ['*'], maxresources: {vcore: 1000}}]\n      queues:\n", i)
		for j := range benchLeaves {
			fmt.Fprintf(&document, "      - {name: q%d, resources: {guaranteed: {vcore: 2, memory: 4Gi}, max: {vcore: 100, memory: 1Ti}}}\n", j)
		}
	}
	return document.String()
}

func benchCluster(b *testing.B) *cluster {
	c := newCluster(b, benchDocument())
	for i := range benchNodes {
		name := fmt.Sprint("node-", i)
		c.node(b, name, "vcore=32 memory=128Gi pods=110 ephemeral-storage=200Gi")
		c.store.Upsert(objects.Pod{
			Identity: objects.Identity{UID: types.UID("agent-" + name), Namespace: "kube-system", Name: "agent-" + name, Created: c.now, Labels: map[string]string{"app": "agent"}},
			Spec:     objects.Spec{Foreign: true},
			Status:   objects.Status{Node: name},
			Request:  amountsOf(b, "vcore=100m memory=64Mi pods=1"),
		}, c.now)
	}
	request := amountsOf(b, "vcore=1 memory=2Gi pods=1")
	for i := range benchPods {
		c.store.Upsert(benchPod(c, i, request), c.now)
	}
	return c
}

func benchPod(c *cluster, i int, request resources.Vector) objects.Pod {
	app := i % benchApps
	p := objects.Pod{
		Identity: objects.Identity{
			UID: types.UID(fmt.Sprintf("8f7feca3-e777-47f6-b869-%012d", i)), Namespace: "team", Name: fmt.Sprint("pod-", i), Created: c.now,
			Labels: map[string]string{
				"applicationId": fmt.Sprint("app-", app), "queue": fmt.Sprintf("root.p%d.q%d", app%benchParents, app%benchLeaves),
				"app": "sleep", "pod-template-hash": "7cf5877bcb", "yunikorn.apache.org/username": fmt.Sprint("user-", app),
			},
		},
		Request: request,
	}
	if i%10 != 0 {
		p.Node, p.Scheduled = fmt.Sprint("node-", i%benchNodes), c.now
	}
	return p
}

// benchPages are pages for all routes.
func benchPages() []string {
	pages := pagesOf(new(Server), "{queue}", "root.p7.q7", "{application}", "app-7", "{node}", "node-7",
		"{user}", "nobody", "{group}", "none")
	const applications = "/ws/v1/partition/default/applications/"
	return append(pages, applications+"rejected", applications+"completed")
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
	request := amountsOf(b, "vcore=1 memory=2Gi pods=1")
	if _, _, err := c.server.documents.Of(c.store.Spec()); err != nil {
		b.Fatal(err)
	}
	for _, page := range benchPages() {
		b.Run(strings.TrimPrefix(page, "/ws/v1/"), func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				passing := benchPod(c, benchPods+1, request)
				c.store.Upsert(passing, c.now)
				c.store.Delete(passing.UID, c.now)
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
	request := amountsOf(b, "vcore=1 memory=2Gi pods=1")
	var waits []types.UID
	var owners []queues.Charged
	for i := range 64 {
		waits = append(waits, benchPod(c, 10*i, request).UID)
	}
	for _, a := range c.server.options.Inventory.View().Applications[:256] {
		owners = append(owners, queues.Charged{Queue: queues.RootID, Name: a.User})
	}
	b.Run("bite of 256 pods", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			for i := range 256 {
				p := benchPod(c, i, request)
				p.Priority = int32(b.N)
				c.store.Upsert(p, c.now)
			}
			b.StartTimer()
			c.store.TakeChanges(256)
		}
	})
	for _, bench := range []struct {
		name string
		do   func(i int)
	}{
		{"explanation", func(i int) { c.store.Explanation(waits[i%len(waits)], c.now) }},
		{"whys of 64 pods", func(int) { c.store.Whys(waits) }},
		{"gated", func(int) { c.store.Gated() }},
		{"256 owners", func(int) { c.store.OwnersUse(owners) }},
		{"check", func(int) { _ = c.store.Check() }},
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
	books := &audit.Books{Inventory: c.server.options.Inventory, Owners: c.store.OwnersUse}
	c.server.options.Inventory.View()
	for b.Loop() {
		expect.OK(b, books.Check(func(time.Duration) bool { return true }))
	}
}
