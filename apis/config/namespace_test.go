package config_test

import (
	"testing"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestEffectiveConfigNamespace(t *testing.T) {
	for _, test := range []struct{ name, args, env, want string }{
		{"the argument wins", "queues", "scheduling", "queues"},
		{"then the environment", "", "scheduling", "scheduling"},
		{"then the default", "", "", "yunikorn"},
	} {
		t.Run(test.name, func(t *testing.T) {
			getenv := func(name string) string {
				expect.Same(t, "asked for", "POD_NAMESPACE", name)
				return test.env
			}
			args := &config.QueueSortArgs{ConfigNamespace: test.args}
			expect.Same(t, "namespace", test.want, args.EffectiveConfigNamespace(getenv))
		})
	}
}
