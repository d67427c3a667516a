package main

import (
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestSchedulersAreRewritten(t *testing.T) {
	tests := []struct {
		name, source string
		changed      int
		want, gone   []string
		err          string
	}{{
		name: "options of a test",
		source: `package p
import (
	"testing"
	"k8s.io/kubernetes/pkg/scheduler"
	testutils "k8s.io/kubernetes/test/integration/util"
)
func f(t *testing.T) {
	testutils.Init(t, scheduler.WithProfiles(cfg.Profiles...), scheduler.WithFrameworkOutOfTreeRegistry(registry), scheduler.WithParallelism(1))
}`,
		changed: 2,
		want: []string{
			`withours.WithProfiles(cfg.Profiles...), withours.WithRegistry(registry), scheduler.WithParallelism(1)`,
			`testutils "github.com/paddock-scheduler/paddock/test/conformance/upstream/util"`,
			`import "github.com/paddock-scheduler/paddock/test/conformance/withours"`,
		},
		gone: []string{"scheduler.WithProfiles", "scheduler.WithFramework"},
	}, {
		name: "a scheduler with a list of options",
		source: `package p
import "k8s.io/kubernetes/pkg/scheduler"
func f() { _, _ = scheduler.New(a, b, c, d, e, opts...) }`,
		changed: 1,
		want:    []string{"scheduler.New(a, b, c, d, e, withours.Options(opts...)...)"},
	}, {
		name: "a scheduler with options one by one, under another name",
		source: `package p
import sched "k8s.io/kubernetes/pkg/scheduler"
func f() { _, _ = sched.New(a, b, c, d, e, sched.WithProfiles(x), y) }`,
		changed: 2,
		want:    []string{"sched.New(a, b, c, d, e, withours.Options(withours.WithProfiles(x), y)...)"},
	}, {
		name: "a scheduler without options",
		source: `package p
import "k8s.io/kubernetes/pkg/scheduler"
func f() { _, _ = scheduler.New(a, b, c, d, e) }`,
		changed: 1,
		want:    []string{"scheduler.New(a, b, c, d, e, withours.Options()...)"},
	}, {
		name: "another New, and the API server of the tests",
		source: `package p
import (
	"k8s.io/kubernetes/test/integration/framework"
	"errors"
)
func f() { framework.EtcdMain(errors.New("a, b")) }`,
		want: []string{`"k8s.io/kubernetes/test/integration/framework"`},
		gone: []string{"withours"},
	}, {
		name: "a call that upstream changed",
		source: `package p
import "k8s.io/kubernetes/pkg/scheduler"
func f() { _, _ = scheduler.New(everything) }`,
		err: "scheduler.New with 1 arguments",
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text, changed, err := rewrite("file.go", []byte(tt.source))
			if tt.err != "" {
				expect.Fails(t, err, tt.err)
				return
			}
			expect.OK(t, err)
			expect.Same(t, "changed calls", tt.changed, changed)
			expect.Says(t, string(text), tt.want...)
			for _, w := range tt.gone {
				expect.That(t, !strings.Contains(string(text), w), "still there: %s\nin\n%s", w, text)
			}
		})
	}
}
