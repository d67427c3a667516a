package docs

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/httpstream/spdy"
)

// kubelet is the part of a kubelet that kubectl port-forward needs: connections to port
// 9080 of any pod go to our scheduler, and all other ports are closed.
type kubelet struct {
	scheduler string // host and port
}

// startKubelet returns the kubelet of a node, and its port on this machine.
func startKubelet() (server *httptest.Server, port string) {
	server = httptest.NewTLSServer(kubelet{scheduler: strings.TrimPrefix(suite.rest, "http://")})
	_, port, _ = strings.Cut(server.Listener.Addr().String(), ":")
	return server, port
}

// ServeHTTP takes streams in pairs until the client is gone: one has the data, the other
// would have the errors.
func (k kubelet) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if !strings.HasPrefix(request.URL.Path, "/portForward/") {
		http.NotFound(w, request)
		return
	}
	if _, err := httpstream.Handshake(request, w, []string{"portforward.k8s.io"}); err != nil {
		return // the handshake has answered
	}
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, request, func(stream httpstream.Stream, sent <-chan struct{}) error {
		if port := stream.Headers().Get(corev1.PortHeader); port != "9080" {
			return errors.New("no process listens at port " + port)
		}
		go func() {
			<-sent
			if stream.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				k.forward(request.Context(), stream)
			}
			_ = stream.Close()
		}()
		return nil
	})
	if conn == nil {
		return // the upgrade has answered
	}
	defer conn.Close()
	<-conn.CloseChan()
}

// forward copies in both directions until the scheduler has closed the connection, or the
// client is gone.
func (k kubelet) forward(ctx context.Context, stream httpstream.Stream) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", k.scheduler)
	if err != nil {
		return // the client finds its connection closed, and reports that
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.Close()
	}()
	_, _ = io.Copy(stream, conn)
}
