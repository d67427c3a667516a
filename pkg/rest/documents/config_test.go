package documents

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// TestAliasesAreWrittenOut: many queues may have the same ones below them by an alias.
func TestAliasesAreWrittenOut(t *testing.T) {
	var b strings.Builder
	b.WriteString("partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n    - name: first\n      queues: &teams\n")
	for i := range 50 {
		fmt.Fprintf(&b, "      - {name: team%d, resources: {max: {vcore: 1}}}\n", i)
	}
	for i := range 400 {
		fmt.Fprintf(&b, "    - {name: tenant%d, queues: *teams}\n", i)
	}
	spec := expect.Get(config.Parse([]byte(b.String())))(t)
	asYAML, _, err := render(spec)
	expect.OK(t, err)
	expect.Same(t, "queues", 401*50, strings.Count(string(asYAML), "name: team"))
}
