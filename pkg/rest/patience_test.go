package rest

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// brief are limits that differ from each other, so that one is not taken for another.
func brief(l *limits) {
	l.headerTime, l.readTime, l.writeTime, l.idleTime = 3*time.Second, 5*time.Second, 7*time.Second, 11*time.Second
}

// lasts is how long a connection is kept on which nothing more is sent, in the time of
// a synctest bubble, and what is answered meanwhile.
func (s served) lasts(t *testing.T, sent string) (time.Duration, string) {
	t.Helper()
	began := time.Now()
	answer := expect.Get(io.ReadAll(s.dial(t, sent)))(t)
	return time.Since(began), string(answer)
}

// TestSilentConnectionIsClosed: a client that sends no header, half of one, or half of
// a body keeps the connection for as long as the limits say.
func TestSilentConnectionIsClosed(t *testing.T) {
	for _, tt := range []struct {
		name, sent string
		want       func(l *limits) time.Duration
	}{
		{"nothing", "", func(l *limits) time.Duration { return l.headerTime }},
		{"half a header", "GET /ws/v1/partitions HTTP/1.1\r\nHost: localhost\r\nAcc", func(l *limits) time.Duration { return l.headerTime }},
		{"half a body", "POST /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 100\r\n\r\npartitions", func(l *limits) time.Duration { return l.readTime }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, "")
				s := servePiped(t, c, brief)
				want := tt.want(&c.server.limits)
				if took, answer := s.lasts(t, tt.sent); took < want || took > want+time.Second {
					t.Errorf("the connection is kept for %v, want %v; answered was %q", took, want, answer)
				}
			})
		})
	}
}

const clustersRequest = "GET /ws/v1/clusters HTTP/1.1\r\nHost: localhost\r\n\r\n"

// TestSlowReadersAreCut: a client may read its answer for as long as the limit says, and gets
// nothing of it after that.
func TestSlowReadersAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "")
		conn := servePiped(t, c, brief).dial(t, clustersRequest)
		time.Sleep(c.server.limits.writeTime + time.Second)
		expect.Same(t, "read too late", "", string(expect.Get(io.ReadAll(conn))(t)))
	})
}

// TestAnIdleConnectionIsClosed: after an answer a connection is kept for the next
// request, and not for longer than the limit.
func TestAnIdleConnectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "")
		s := servePiped(t, c, brief)
		conn := s.dial(t, clustersRequest)
		lines := bufio.NewReader(conn)
		answered := func() {
			t.Helper()
			answer, err := http.ReadResponse(lines, nil)
			expect.OK(t, err)
			defer func() { _ = answer.Body.Close() }()
			if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("%s, %v", answer.Status, err)
			}
		}
		answered()
		time.Sleep(c.server.limits.idleTime - time.Second)
		if _, err := io.WriteString(conn, clustersRequest); err != nil {
			t.Fatalf("it is closed before its time: %v", err)
		}
		answered()
		began := time.Now()
		if _, err := lines.ReadByte(); err != io.EOF || time.Since(began) != c.server.limits.idleTime {
			t.Errorf("it is closed after %v, want %v; %v", time.Since(began), c.server.limits.idleTime, err)
		}
	})
}

// TestSlowSendersAreFew: a few slow documents are read at a time and the others are told
// to come back; once the few are cut, others are read.
func TestSlowSendersAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, "")
		s := servePiped(t, c, brief)
		const head = "POST /ws/v1/validate-conf HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 14\r\n\r\n"
		answers := make(chan int, 20)
		send := func(sent string) {
			conn := s.dial(t, sent)
			go func() {
				code := 0 // cut
				if answer, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
					code = answer.StatusCode
					_ = answer.Body.Close()
				}
				answers <- code
			}()
		}
		few := int(c.server.limits.drafts)
		for range few {
			send(head + "parti")
			synctest.Wait()
		}
		for range 10 {
			send(head + "partitions: []")
			if code := <-answers; code != http.StatusServiceUnavailable {
				t.Fatalf("beside %d that are read one more is answered with %d", few, code)
			}
		}
		for range few {
			if code := <-answers; code == http.StatusOK {
				t.Error("half a document is valid")
			}
		}
		synctest.Wait()
		send(head + "partitions: []")
		expect.Same(t, "after the slow ones were cut", http.StatusOK, <-answers)
	})
}

// TestWhatSlowSendersHoldIsDocumented: the page has the products of the limits.
func TestWhatSlowSendersHoldIsDocumented(t *testing.T) {
	page := expect.Get(os.ReadFile("../../docs/rest.md"))(t)
	l := defaultLimits()
	each := l.bodyBytes >> 20
	for _, said := range []string{
		fmt.Sprintf("at most %d documents to validate are in memory, %d MiB each", l.drafts, each),
		fmt.Sprintf("There are at most %d connections, %d from one address", l.connections, l.perHost),
		fmt.Sprintf("each for %d s at most", (l.readTime+patience)/time.Second),
	} {
		if !strings.Contains(string(page), said) {
			t.Errorf("docs/rest.md does not say %q", said)
		}
	}
}
