package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/klog/v2"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/web"
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

func TestFollowerTellsOfChanges(t *testing.T) {
	s := newScripted(t)
	expect.That(t, !s.inForce(), "loaded before it was told anything")
	first := spec(t, "one")
	first.Warnings = []config.Problem{{Line: 3, Path: "root", Text: "has no effect"}}
	s.Loaded(first, "file x")
	expect.That(t, s.inForce() && s.store.Spec() == first, "the first configuration is not in force")
	expect.Says(t, s.handle.Log(), `Queue configuration in force source="file x"`, "root.one: added",
		"accepted with a warning", "line 3: root: has no effect", `checksum="`+first.Checksum)
	s.Loaded(spec(t, "one"), "file x")
	expect.That(t, strings.Count(s.handle.Log(), "in force") == 1 && s.store.Spec() == first,
		"the same text again counts as a change")
	named := spec(t, "one")
	named.ClusterID = "prod"
	s.Loaded(named, "file x")
	expect.Same(t, "the name of the cluster after it changed", "prod", s.store.Spec().ClusterID)
	second := spec(t, "two")
	s.Loaded(second, "file x")
	expect.That(t, s.store.Spec() == second, "the second configuration is not in force")
	expect.Says(t, s.handle.Log(), "root.one: removed", "root.two: added")
	s.Loaded(config.Default(), "file x")
	_, ok := s.store.Snapshot().Find("root.two")
	expect.That(t, !ok || s.store.Spec().Checksum == "", "an emptied document is not in force")
}

func TestFollowerWritesEventsOnlyWhileItLeads(t *testing.T) {
	s := newScripted(t)
	about := plugintest.Queues("")
	s.Failed(errors.New("bad"), "x", about)
	expect.Same(t, "events of a standby", 0, len(s.events()))
	expect.Says(t, s.handle.Log(), "no pod of a queue is scheduled before there is a valid one")
	const prefix = "yunikorn: ConfigMap yunikorn/yunikorn-configs Warning ConfigurationInvalid Reload: "
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
	note := strings.TrimPrefix(got[1], prefix)
	expect.That(t, len(note) >= 1020 && len(note) <= 1024 && strings.HasPrefix(note, "no pod of a queue is scheduled"),
		"%d bytes: %s", len(note), note)
	s.Loaded(spec(t, "one"), "x")
	s.Failed(errors.New("worse"), "x", about)
	want = append(got, prefix+"the configuration before stays in force: worse. "+entry.Remedy)
	told("with one in force")
}

// TestRepairedBeforeItLeads: a mistake that was repaired before the process leads is not reported.
func TestRepairedBeforeItLeads(t *testing.T) {
	s := newScripted(t)
	s.Failed(errors.New("bad"), "x", plugintest.Queues(""))
	s.Loaded(spec(t, "one"), "x")
	s.gate.Open()
	expect.Same(t, "events of what is repaired", 0, len(s.events()))
}

// TestInvalidAtTheStartOfALeader has a gate that opens long after everything was read.
func TestInvalidAtTheStartOfALeader(t *testing.T) {
	gate := leader.NewGate()
	broken := namespace("team")
	broken.Annotations = map[string]string{"yunikorn.apache.org/namespace.quota": "much"}
	h := plugintest.New(t, plugintest.Queues(brokenDocument), plugintest.Pod("p", 1), broken)
	For(h.Context(), h).Leader = gate
	p := configured(t, h, plugintest.Args())
	h.Start(t)
	becomes(t, p.Store(), "p", reasons.ConfigurationInvalid)
	expect.Same(t, "events of a standby", 0, len(h.Events()))
	gate.Open()
	for _, want := range []string{
		"yunikorn: ConfigMap yunikorn/yunikorn-configs Warning ConfigurationInvalid Reload: no pod of a queue is scheduled",
		"yunikorn: Namespace /team Warning NamespaceAnnotationInvalid Ignore: namespace annotation yunikorn.apache.org/namespace.quota is ignored",
	} {
		plugintest.Until(t, "there is an event: "+want, func() bool {
			return slices.ContainsFunc(h.Events(), func(e string) bool { return strings.HasPrefix(e, want) })
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
	expect.Says(t, why.Text, "the ConfigMaps in namespace yunikorn cannot be read: ", "no role")
	permitted.Store(true)
	plugintest.Until(t, "the store has started", p.Store().Ready)
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
	before := metric("paddock_config_reload_failures_total")
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
		expect.Same(t, step.name, step.want, values{
			metric("paddock_config_last_reload_success"),
			metric("paddock_config_last_reload_success_timestamp_seconds"),
			metric("paddock_config_reload_failures_total") - before,
		})
	}
}

func logger(h *plugintest.Handle) klog.Logger { return klog.FromContext(h.Context()) }

func TestFollowerSaysWhatBecameOfConfigurations(t *testing.T) {
	s := newScripted(t)
	forbidden, line1, line2 := errors.New("forbidden"), errors.New("line 1"), errors.New("line 2")
	began, never := s.clock.Now(), time.Time{}
	shows := func(source string, since time.Time, failure *web.Failure) {
		t.Helper()
		want := web.Configuration{Source: source, Since: since, Failure: failure}
		expect.Same(t, "what became of it", want, s.configuration(), cmpopts.EquateErrors())
	}
	shows("", never, nil)
	s.Unreadable(forbidden, "yk", "yunikorn-configs")
	shows("", never, &web.Failure{At: began, Source: "the ConfigMaps in namespace yk", Err: forbidden})
	s.Failed(line1, "maps", nil)
	shows("", never, &web.Failure{At: began, Source: "maps", Err: line1})
	s.Loaded(spec(t, "a"), "maps")
	shows("maps", began, &web.Failure{At: began, Source: "maps", Err: line1, Corrected: began})
	s.clock.Step(time.Minute)
	later := s.clock.Now()
	s.Loaded(spec(t, "a"), "another map")
	shows("another map", began, &web.Failure{At: began, Source: "maps", Err: line1, Corrected: began})
	s.Failed(line2, "maps", nil)
	shows("another map", began, &web.Failure{At: later, Source: "maps", Err: line2})
	kept := s.configuration()
	s.Loaded(spec(t, "a"), "maps")
	corrected := &web.Failure{At: later, Source: "maps", Err: line2, Corrected: later}
	shows("maps", began, corrected)
	expect.That(t, kept.Failure.Corrected.IsZero(), "what was handed out has changed")
	s.Loaded(spec(t, "b"), "maps")
	shows("maps", later, corrected)
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)}}
}

// stage is an announcer and the events that it wrote.
type stage struct {
	*announcer
	leads  bool
	handle *plugintest.Handle
}

func newStage(t *testing.T) *stage {
	s := &stage{handle: plugintest.New(t)}
	s.announcer = newAnnouncer(s.handle.EventRecorder(), func() bool { return s.leads })
	return s
}

// wrote lists the namespaces and notes of all events, without the remedies.
func (s *stage) wrote() (out []string) {
	for _, e := range s.handle.Events() {
		e = strings.TrimPrefix(e, "yunikorn: Namespace /")
		about, note, _ := strings.Cut(e, " Warning NamespaceAnnotationInvalid Ignore: ")
		note, _, _ = strings.Cut(note, ". ")
		out = append(out, about+": "+note)
	}
	return out
}

func TestAnnouncerSaysEachThingOnce(t *testing.T) {
	s := newStage(t)
	a, b := namespace("a"), namespace("b")
	wrong := func(ns *corev1.Namespace, texts ...string) func() {
		var errs []error
		for _, text := range texts {
			errs = append(errs, errors.New(text))
		}
		return func() { s.namespace(ns, errs) }
	}
	setLeads := func(leads bool) func() { return func() { s.leads = leads } }
	for _, step := range []struct {
		name string
		do   func()
		want []string // new events
	}{
		{"before it leads", wrong(a, "1"), nil},
		{"another, before it leads", wrong(b, "1", "2"), nil},
		{"it is something else by now", wrong(a, "3"), nil},
		{"it leads, but not long enough for a recorder", setLeads(true), nil},
		{"it leads", func() {}, []string{"b: 1; 2", "a: 3"}},
		{"the same again", wrong(a, "3"), nil},
		{"something else", wrong(a, "4"), []string{"a: 4"}},
		{"repaired", wrong(a), nil},
		{"repaired again", wrong(a), nil},
		{"broken as before", wrong(a, "4"), []string{"a: 4"}},
		{"it leads no more", func() { s.leads = false; wrong(b, "5")() }, nil},
		{"it leads again", setLeads(true), nil},
		{"and then", func() {}, []string{"b: 5"}},
		{"it leads no more", func() { s.leads = false; wrong(b, "6")() }, nil},
		{"repaired on a standby", wrong(b), nil},
		{"it leads again, with nothing to say", setLeads(true), nil},
		{"and then", func() {}, nil},
	} {
		before := len(s.handle.Events())
		step.do()
		s.look()
		expect.Same(t, step.name, step.want, s.wrote()[before:], cmpopts.EquateEmpty())
	}
}

func TestAnnouncerIsBounded(t *testing.T) {
	s := newStage(t)
	for i := range 25 {
		s.namespace(namespace(fmt.Sprint("n", i)), []error{errors.New("bad")})
	}
	for i := range 1000 { // a standby that receives many changes
		s.namespace(namespace("busy"), []error{fmt.Errorf("bad %d", i)})
	}
	expect.That(t, len(s.waiting) <= 200, "%d announcements are kept for 26 namespaces", len(s.waiting))
	s.leads = true
	s.look()
	for i, want := range []int{10, 20, 26, 26} {
		s.look()
		expect.Same(t, fmt.Sprintf("events after %d looks", i+1), want, len(s.handle.Events()))
	}
}

func TestAnnouncerWithoutARecorder(t *testing.T) {
	a := newAnnouncer(nil, func() bool { return true })
	a.namespace(namespace("a"), []error{errors.New("bad")})
	a.look()
	a.look() // must not panic
	expect.That(t, len(a.waiting) == 0, "%d announcements wait for ever", len(a.waiting))
}
