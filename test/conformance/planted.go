package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/paddock-scheduler/paddock/test/conformance/withours"
)

// plants are bugs, and the tests that must notice them.
var plants = []struct{ bug, suite, test string }{
	{withours.Order, "scheduler/queueing", "^TestSchedulingGates$"},
	{withours.Hold, "scheduler/extender", ""},
	{withours.Victims, "scheduler/preemption", `^TestPreemption$/^basic_pod_preemption_\(.*Async_API_calls_enabled:_true.*Binding:_true`},
	{withours.Nominated, "scheduler/preemption/nominatednodename", "^TestPreferNominatedNode$"},
}

// tryPlanted runs tests with each bug and, for a test that may also fail without it,
// without. It returns an error if a bug is not noticed, because then the suites say
// nothing about our plugins.
func (w *workshop) tryPlanted(ctx context.Context, etcd string) error {
	for _, p := range plants {
		s := suite{path: p.suite}
		binary, err := w.build(ctx, s, true)
		if err != nil {
			return err
		}
		t := trial{binary: binary, dir: w.source(s.path), etcd: etcd, only: p.test}
		var with, without verdicts
		for _, side := range []struct {
			plant, name string
			v           *verdicts
		}{{p.bug, "planted-" + p.bug, &with}, {"", "instead-of-" + p.bug, &without}} {
			if err := os.Setenv(withours.Planted, side.plant); err != nil {
				return err
			}
			t.log = w.log(s, side.name)
			if *side.v, err = t.run(ctx); err != nil {
				return err
			}
		}
		noticed := noticedBy(with, without)
		fmt.Printf("%s, planted bug %q: %d tests passed, %d failed; of these %d pass without it\n",
			s.name(), p.bug, with.count("pass"), with.count("fail"), len(noticed))
		if len(noticed) == 0 {
			return fmt.Errorf("the planted bug %q was not noticed by %s", p.bug, s.name())
		}
	}
	return nil
}

// noticedBy returns the tests that fail with a bug and pass without. A test that did not
// end does not count, because a slow machine may be the cause.
func noticedBy(with, without verdicts) []string {
	return slices.DeleteFunc(with.bad(), func(name string) bool { return with[name] != "fail" || without[name] != "pass" })
}
