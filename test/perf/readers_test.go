//go:build perf

package perf

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// polled are the pages that readers request in turn: those that yunikorn-web shows, and
// our own.
var polled = []string{
	"/ws/v1/partition/default/queues", "/ws/v1/partition/default/nodes", "/ws/v1/partition/default/applications/active",
	"/ws/v1/partitions", "/ws/v1/scheduler/healthcheck", "/ws/v1/metrics", "/ws/v1/events/batch", "/api/v1/decisions", "/api/v1/holds", "/", "/waiting",
	"/ws/v1/fullstatedump", "/ws/v1/partition/default/queue/root?subtree", "/nodes", "/ws/v1/partition/default/usage/users",
}

// whileRead runs f while so many readers request pages from this address, and each must
// get an answer.
func whileRead(b *testing.B, readers int, address string, f func()) {
	b.Helper()
	ctx, stop := context.WithCancel(b.Context())
	var all sync.WaitGroup
	answers := make([]int, readers)
	for i := range readers {
		all.Go(func() { answers[i] = poll(ctx, "http://"+address, i) })
	}
	f()
	stop()
	all.Wait()
	for i, n := range answers {
		expect.That(b, n != 0, "reader %d got no answer", i)
	}
}

// poll requests a page a second until the end, and returns how many it got.
func poll(ctx context.Context, url string, reader int) (answers int) {
	tick := time.Tick(time.Second)
	for i := reader; ; i++ {
		select {
		case <-ctx.Done():
			return answers
		case <-tick:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+polled[i%len(polled)], nil)
		if err != nil {
			return 0
		}
		// With this header set by hand the client does not unpack the answer, which would
		// be work of readers and not of the scheduler's machine.
		request.Header.Set("Accept-Encoding", "gzip")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			continue // it has not begun, or has ended
		}
		if _, err := io.Copy(io.Discard, answer.Body); err == nil && answer.StatusCode == http.StatusOK {
			answers++
		}
		_ = answer.Body.Close()
	}
}
