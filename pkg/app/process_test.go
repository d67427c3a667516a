package app

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clienttesting "k8s.io/client-go/testing"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
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
	start(t, h, p)
	return p
}

// start runs the informers until the store has seen everything.
func start(t *testing.T, h *plugintest.Handle, p *Process) {
	t.Helper()
	h.Start(t)
	plugintest.Until(t, "the store has started", p.Store().Ready)
}

// becomes polls until the reason why the pod waits has the code; empty means none.
func becomes(t *testing.T, s *store.Store, name string, code reasons.Code) (why reasons.Reason) {
	t.Helper()
	plugintest.Becomes(t, "why pod "+name+" waits", code, func() reasons.Code {
		why = s.Explain(types.UID("uid-" + name))
		return why.Code
	})
	return why
}

func TestForIsOnePerScheduler(t *testing.T) {
	h, other := plugintest.New(t), plugintest.New(t)
	p := For(h.Context(), h)
	expect.That(t, For(h.Context(), h) == p && For(h.Context(), h.Other(t, "second")) == p,
		"two plugins of one scheduler share nothing")
	expect.That(t, For(other.Context(), other) != p, "two schedulers share a process")
	factory := h.SharedInformerFactory()
	h.Stop()
	plugintest.Until(t, "the process of an ended scheduler is gone", func() bool { return !known(factory) })
	expect.That(t, known(other.SharedInformerFactory()), "the process of another scheduler is gone")
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
	start(t, h, p)
	h.Stop()
	plugintest.Until(t, "the process is gone", func() bool { return !known(h.SharedInformerFactory()) })
}

func TestConfigureOnce(t *testing.T) {
	h := plugintest.New(t)
	p := configured(t, h, plugintest.Args())
	s := p.Store()
	expect.That(t, s != nil && p.Managed(plugintest.Profile) && !p.Managed("default-scheduler") && !p.Managed(""),
		"the first call did not do it")
	second := h.Other(t, "default-scheduler")
	expect.OK(t, For(second.Context(), second).Configure(second.Context(), second, plugintest.Args()))
	expect.That(t, p.Store() == s, "the second profile made another store")
	for name, change := range map[string]func(*config.QueueSortArgs){
		"window":   func(a *config.QueueSortArgs) { *a.Window++ },
		"profiles": func(a *config.QueueSortArgs) { a.ManagedProfiles = []string{"yunikorn", "more"} },
		"address":  func(a *config.QueueSortArgs) { *a.RESTAddress = "127.0.0.1:0" },
	} {
		args := plugintest.Args()
		change(args)
		t.Log("other", name)
		expect.Fails(t, p.Configure(second.Context(), second, args), "differ between profiles")
	}
	expect.That(t, p.Store() == s, "a refused call made another store")
}

func TestConfigureWhenTheAddressIsTaken(t *testing.T) {
	taken := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	h := plugintest.New(t)
	p, args := For(h.Context(), h), plugintest.Args()
	*args.RESTAddress = taken.Addr().String()
	err := p.Configure(h.Context(), h, args)
	expect.Says(t, fmt.Sprint(err), `restAddress "`+*args.RESTAddress+`"`, "in use", "give another address")
	expect.That(t, p.Store() == nil, "there is a store all the same")
	expect.That(t, p.Configure(h.Context(), h, args) != nil,
		"a second call with the same arguments is fine, without a store")
}

func TestPodsAreActivatedInTheirTurn(t *testing.T) {
	first, second := plugintest.Pod("first", 600), plugintest.Pod("second", 600)
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")), first)
	p := started(t, h)
	activated := func(want ...string) {
		t.Helper()
		plugintest.Becomes(t, "activated", want, h.Activated)
	}
	activated("ns/first ns/first uid-first")
	h.Create(t, second, plugintest.Foreign(plugintest.Pod("foreign", 1)))
	expect.Says(t, becomes(t, p.Store(), "second", reasons.OverMax).Text, "root.a")
	activated("ns/first ns/first uid-first")
	h.Delete(t, first)
	activated("ns/first ns/first uid-first", "ns/second ns/second uid-second")
	expect.OK(t, p.Store().Check())
}

// TestDeadlinesAreKept lets the lease of a slot end: the activated pod is not taken, so
// it is activated again later.
func TestDeadlinesAreKept(t *testing.T) {
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")), plugintest.Pod("p", 600))
	fake := clocktesting.NewFakeClock(time.Now())
	For(h.Context(), h).Clock = fake
	p := configured(t, h, plugintest.Args())
	h.Start(t)
	// Steps are small, because the start polls by the same clock.
	until := func(activations int) time.Duration {
		t.Helper()
		began := fake.Now()
		plugintest.Until(t, "the pod is activated", func() bool {
			fake.Step(100 * time.Millisecond)
			return len(h.Activated()) >= activations
		})
		return fake.Since(began)
	}
	until(1)
	took := until(2)
	expect.That(t, took >= 30*time.Second, "activated after %v, want the lease of 30s and the back-off", took)
	expect.OK(t, p.Store().Check())
}

func TestOnlyALeaderWrites(t *testing.T) {
	gate := leader.NewGate()
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")), plugintest.Pod("p", 2000))
	For(h.Context(), h).Leader = gate
	p := started(t, h)
	becomes(t, p.Store(), "p", reasons.OverMax)
	expect.That(t, !slices.ContainsFunc(h.Client.Actions(), isWrite) && len(h.Events()) == 0,
		"a standby writes: %v %q", h.Client.Actions(), h.Events())
	gate.Open()
	plugintest.Until(t, "the leader says why the pod waits", func() bool {
		return len(h.Events()) == 1 && slices.ContainsFunc(h.Client.Actions(), isWrite)
	})
	const want = "yunikorn: Pod ns/p Warning OverMax Scheduling: "
	told := h.Events()[0]
	expect.That(t, strings.HasPrefix(told, want) && strings.Contains(told, "root.a"),
		"event %q, want %q and the queue", told, want)
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
		expect.That(t, p.recorder(profile, other) == want, "another one speaks for profile %s", profile)
	}
	p.handles.Store("mute", mute{h})
	expect.That(t, p.recorder("mute", other) == clientevents.EventRecorder(other), "one that is not there speaks")
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
	plugintest.Until(t, "the file is read", func() bool { return strings.Contains(h.Log(), "none.yaml") })
}

func TestStoreOptions(t *testing.T) {
	args := plugintest.Args()
	args.GenerateUniqueAppID = true
	args.PodInitialBackoff.Duration = 0
	got := storeOptions(args)
	want := store.Options{
		Window: 64, MaxWindow: 1024, SlotLease: 30 * time.Second, InitialBackoff: -1,
		MaxBackoff: 10 * time.Second, GenerateUniqueAppID: true,
	}
	expect.Same(t, "a back-off of 0 means none", want, got)
}

// isWrite reports whether a request changes anything.
func isWrite(a clienttesting.Action) bool {
	return !slices.Contains([]string{"get", "list", "watch"}, a.GetVerb())
}

// TestCyclesWaitOnceForWhatExisted: as long as the store has not read everything that existed, the
// cycles of the process wait for it for 10 s together, however many nodes their filters run for.
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
