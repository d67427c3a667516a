package main

import (
	"context"
	"fmt"
	"os"

	"github.com/paddock-scheduler/paddock/test/conformance/withours"
)

// plants are bugs, and the tests that have to notice them.
var plants = []struct{ bug, suite, test string }{
	{withours.Order, "scheduler/queueing", "^TestSchedulingGates$"},
	{withours.Hold, "scheduler/extender", ""},
	{withours.Victims, "scheduler/preemption", `^TestPreemption$/^basic_pod_preemption_\(.*Async_API_calls_enabled:_true.*Binding:_true`},
	{withours.Nominated, "scheduler/preemption/nominatednodename", "^TestPreferNominatedNode$"},
}

// tryPlanted runs tests with each bug. It is an error if one is not noticed: then
// the suites say nothing of our plugins.
func (w *workshop) tryPlanted(ctx context.Context, o options, etcd string) error {
	for _, p := range plants {
		s := suite{path: p.suite}
		binary, err := w.build(ctx, s, true)
		if err != nil {
			return err
		}
		if err := os.Setenv(withours.Planted, p.bug); err != nil {
			return err
		}
		t := trial{binary: binary, dir: w.source(s.path), etcd: etcd, limit: o.limit, only: p.test, log: w.log(s, "planted-"+p.bug)}
		v, err := t.run(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("%s, planted bug %q: %d tests passed, %d failed\n", s.name(), p.bug, v.count("pass"), v.count("fail"))
		if v.count("fail") == 0 { // one that did not end may be the machine's fault
			return fmt.Errorf("the planted bug %q was not noticed by %s", p.bug, s.name())
		}
	}
	return nil
}
