package app

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clienttesting "k8s.io/client-go/testing"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	queuesconfig "github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// configured is a process with its store, not started.
func configured(t *testing.T, h *plugintest.Handle, args *config.QueueSortArgs) *Process {
	t.Helper()
	p := For(h.Context(), h)
	expect.OK(t, p.Configure(h.Context(), h, args))
	return p
}

// started is a process with a store that has seen everything.
func started(t *testing.T, h *plugintest.Handle) *Process {
	t.Helper()
	p := configured(t, h, plugintest.Args())
	h.Start(t)
	waitStarted(t, p)
	return p
}

func waitStarted(t *testing.T, p *Process) {
	t.Helper()
	plugintest.Eventually(t, func() error {
		if !p.Store().Ready() {
			return errors.New("not started")
		}
		return nil
	})
}

// becomes polls until the reason why the pod waits has the code; empty means none.
func becomes(t *testing.T, s *store.Store, name string, code reasons.Code) reasons.Reason {
	t.Helper()
	var why reasons.Reason
	plugintest.Eventually(t, func() error {
		if why = s.Explain(types.UID("uid-" + name)); why.Code != code {
			return errors.New("pod " + name + " waits for " + why.String())
		}
		return nil
	})
	return why
}

func TestForIsOnePerScheduler(t *testing.T) {
	h, other := plugintest.New(t), plugintest.New(t)
	p := For(h.Context(), h)
	if For(h.Context(), h) != p || For(h.Context(), h.Other(t, "second")) != p {
		t.Error("two plugins of one scheduler share nothing")
	}
	if For(other.Context(), other) == p {
		t.Error("two schedulers share a process")
	}
	factory := h.SharedInformerFactory()
	h.Stop()
	plugintest.Eventually(t, func() error {
		if known(factory) {
			return errors.New("the process of an ended scheduler is kept")
		}
		return nil
	})
	if !known(other.SharedInformerFactory()) {
		t.Error("the process of another scheduler is gone")
	}
}

func known(factory informers.SharedInformerFactory) bool {
	processesMu.Lock()
	defer processesMu.Unlock()
	return processes[factory] != nil
}

func TestEverythingEndsWithTheContext(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(),
		// Upstream's handle has a goroutine that checks its context once a second.
		goleak.IgnoreAnyFunction("k8s.io/kubernetes/pkg/scheduler/metrics.(*MetricAsyncRecorder).run"))
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")))
	args := plugintest.Args()
	*args.RESTAddress = "127.0.0.1:0"
	p := configured(t, h, args)
	h.Start(t)
	waitStarted(t, p)
	h.Stop()
	plugintest.Eventually(t, func() error {
		if known(h.SharedInformerFactory()) {
			return errors.New("the process is kept")
		}
		return nil
	})
}

func TestConfigureOnce(t *testing.T) {
	h := plugintest.New(t)
	p := configured(t, h, plugintest.Args())
	s := p.Store()
	if s == nil || !p.Managed(plugintest.Profile) || p.Managed("default-scheduler") || p.Managed("") {
		t.Fatal("the first call did not do it")
	}
	second := h.Other(t, "default-scheduler")
	expect.OK(t, For(second.Context(), second).Configure(second.Context(), second, plugintest.Args()))
	if p.Store() != s {
		t.Error("the second profile made another store")
	}
	for name, change := range map[string]func(*config.QueueSortArgs){
		"window":   func(a *config.QueueSortArgs) { *a.Window++ },
		"profiles": func(a *config.QueueSortArgs) { a.ManagedProfiles = []string{"yunikorn", "more"} },
		"address":  func(a *config.QueueSortArgs) { *a.RESTAddress = "127.0.0.1:0" },
	} {
		args := plugintest.Args()
		change(args)
		err := p.Configure(second.Context(), second, args)
		if err == nil || !strings.Contains(err.Error(), "differ between profiles") {
			t.Errorf("other %s: %v", name, err)
		}
	}
	if p.Store() != s {
		t.Error("a refused call made another store")
	}
}

func TestConfigureWhenTheAddressIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	expect.OK(t, err)
	defer func() { _ = taken.Close() }()
	h := plugintest.New(t)
	p, args := For(h.Context(), h), plugintest.Args()
	*args.RESTAddress = taken.Addr().String()
	err = p.Configure(h.Context(), h, args)
	if err == nil || !strings.Contains(err.Error(), `restAddress "`+*args.RESTAddress+`"`) ||
		!strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), "give another address") {
		t.Errorf("got %v", err)
	}
	if p.Store() != nil {
		t.Error("there is a store all the same")
	}
	if err := p.Configure(h.Context(), h, args); err == nil {
		t.Error("a second call with the same arguments is fine, without a store")
	}
}

func TestPodsAreActivatedInTheirTurn(t *testing.T) {
	first, second := plugintest.Pod("first", 600), plugintest.Pod("second", 600)
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")), first)
	p := started(t, h)
	activated := func(want ...string) {
		t.Helper()
		plugintest.Eventually(t, func() error {
			if got := h.Activated(); !slices.Equal(got, want) {
				return errors.New(cmp.Diff(want, got))
			}
			return nil
		})
	}
	activated("ns/first ns/first uid-first")
	h.Create(t, second, plugintest.Foreign(plugintest.Pod("foreign", 1)))
	if why := becomes(t, p.Store(), "second", reasons.OverMax); !strings.Contains(why.Text, "root.a") {
		t.Errorf("why the second waits: %v", why)
	}
	activated("ns/first ns/first uid-first")
	h.Delete(t, first)
	activated("ns/first ns/first uid-first", "ns/second ns/second uid-second")
	expect.OK(t, p.Store().Check())
}

// TestDeadlinesAreKept lets the lease of a slot end: the activated pod is not taken, so
// it is activated again later.
func TestDeadlinesAreKept(t *testing.T) {
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")), plugintest.Pod("p", 600))
	p := For(h.Context(), h)
	fake := clocktesting.NewFakeClock(time.Now())
	p.Clock = fake
	expect.OK(t, p.Configure(h.Context(), h, plugintest.Args()))
	h.Start(t)
	// Steps are small, because the start polls by the same clock.
	steps := 0
	until := func(activations int) time.Duration {
		t.Helper()
		began := fake.Now()
		plugintest.Eventually(t, func() error {
			if len(h.Activated()) >= activations {
				return nil
			}
			fake.Step(100 * time.Millisecond)
			steps++
			return errors.New("not activated")
		})
		return fake.Since(began)
	}
	until(1)
	if took := until(2); took < 30*time.Second {
		t.Errorf("activated again after %v, want the lease of 30s and the back-off", took)
	}
	expect.OK(t, p.Store().Check())
}

func TestOnlyALeaderWrites(t *testing.T) {
	gate := leader.NewGate()
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")), plugintest.Pod("p", 2000))
	p := For(h.Context(), h)
	p.Leader = gate
	expect.OK(t, p.Configure(h.Context(), h, plugintest.Args()))
	h.Start(t)
	waitStarted(t, p)
	becomes(t, p.Store(), "p", reasons.OverMax)
	if slices.ContainsFunc(h.Client.Actions(), isWrite) || len(h.Events()) > 0 {
		t.Errorf("a standby writes: %v %q", h.Client.Actions(), h.Events())
	}
	gate.Open()
	plugintest.Eventually(t, func() error {
		if len(h.Events()) != 1 || !slices.ContainsFunc(h.Client.Actions(), isWrite) {
			return errors.New("the leader does not say why the pod waits")
		}
		return nil
	})
	const want = "yunikorn: Pod ns/p Warning OverMax Scheduling: "
	if got := h.Events()[0]; !strings.HasPrefix(got, want) || !strings.Contains(got, "root.a") {
		t.Errorf("event %q, want %q and the queue", got, want)
	}
}

func TestRecorderOfTheProfile(t *testing.T) {
	h := plugintest.New(t)
	p := For(h.Context(), h)
	second := h.Other(t, "second")
	For(second.Context(), second)
	other := clientevents.NewFakeRecorder(1)
	for profile, want := range map[string]clientevents.EventRecorder{
		plugintest.Profile: h.EventRecorder(), "second": second.EventRecorder(), "unknown": other,
	} {
		if got := p.recorder(profile, other); got != want {
			t.Errorf("profile %s: %v speaks, want %v", profile, got, want)
		}
	}
	p.handles.Store("mute", mute{h})
	if got := p.recorder("mute", other); got != clientevents.EventRecorder(other) {
		t.Errorf("a profile without a recorder: %v speaks", got)
	}
}

// mute is a handle without a recorder of events.
type mute struct{ *plugintest.Handle }

func (mute) EventRecorder() clientevents.EventRecorder { return nil }

// TestWithoutAPIServer has a handle as in upstream's unit tests.
func TestWithoutAPIServer(t *testing.T) {
	h := plugintest.New(t)
	bare := mute{h}
	p := For(h.Context(), bare)
	args := plugintest.Args()
	args.ConfigNamespace, args.ConfigFile = "", t.TempDir()+"/none.yaml"
	expect.OK(t, p.Configure(h.Context(), bare, args))
	plugintest.Eventually(t, func() error {
		if !strings.Contains(h.Log(), "none.yaml") {
			return errors.New("the file is not read")
		}
		return nil
	})
}

func TestStoreOptions(t *testing.T) {
	args := plugintest.Args()
	args.GenerateUniqueAppID = true
	args.PodInitialBackoff.Duration = 0
	got := storeOptions(args)
	want := store.Options{Window: 64, MaxWindow: 1024, SlotLease: 30 * time.Second, InitialBackoff: -1, MaxBackoff: 10 * time.Second}
	want.GenerateUniqueAppID = true
	expect.Same(t, "a back-off of 0 means none", want, got)
}

// isWrite reports whether a request changes anything.
func isWrite(a clienttesting.Action) bool {
	return !slices.Contains([]string{"get", "list", "watch"}, a.GetVerb())
}

// TestCyclesWaitOnceForWhatExisted: as long as the store has not read everything that
// existed, the cycles of the process wait for it for 10 s together, however many nodes
// their filters run for.
func TestCyclesWaitOnceForWhatExisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Process{Clock: clock.RealClock{}, synced: make(chan struct{})}
		p.store.Store(store.New(queuesconfig.Default(), store.Options{}))
		began := time.Now()
		for range 3 {
			p.AwaitHolds(t.Context())
		}
		expect.Same(t, "waited", syncPatience, time.Since(began))
	})
}
