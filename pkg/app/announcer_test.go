package app

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
)

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
func (s *stage) wrote() []string {
	var out []string
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
		expect.Same(t, step.name, step.want, s.wrote()[before:], cmpEmpty)
	}
}

// cmpEmpty treats nil and an empty list as equal.
var cmpEmpty = cmp.Transformer("empty", func(s []string) string { return strings.Join(s, "\n") })

func TestAnnouncerIsBounded(t *testing.T) {
	s := newStage(t)
	for i := range 25 {
		s.namespace(namespace(fmt.Sprint("n", i)), []error{errors.New("bad")})
	}
	for i := range 1000 { // a standby that receives many changes
		s.namespace(namespace("busy"), []error{fmt.Errorf("bad %d", i)})
	}
	if n := len(s.waiting); n > 200 {
		t.Errorf("%d announcements are kept for 26 namespaces", n)
	}
	s.leads = true
	s.look()
	for i, want := range []int{10, 20, 26, 26} {
		if s.look(); len(s.handle.Events()) != want {
			t.Errorf("%d looks: %d events, want %d", i+1, len(s.handle.Events()), want)
		}
	}
}

func TestAnnouncerWithoutARecorder(t *testing.T) {
	a := newAnnouncer(nil, func() bool { return true })
	a.namespace(namespace("a"), []error{errors.New("bad")})
	a.look()
	a.look() // must not panic
	if len(a.waiting) > 0 {
		t.Errorf("%d announcements wait for ever", len(a.waiting))
	}
}
