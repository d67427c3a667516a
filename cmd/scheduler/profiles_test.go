package main

import (
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/pkg/plugins/profiles"
)

// Every case is a configuration below its type, and what the command says about
// it before it would begin to schedule: the whole list.
func TestCheckConfiguration(t *testing.T) {
	const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	datadriven.RunTest(t, "testdata/check.txt", func(t *testing.T, d *datadriven.TestData) string {
		cc, sched, err := setUp(t, parse(t, "--config="+configFile(t, []byte(header+d.Input))))
		if err != nil {
			return "setup: " + err.Error() + "\n"
		}
		if err := profiles.Check(&cc.ComponentConfig, profiles.Effective(sched.Profiles)); err != nil {
			return err.Error() + "\n"
		}
		return "fine\n"
	})
}
