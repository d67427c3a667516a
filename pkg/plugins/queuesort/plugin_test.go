package queuesort_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
)

func newPlugin(t testing.TB, h *plugintest.Handle, args runtime.Object) *queuesort.Plugin {
	t.Helper()
	p := expect.Get(queuesort.New(h.Context(), args, h))(t)
	return p.(*queuesort.Plugin)
}

// started is a plugin with a store that has seen everything.
func started(t testing.TB, h *plugintest.Handle) *queuesort.Plugin {
	t.Helper()
	plugin := newPlugin(t, h, plugintest.Args())
	h.Start(t)
	plugintest.Eventually(t, func() error {
		if !app.For(h.Context(), h).Store().Ready() {
			return errors.New("not started")
		}
		return nil
	})
	return plugin
}

func TestNewRefuses(t *testing.T) {
	taken := expect.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = taken.Close() }()
	changed := func(change func(*config.QueueSortArgs)) runtime.Object {
		args := plugintest.Args()
		change(args)
		return args
	}
	for _, c := range []struct {
		name string
		args runtime.Object
		want []string
	}{
		{"no arguments", nil, []string{"<nil>", "QueueSortArgs"}},
		{"the arguments of another plugin", &config.NodeReservationArgs{}, []string{"NodeReservationArgs", "want QueueSortArgs"}},
		{"no profile", changed(func(a *config.QueueSortArgs) { a.ManagedProfiles = nil }), []string{"managedProfiles"}},
		{"several mistakes", changed(func(a *config.QueueSortArgs) { *a.Window, *a.RESTAddress = 0, "x" }), []string{"window", "restAddress"}},
		{"a port in use", changed(func(a *config.QueueSortArgs) { *a.RESTAddress = taken.Addr().String() }),
			[]string{"restAddress", "in use", "give another address"}},
	} {
		h := plugintest.New(t)
		plugin, err := queuesort.New(h.Context(), c.args, h)
		if err == nil || plugin != nil {
			t.Errorf("%s: plugin %v, error %v", c.name, plugin, err)
			continue
		}
		for _, part := range append(c.want, "plugin QueueSort: ") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q lacks %q", c.name, err, part)
			}
		}
	}
}

func TestNewRefusesOtherArgumentsInAnotherProfile(t *testing.T) {
	h := plugintest.New(t)
	newPlugin(t, h, plugintest.Args())
	second := h.Other(t, "default-scheduler")
	newPlugin(t, second, plugintest.Args())
	args := plugintest.Args()
	*args.MaxWindow *= 2
	_, err := queuesort.New(second.Context(), args, second)
	if err == nil || !strings.Contains(err.Error(), "plugin QueueSort: the arguments of QueueSort differ between profiles; give every profile the same ones") {
		t.Errorf("got %v", err)
	}
}

func TestRegistersNoEvents(t *testing.T) {
	plugin := newPlugin(t, plugintest.New(t), plugintest.Args())
	events, err := plugin.EventsToRegister(t.Context())
	if len(events) > 0 || err != nil || plugin.Name() != "QueueSort" {
		t.Errorf("%s registers %v, %v", plugin.Name(), events, err)
	}
}

func TestPreEnqueue(t *testing.T) {
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")))
	plugin := newPlugin(t, h, plugintest.Args())
	gate := func(pod *corev1.Pod) *fwk.Status { return plugin.PreEnqueue(t.Context(), pod) }
	held := func(pod *corev1.Pod, code string) {
		t.Helper()
		plugintest.Eventually(t, func() error {
			s := gate(pod)
			if s.Code() != fwk.UnschedulableAndUnresolvable || !strings.HasPrefix(s.Message(), code) {
				return errors.New(s.Code().String() + " " + s.Message())
			}
			return nil
		})
	}
	passes := func(pod *corev1.Pod) {
		t.Helper()
		plugintest.Eventually(t, func() error {
			if s := gate(pod); !s.IsSuccess() {
				return errors.New(s.Code().String() + " " + s.Message())
			}
			return nil
		})
	}
	first, second, big := plugintest.Pod("first", 600), plugintest.Pod("second", 600), plugintest.Pod("big", 2000)
	if s := gate(plugintest.Foreign(plugintest.Pod("foreign", 1))); s != nil {
		t.Errorf("a pod of no queue: %v", s)
	}
	held(first, "Starting")
	h.Start(t)
	h.Create(t, first)
	passes(first)
	passes(first) // again, for instance after its back-off
	held(second, "Starting")
	h.Create(t, second)
	held(second, "OverMax")
	h.Create(t, big)
	held(big, "OverMax")
	h.Delete(t, first)
	passes(second)
	held(big, "OverMax")
	if s := gate(plugintest.Foreign(plugintest.Pod("foreign", 1))); s != nil {
		t.Errorf("a pod of no queue: %v", s)
	}
}

// TestLessIsCalledBesideTheStore calls Less while the store changes, as the
// scheduler does; the race detector watches.
func TestLessIsCalledBesideTheStore(t *testing.T) {
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 9}")))
	plugin := started(t, h)
	pods := []*corev1.Pod{plugintest.Pod("a", 1), plugintest.Pod("b", 1), plugintest.Pod("c", 1)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 10 {
			h.Create(t, pods...)
			for _, p := range pods {
				h.Delete(t, p)
			}
		}
	}()
	a, b := queued(pods[0], time.Unix(1, 0)), queued(pods[1], time.Unix(2, 0))
	for {
		select {
		case <-done:
			return
		default:
			plugin.Less(a, b)
		}
	}
}
