package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
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

// The lease of the replicas has upstream's times, shortened for tests. With a shorter
// retry period the standby might take the lease too early: it compares renewals by a time
// in whole seconds, and cannot distinguish those of one second.
const (
	leaseDuration = 3 * time.Second
	renewDeadline = 2700 * time.Millisecond // a leader that is delayed for seconds keeps leading
	retryPeriod   = 500 * time.Millisecond
)

// deed is a request of a replica that the API server has answered. Both times are of one
// clock, which is not set meanwhile.
type deed struct {
	asked, at    time.Time // when the request had come, and when it was answered
	method, path string
	query        url.Values
	status       int
}

func (d deed) String() string { return fmt.Sprintf("%s %s: %d", d.method, d.path, d.status) }

func (d deed) succeeded() bool { return d.status < http.StatusMultipleChoices }

func (d deed) leases() bool {
	return d.method != http.MethodGet && strings.HasPrefix(d.path, "/apis/coordination.k8s.io/")
}

// takesLease tells whether it took the lease, or renewed it.
func (d deed) takesLease() bool { return d.leases() && d.succeeded() }

// acts tells whether the request changes the cluster or reports to users. The lease
// itself decides which replica may act, reviews only ask for a user's identity and
// rights, and the elector tells the end of its lease in an event of the lease.
func (d deed) acts() bool {
	return d.method != http.MethodGet && !d.leases() && d.path != "/api/v1/namespaces/kube-system/events" &&
		!strings.HasPrefix(d.path, "/apis/authentication.k8s.io/") && !strings.HasPrefix(d.path, "/apis/authorization.k8s.io/")
}

// lists tells whether it lists all pods, as an informer does that knows none.
func (d deed) lists() bool {
	return d.method == http.MethodGet && d.path == "/api/v1/pods" &&
		(!d.query.Has("watch") || d.query.Get("sendInitialEvents") == "true")
}

// touchesPods tells whether it writes to a pod: its status, its binding, its end.
func (d deed) touchesPods() bool {
	return d.method != http.MethodGet && strings.HasPrefix(d.path, "/api/v1/namespaces/") && strings.Contains(d.path, "/pods/")
}

// evicts returns the name of the pod that it deletes; empty for another deed.
func (d deed) evicts() string {
	// /api/v1/namespaces/NAMESPACE/pods/NAME
	parts := strings.Split(d.path, "/")
	if d.method != http.MethodDelete || len(parts) != 7 || parts[5] != "pods" {
		return ""
	}
	return parts[6]
}

type deedLog struct {
	mu    sync.Mutex
	deeds []deed
}

// note is called by the proxy of the replica; it never fails.
func (j *deedLog) note(answer *http.Response) error {
	r := answer.Request
	j.mu.Lock()
	defer j.mu.Unlock()
	j.deeds = append(j.deeds, deed{askedAt(r), time.Now(), r.Method, r.URL.Path, r.URL.Query(), answer.StatusCode})
	return nil
}

// between returns the deeds of some kind in a span of time. A zero end means now.
func (j *deedLog) between(from, to time.Time, of func(deed) bool) []deed {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []deed
	for _, d := range j.deeds {
		if d.at.After(from) && (to.IsZero() || d.at.Before(to)) && of(d) {
			out = append(out, d)
		}
	}
	return out
}

// replica is one of two schedulers. Its env is the test's, with its own process and address.
type replica struct {
	*env
	name    string
	proxy   *apiProxy
	deeds   *deedLog
	started time.Time // when it was last started
}

type pair struct{ leader, standby *replica }

func elected(s *settings) {
	s.launch.LeaderElection = true
	s.launch.Args = []string{
		"--leader-elect-lease-duration=" + leaseDuration.String(),
		"--leader-elect-renew-deadline=" + renewDeadline.String(),
		"--leader-elect-retry-period=" + retryPeriod.String(),
	}
}

// newReplica returns a replica that has not been started, and what its settings need.
func newReplica(t *testing.T, name string) (*replica, func(*settings)) {
	t.Helper()
	r := &replica{name: name, proxy: newAPIProxy(t), deeds: &deedLog{}}
	r.proxy.forward.ModifyResponse = r.deeds.note
	r.proxy.spring = func() { expect.Holds(t, r.process.Kill()) }
	return r, r.proxy.through
}

// setupReplicas starts two schedulers with these election times: the first one leads when
// it returns. The options are for the second one only.
func setupReplicas(t *testing.T, queues string, times func(*settings), options ...func(*settings)) *pair {
	t.Helper()
	first, through := newReplica(t, "first")
	began := time.Now()
	first.env = setup(t, queues, through, times)
	first.started = began
	eventually(t, patience, "the first replica has the lease", func() (bool, string) {
		took := first.deeds.between(began, time.Time{}, deed.takesLease)
		return len(took) > 0, ""
	})
	second, through := newReplica(t, "second")
	copied := *first.env
	second.env, copied.process = &copied, nil
	for _, o := range append([]func(*settings){through}, options...) {
		o(&copied.settings)
	}
	copied.settings.launch.Name = "scheduler-" + copied.id + "-second"
	copied.rest = expect.Get(localcluster.FreeAddress())(t)
	t.Cleanup(func() {
		if copied.process == nil {
			return
		}
		alive := copied.process.Running()
		expect.Holds(t, copied.process.Stop())
		copied.checkLog(alive)
	})
	second.restart()
	return &pair{leader: first, standby: second}
}

// restart starts the replica, also after a kill.
func (r *replica) restart() {
	r.Helper()
	r.proxy.open()
	r.started = time.Now()
	r.start()
}

// trespasses are the deeds of a replica since its start that only the leader may do.
func (r *replica) trespasses(until time.Time) []deed {
	return r.deeds.between(r.started, until, deed.acts)
}

// judgeEvictions returns what is wrong with the evictions of one preemption: evicted pods that the
// claim does not name, named pods that still run, and pods that were deleted again while they were
// terminating. deletes are the deletes that the API server granted to any client.
func judgeEvictions(claimed, evicted []string, deletes []deed) []string {
	var wrong []string
	for _, name := range evicted {
		if !slices.Contains(claimed, name) {
			wrong = append(wrong, fmt.Sprintf("pod %s was evicted, the claim does not name it", name))
		}
	}
	times := map[string]int{}
	for _, d := range deletes {
		times[d.evicts()]++
	}
	for _, name := range claimed {
		if !slices.Contains(evicted, name) {
			wrong = append(wrong, fmt.Sprintf("pod %s is named by the claim and was not evicted", name))
		}
		if times[name] > 1 {
			wrong = append(wrong, fmt.Sprintf("pod %s was deleted %d times", name, times[name]))
		}
	}
	return wrong
}

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

func (p *apiProxy) through(s *settings) { s.launch.Kubeconfig = p.kubeconfig }

// set sets a trap and returns a channel that is closed when the trap has sprung.
func (p *apiProxy) set(t trap) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trap, p.seen, p.sprung = &t, 0, make(chan struct{})
	return p.sprung
}

func (p *apiProxy) sprungAt() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

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
