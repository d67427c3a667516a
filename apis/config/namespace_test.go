package config_test

import (
	"testing"

	"github.com/paddock-scheduler/paddock/apis/config"
)

func TestEffectiveConfigNamespace(t *testing.T) {
	for _, test := range []struct{ name, args, env, want string }{
		{"the argument wins", "queues", "scheduling", "queues"},
		{"then the environment", "", "scheduling", "scheduling"},
		{"then the default", "", "", "yunikorn"},
	} {
		t.Run(test.name, func(t *testing.T) {
			getenv := func(name string) string {
				if name != "POD_NAMESPACE" {
					t.Errorf("asked for %s", name)
				}
				return test.env
			}
			args := &config.QueueSortArgs{ConfigNamespace: test.args}
			if got := args.EffectiveConfigNamespace(getenv); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
