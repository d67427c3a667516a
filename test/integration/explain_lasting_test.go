package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// States that normally pass in a moment are prolonged here by slow or refusing partners:
// an extender, the API server.

// slowExtender is an extender that agrees to every node, but only after it is told to
// answer: until then the cycle that calls it does not go on.
type slowExtender struct {
	asked  chan string // the pods, in the order of the calls
	answer func()      // makes it answer from now on
}

func newSlowExtender(t *testing.T) (x *slowExtender, configured func(*settings)) {
	t.Helper()
	answers := make(chan struct{})
	x = &slowExtender{asked: make(chan string, 100), answer: sync.OnceFunc(func() { close(answers) })}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var args extenderv1.ExtenderArgs
		if err := json.NewDecoder(r.Body).Decode(&args); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		x.asked <- args.Pod.Name
		select {
		case <-answers:
		case <-r.Context().Done():
			return
		}
		_ = json.NewEncoder(w).Encode(extenderv1.ExtenderFilterResult{NodeNames: args.NodeNames}) // otherwise the scheduler is gone
	}))
	t.Cleanup(server.Close)
	return x, func(s *settings) {
		s.configuration = map[string]any{"extenders": []any{map[string]any{
			"urlPrefix": server.URL, "filterVerb": "filter", "httpTimeout": "1h", "nodeCacheCapable": true,
		}}}
	}
}

// TestTurnIsExplained asks about a pod while the window is full: the admitted pod is in a
// cycle that goes on only when an extender answers. When that answers, all run.
func TestTurnIsExplained(t *testing.T) {
	slow, configured := newSlowExtender(t)
	e := setup(t, explainQueues, configured, queueSort("window", 1), queueSort("maxWindow", 1), queueSort("slotLease", "1h"))
	t.Cleanup(slow.answer) // before the scheduler is stopped
	pods := []*corev1.Pod{e.createPod(e.pod("tried", "tried", inQueue("root.free"), requests("cpu", "100m")))}
	select {
	case <-slow.asked:
	case <-time.After(patience):
		t.Fatal("the extender was never asked")
	}
	for _, name := range []string{"next", "last"} {
		pods = append(pods, e.createLater(e.pod(name, name, inQueue("root.free"), requests("cpu", "100m"))))
	}
	x := e.awaitExplained(pods[2], reasons.InOrder, asReason)
	if w := x.Window; w == nil || w.Size != 1 || w.Taken != 1 {
		t.Errorf("the window is %+v, want one place, which is taken", w)
	}
	if o := x.Order; o == nil || !o.Waits || o.PodsBefore != 1 || o.First[0].Name != "next" || o.InAll != 2 || o.Next.Name != "next" {
		t.Errorf("the order is %+v, want one pod before it", o)
	}
	slow.answer()
	for _, p := range pods {
		e.awaitRunning(p)
	}
	e.expectBooks()
}

// TestBackOffIsExplained asks about a pod that the API server does not let be bound, with
// a back-off of an hour, and checks that it is tried at once after it changed.
func TestBackOffIsExplained(t *testing.T) {
	e := setup(t, explainQueues, queueSort("podInitialBackoff", "1h"), queueSort("podMaxBackoff", "1h"), func(s *settings) {
		s.refused = true
		s.configuration = map[string]any{"podInitialBackoffSeconds": 3600, "podMaxBackoffSeconds": 3600}
	})
	allow := e.forbidBinding()
	p := e.createPod(e.pod("bounced", "bounced", inQueue("root.free"), requests("cpu", "100m")))
	e.awaitExplained(p, reasons.BackingOff, asReason)
	allow()
	e.patch(p, `{"metadata":{"labels":{"yunikorn.apache.org/queue":"root.borrows"}}}`)
	e.awaitRunning(p)
	e.expectBooks()
}

// TestSupersededHoldIsExplained asks about a pod that lost the room made for it, and
// makes room again. The victims take five minutes to stop.
func TestSupersededHoldIsExplained(t *testing.T) {
	h := makeHalf(t, 5*time.Minute, stopsAfter(5*time.Minute))
	h.createDaemonSet("agent", inQueue("root.other"), toleratesHolds)
	h.expect("agent", 1, 0, "")
	h.endAtOnce(h.slow)
	h.awaitExplained(h.asker, reasons.HoldSuperseded, asHoldEnd)
	h.awaitExplainedHold()
}

// awaitExplainedHold waits until the explanation has the asker's new hold beside the one
// that ended.
func (h *half) awaitExplainedHold() {
	h.Helper()
	eventually(h, patience, "the asker makes room again", func() (bool, string) {
		x := h.explanation(h.Context(), h.asker)
		if x == nil || x.Hold == nil || x.LastHold == nil {
			return false, fmt.Sprintf("%+v", x)
		}
		again := len(x.Hold.WaitsFor) == 1 && strings.HasPrefix(x.Hold.WaitsFor[0].Name, "stays")
		return again && x.LastHold.Reason == reasons.HoldSuperseded, fmt.Sprintf("%+v after %+v", x.Hold, x.LastHold)
	})
}

// TestStandbyExplains asks both replicas: both know the quotas, but only the leader knows
// the scheduling attempts, and the standby says so.
func TestStandbyExplains(t *testing.T) {
	both := electReplicas(t, explainQueues, electedForLong)
	large := both.leader.createPod(both.leader.pod("large", "large", inQueue("root.free"), requests("cpu", "50")))
	over := both.leader.createPod(both.leader.pod("over", "over", inQueue("root.small"), requests("cpu", "2")))
	for _, c := range []struct {
		of      *replica
		p       *corev1.Pod
		code    reasons.Code
		state   string
		standby bool
	}{
		{both.leader, large, reasons.NoNodeFits, "stuck", false},
		{both.leader, over, reasons.OverMax, "waiting", false},
		{both.standby, large, "", "tried", true},
		{both.standby, over, reasons.OverMax, "waiting", true},
	} {
		eventually(t, patience, fmt.Sprintf("the %s replica says of %s: %s", c.of.name, c.p.Name, c.code), func() (bool, string) {
			x := c.of.explanation(t.Context(), c.p)
			if x == nil {
				return false, "it is not known"
			}
			return codeAt(x, asReason) == c.code && x.State == c.state && x.Standby == c.standby, fmt.Sprintf("%+v", x)
		})
	}
}

// TestStartIsExplained asks a scheduler about a pod while the API server delays the list
// of nodes.
func TestStartIsExplained(t *testing.T) {
	proxy := newAPIProxy(t)
	e := setup(t, explainQueues, proxy.through)
	e.kill()
	list := proxy.keepWaiting("/api/v1/nodes")
	p := e.createPod(e.pod("early", "early", inQueue("root.free"), requests("cpu", "100m")))
	type launched struct {
		process *localcluster.Process
		err     error
	}
	ready := make(chan launched, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		process, err := e.launch(ctx)
		ready <- launched{process, err}
	}()
	t.Cleanup(list)
	e.awaitExplained(p, reasons.Starting, asReason)
	list()
	began := <-ready
	e.ok(began.err)
	e.process = began.process
	e.awaitRunning(p)
	e.expectBooks()
}
