package docs

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubelet/pkg/cri/streaming/portforward"
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

func (k kubelet) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if !strings.HasPrefix(request.URL.Path, "/portForward/") {
		http.NotFound(w, request)
		return
	}
	portforward.ServePortForward(w, request, k, "", "", nil, time.Hour, time.Minute, portforward.SupportedProtocols)
}

// PortForward copies in both directions until the scheduler has closed the connection, or the
// client is gone.
func (k kubelet) PortForward(ctx context.Context, _ string, _ types.UID, port int32, stream io.ReadWriteCloser) error {
	if port != 9080 {
		return fmt.Errorf("no process listens at port %d", port)
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", k.scheduler)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, stream)
		_ = conn.Close()
	}()
	_, _ = io.Copy(stream, conn)
	return nil
}
