package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// write is a write of a scheduler to a pod.
type write struct {
	method, pod, subresource string
	body                     []byte
}

// sets tells whether it is a patch of the status that sets a condition to a value.
func (w write) sets(kind corev1.PodConditionType, status corev1.ConditionStatus) bool {
	var patch struct {
		Status struct {
			Conditions []corev1.PodCondition `json:"conditions"`
		} `json:"status"`
	}
	if w.method != http.MethodPatch || w.subresource != "status" || json.Unmarshal(w.body, &patch) != nil {
		return false
	}
	for _, c := range patch.Status.Conditions {
		if c.Type == kind && c.Status == status {
			return true
		}
	}
	return false
}

func (w write) deletes() bool { return w.method == http.MethodDelete && w.subresource == "" }
func (w write) binds() bool   { return w.method == http.MethodPost && w.subresource == "binding" }

// trap is a write that is intercepted.
type trap struct {
	// matches tells whether a write counts for the trap. Only the nth such write is
	// intercepted; the first is 1.
	matches func(write) bool
	nth     int
	// forwarded: the API server gets the write, and the scheduler gets no answer.
	forwarded bool
}

// apiProxy stands between a scheduler and the API server.
type apiProxy struct {
	kubeconfig string
	forward    *httputil.ReverseProxy
	// spring is called once for a trap. Writes of the scheduler during the call and after
	// it, until open, do not arrive.
	spring func()

	mu     sync.Mutex
	at     time.Time // when the trap had sprung: until then the process was alive
	trap   *trap
	seen   int           // writes that matched the trap
	sprung chan struct{} // closed when spring has returned
	shut   bool
}

// newAPIProxy starts a proxy without a trap. It forwards with the credentials of the
// scheduler: every client that connects to it acts as the scheduler's user.
func newAPIProxy(t *testing.T) *apiProxy {
	t.Helper()
	config := expect.Get(clientcmd.BuildConfigFromFlags("", suite.cluster.KubeconfigPath(localcluster.UserScheduler)))(t)
	transport := expect.Get(clientrest.TransportFor(config))(t)
	target := expect.Get(url.Parse(config.Host))(t)
	p := &apiProxy{forward: &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // watches
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	server := httptest.NewServer(p)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	k := clientcmdapi.NewConfig()
	k.Clusters["proxy"] = &clientcmdapi.Cluster{Server: server.URL}
	k.Contexts["proxy"] = &clientcmdapi.Context{Cluster: "proxy"}
	k.CurrentContext = "proxy"
	p.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	expect.OK(t, clientcmd.WriteToFile(*k, p.kubeconfig))
	return p
}

// through makes a scheduler use the proxy.
func (p *apiProxy) through(s *settings) { s.launch.Kubeconfig = p.kubeconfig }

// set sets a trap and returns a channel that is closed when the trap has sprung.
func (p *apiProxy) set(t trap) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap, p.seen, p.sprung = &t, 0, make(chan struct{})
	return p.sprung
}

// sprungAt returns when the trap last sprang.
func (p *apiProxy) sprungAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// open ends all traps.
func (p *apiProxy) open() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap, p.shut = nil, false
}

// arrival is the context key for the time at which a request came to the proxy.
type arrival struct{}

// askedAt returns when a forwarded request came to the proxy.
func askedAt(r *http.Request) time.Time {
	at, _ := r.Context().Value(arrival{}).(time.Time)
	return at
}

// ServeHTTP forwards reads, and writes that match no trap.
func (p *apiProxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = r.WithContext(context.WithValue(r.Context(), arrival{}, time.Now()))
	if r.Method == http.MethodGet {
		p.forward.ServeHTTP(w, r)
		return
	}
	wanted, err := readWrite(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	caught, passes := p.judge(wanted)
	switch {
	case caught != nil:
		if caught.forwarded {
			// The write arrives, even if its sender goes away.
			p.forward.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithoutCancel(r.Context())))
		}
		p.mu.Lock()
		p.at = time.Now()
		p.mu.Unlock()
		p.spring()
		close(p.sprung)
		panic(http.ErrAbortHandler)
	case !passes:
		panic(http.ErrAbortHandler)
	}
	p.forward.ServeHTTP(w, r)
}

// judge tells whether a write is trapped, and if not whether it passes.
func (p *apiProxy) judge(wanted write) (caught *trap, passes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return nil, false
	}
	if p.trap == nil || !p.trap.matches(wanted) {
		return nil, true
	}
	if p.seen++; p.seen != p.trap.nth {
		return nil, true
	}
	caught, p.trap, p.shut = p.trap, nil, true
	return caught, false
}

// readWrite reads the body of a request and restores it.
func readWrite(r *http.Request) (write, error) {
	w := write{method: r.Method}
	var err error
	if w.body, err = io.ReadAll(r.Body); err != nil {
		return w, err
	}
	r.Body = io.NopCloser(bytes.NewReader(w.body))
	// /api/v1/namespaces/NAMESPACE/pods/NAME/SUBRESOURCE
	if parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/"); len(parts) > 5 && parts[4] == "pods" {
		w.pod, w.subresource = parts[5], strings.Join(parts[6:], "/")
	}
	return w, nil
}
