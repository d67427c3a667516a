package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

const brokenDocument = "partitions: [{name: default, queues: [{name: root, queues: [{name: 'a b'}]}]}]"

// scripted is a follower alone, for calls in any order.
type scripted struct {
	*follower
	handle *plugintest.Handle
	clock  *clocktesting.FakeClock
	gate   *leader.Gate
}

func newScripted(t *testing.T) *scripted {
	s := &scripted{handle: plugintest.New(t), clock: clocktesting.NewFakeClock(time.Unix(1_700_000_000, 0)), gate: leader.NewGate()}
	p := &Process{Clock: s.clock, Leader: s.gate}
	metrics.Register()
	a := newAnnouncer(s.handle.EventRecorder(), s.gate.Leading)
	s.follower = newFollower(store.New(config.Default(), store.Options{}), a, p, logger(s.handle))
	return s
}

// events returns the events written so far, after some time has passed.
func (s *scripted) events() []string {
	s.announcer.look()
	s.announcer.look()
	return s.handle.Events()
}

// spec is a specification with one leaf.
func spec(t *testing.T, leaf string) *config.Spec {
	t.Helper()
	return expect.Get(config.Parse([]byte("partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n    - name: " + leaf + "\n")))(t)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func TestFollowerTellsOfChanges(t *testing.T) {
	s := newScripted(t)
	if isClosed(s.loaded) {
		t.Fatal("loaded before it was told anything")
	}
	first := spec(t, "one")
	first.Warnings = []config.Problem{{Line: 3, Path: "root", Text: "has no effect"}}
	s.Loaded(first, "file x")
	if !isClosed(s.loaded) || s.store.Spec() != first {
		t.Fatal("the first configuration is not in force")
	}
	for _, want := range []string{
		`Queue configuration in force source="file x"`, "root.one: added", "accepted with a warning", "line 3: root: has no effect",
		`checksum="` + first.Checksum,
	} {
		if !strings.Contains(s.handle.Log(), want) {
			t.Errorf("the log lacks %q:\n%s", want, s.handle.Log())
		}
	}
	s.Loaded(spec(t, "one"), "file x")
	if n := strings.Count(s.handle.Log(), "in force"); n != 1 || s.store.Spec() != first {
		t.Errorf("the same text again counts as a change (%d)", n)
	}
	named := spec(t, "one")
	named.ClusterID = "prod"
	s.Loaded(named, "file x")
	expect.Same(t, "the name of the cluster after it changed", "prod", s.store.Spec().ClusterID)
	second := spec(t, "two")
	s.Loaded(second, "file x")
	if s.store.Spec() != second || !strings.Contains(s.handle.Log(), "root.one: removed") || !strings.Contains(s.handle.Log(), "root.two: added") {
		t.Errorf("the second configuration is not in force, or it is not told:\n%s", s.handle.Log())
	}
	s.Loaded(config.Default(), "file x")
	if _, ok := s.store.Snapshot().Find("root.two"); ok && s.store.Spec().Checksum != "" {
		t.Error("an emptied document is not in force")
	}
}

func TestFollowerWritesEventsOnlyWhileItLeads(t *testing.T) {
	s := newScripted(t)
	about := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "map", UID: "u"}}
	s.Failed(errors.New("bad"), "x", about)
	if got := s.events(); len(got) > 0 {
		t.Errorf("a standby wrote %q", got)
	}
	if !strings.Contains(s.handle.Log(), "no pod of a queue is scheduled before there is a valid one") {
		t.Errorf("the log of a standby:\n%s", s.handle.Log())
	}
	const prefix = "yunikorn: ConfigMap ns/map Warning ConfigurationInvalid Reload: "
	entry, _ := reasons.Explain(reasons.ConfigurationInvalid)
	want := []string{prefix + "no pod of a queue is scheduled before there is a valid one: bad. " + entry.Remedy}
	told := func(when string) {
		t.Helper()
		expect.Same(t, when, want, s.events())
	}
	s.gate.Open()
	told("once it leads")
	told("later")
	s.Failed(errors.New("bad"), "x", nil) // a file has no events
	told("a file")
	s.Failed(errors.New(strings.Repeat("bad ", 1000)), "x", about)
	got := s.events()
	if len(got) != 2 {
		t.Fatalf("events %q, want 2", got)
	}
	if note := strings.TrimPrefix(got[1], prefix); len(note) < 1020 || len(note) > 1024 || !strings.HasPrefix(note, "no pod of a queue is scheduled") {
		t.Errorf("%d bytes: %s", len(note), note)
	}
	s.Loaded(spec(t, "one"), "x")
	s.Failed(errors.New("worse"), "x", about)
	want = append(got, prefix+"the configuration before stays in force: worse. "+entry.Remedy)
	told("with one in force")
}

// TestRepairedBeforeItLeads: a mistake that was repaired before the process leads is not
// reported.
func TestRepairedBeforeItLeads(t *testing.T) {
	s := newScripted(t)
	s.Failed(errors.New("bad"), "x", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "map", UID: "u"}})
	s.Loaded(spec(t, "one"), "x")
	s.gate.Open()
	if got := s.events(); len(got) > 0 {
		t.Errorf("events %q of what is repaired", got)
	}
}

// TestInvalidAtTheStartOfALeader has a gate that opens long after everything was read.
func TestInvalidAtTheStartOfALeader(t *testing.T) {
	gate := leader.NewGate()
	broken := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", UID: "uid-team", Annotations: map[string]string{
		"yunikorn.apache.org/namespace.quota": "much"}}}
	h := plugintest.New(t, plugintest.Queues(brokenDocument), plugintest.Pod("p", 1), broken)
	p := For(h.Context(), h)
	p.Leader = gate
	expect.OK(t, p.Configure(h.Context(), h, plugintest.Args()))
	h.Start(t)
	becomes(t, p.Store(), "p", reasons.ConfigurationInvalid)
	if got := h.Events(); len(got) > 0 {
		t.Fatalf("a standby wrote %q", got)
	}
	gate.Open()
	for _, want := range []string{
		"yunikorn: ConfigMap yunikorn/yunikorn-configs Warning ConfigurationInvalid Reload: no pod of a queue is scheduled",
		"yunikorn: Namespace /team Warning NamespaceAnnotationInvalid Ignore: namespace annotation yunikorn.apache.org/namespace.quota is ignored",
	} {
		plugintest.Eventually(t, func() error {
			if !slices.ContainsFunc(h.Events(), func(e string) bool { return strings.HasPrefix(e, want) }) {
				return fmt.Errorf("events %q, want one that begins with %q", h.Events(), want)
			}
			return nil
		})
	}
}

// TestConfigMapsThatCannotBeRead: the reason of waiting pods names the missing permission
// until it is granted.
func TestConfigMapsThatCannotBeRead(t *testing.T) {
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")), plugintest.Pod("p", 1))
	var permitted atomic.Bool
	h.Client.PrependReactor("list", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		err := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "", errors.New("no role"))
		return !permitted.Load(), nil, err
	})
	p := configured(t, h, plugintest.Args())
	h.Start(t)
	why := becomes(t, p.Store(), "p", reasons.ConfigurationUnreadable)
	if !strings.Contains(why.Text, "the ConfigMaps in namespace yunikorn cannot be read: ") || !strings.Contains(why.Text, "no role") {
		t.Errorf("the pod is told %q", why.Text)
	}
	permitted.Store(true)
	waitStarted(t, p)
	becomes(t, p.Store(), "p", "")
}

func TestFollowerTellsWhatCannotBeRead(t *testing.T) {
	s := newScripted(t)
	s.store.Upsert(objects.Pod{Identity: objects.Identity{UID: "u", Namespace: "ns", Name: "p"}}, s.clock.Now())
	why := func(want string) {
		t.Helper()
		expect.Same(t, "explanation", want, s.store.Explain("u").String())
	}
	const head = "ConfigurationUnreadable: the ConfigMaps in namespace ns cannot be read: "
	s.Unreadable(errors.New("no b"), "ns", "b")
	why(head + "no b")
	for range 3 { // alternately
		s.Unreadable(errors.New("no a"), "ns", "a")
		why(head + "no a; no b")
		s.Unreadable(errors.New("no b"), "ns", "b")
		why(head + "no a; no b")
	}
	s.Failed(errors.New("bad"), "x", nil)
	why("ConfigurationInvalid: x cannot be used: bad")
	s.Unreadable(errors.New("no a"), "ns", "a") // a configuration that was read takes precedence
	why("ConfigurationInvalid: x cannot be used: bad")
	s.Loaded(spec(t, "one"), "x")
	s.Unreadable(errors.New("no a"), "ns", "a")
	why("Starting: the scheduler has not seen all pods and queues yet")
}

func TestFollowerCounts(t *testing.T) {
	s := newScripted(t)
	read := func() (success, at, failures float64) {
		t.Helper()
		families := expect.Get(legacyregistry.DefaultGatherer.Gather())(t)
		values := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				values[f.GetName()] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
		return values["paddock_config_last_reload_success"], values["paddock_config_last_reload_success_timestamp_seconds"],
			values["paddock_config_reload_failures_total"]
	}
	_, _, before := read()
	type values struct{ Success, At, Failures float64 }
	for _, step := range []struct {
		name string
		do   func()
		want values
	}{
		{"loaded", func() { s.Loaded(spec(t, "one"), "x") }, values{1, 1_700_000_000, 0}},
		{"failed", func() { s.clock.Step(time.Minute); s.Failed(errors.New("bad"), "x", nil) }, values{0, 1_700_000_000, 1}},
		{"the old text again", func() { s.Loaded(spec(t, "one"), "x") }, values{1, 1_700_000_060, 1}},
	} {
		step.do()
		success, at, failures := read()
		expect.Same(t, step.name, step.want, values{success, at, failures - before})
	}
}

func logger(h *plugintest.Handle) klog.Logger { return klog.FromContext(h.Context()) }

func TestFollowerSaysWhatBecameOfConfigurations(t *testing.T) {
	s := newScripted(t)
	expect := func(source string, since time.Time, failure, of string, corrected bool) {
		t.Helper()
		got := s.configuration()
		if got.Source != source || !got.Since.Equal(since) {
			t.Errorf("%q since %v is in force, want %q since %v", got.Source, got.Since, source, since)
		}
		switch f := got.Failure; {
		case failure == "":
			if f != nil {
				t.Errorf("failure %+v, want none", f)
			}
		case f == nil || f.Err.Error() != failure || f.Source != of || f.Corrected.IsZero() == corrected:
			t.Errorf("failure %+v, want %q of %s, corrected %v", f, failure, of, corrected)
		}
	}
	expect("", time.Time{}, "", "", false)
	s.Unreadable(errors.New("forbidden"), "yk", "yunikorn-configs")
	expect("", time.Time{}, "forbidden", "the ConfigMaps in namespace yk", false)
	s.Failed(errors.New("line 1"), "maps", nil)
	expect("", time.Time{}, "line 1", "maps", false)
	began := s.clock.Now()
	s.Loaded(spec(t, "a"), "maps")
	expect("maps", began, "line 1", "maps", true)
	before := s.configuration()
	s.clock.Step(time.Minute)
	s.Loaded(spec(t, "a"), "maps again")
	expect("maps", began, "line 1", "maps", true)
	if again := s.configuration(); again != before {
		t.Errorf("%+v after %+v though nothing changed", again, before)
	}
	s.Failed(errors.New("line 2"), "maps", nil)
	expect("maps", began, "line 2", "maps", false)
	kept := s.configuration()
	s.Loaded(spec(t, "a"), "maps")
	expect("maps", began, "line 2", "maps", true)
	if !kept.Failure.Corrected.IsZero() {
		t.Error("what was handed out has changed")
	}
	s.Loaded(spec(t, "b"), "maps")
	expect("maps", s.clock.Now(), "line 2", "maps", true)
}
