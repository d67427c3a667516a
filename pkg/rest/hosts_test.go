package rest

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// TestHosts: only requests for names of this interface are answered.
func TestHosts(t *testing.T) {
	c := newCluster(t, "")
	c.server.hosts = newHosts(HostNames([]string{"yunikorn-service", "Paddock.example.com"}, "queues"))
	s := serveCluster(t, c, func(*limits) {})
	ask := func(headers string) (int, string) {
		conn := s.dial(t, "GET / HTTP/1.1\r\nConnection: close\r\n"+headers+"\r\n\r\n")
		answer := expect.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
		defer func() { _ = answer.Body.Close() }()
		body := expect.Get(io.ReadAll(answer.Body))(t)
		return answer.StatusCode, string(body)
	}
	for _, host := range []string{
		s.address, "127.0.0.1:9080", "10.0.0.7:9080", "10.0.0.7", "[::1]:9080", "[fd00::1]", "[fe80::1%25eth0]:9080",
		"localhost", "localhost:9080", "LocalHost.:9080", "paddock.localhost",
		"yunikorn-service:9080", "yunikorn-service.queues", "yunikorn-service.queues.svc:9080", "yunikorn-service.queues.svc.cluster.local.",
		"Paddock.Example.com",
	} {
		if status, body := ask("Host: " + host); status != http.StatusOK {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
	for _, host := range []string{
		"evil.example", "evil.example:9080", "127.0.0.1.evil.example", "localhost.evil.example", "evillocalhost", "queues",
		"yunikorn-service.other", "yunikorn-service.other.svc", "yunikorn-service.queues.svc.evil.example", "a.paddock.example.com", "example.com", "1.2.3",
	} {
		status, body := ask("Host: " + host)
		if status != http.StatusMisdirectedRequest || !strings.Contains(body, "not known as "+host+":") || !strings.Contains(body, "restHosts") {
			t.Errorf("%s: %d %s", host, status, body)
		}
	}
	// Through the API server's proxy the host is that of the API server.
	if status, body := ask("Host: api.example.com:6443\r\n" + ClientHeader + ": kubectl-paddock"); status != http.StatusOK {
		t.Errorf("kubectl paddock through the API server: %d %s", status, body)
	}
}
