package queuesort_test

import (
	"errors"
	"strings"
	"testing"

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
