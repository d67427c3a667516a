//go:build perf

package perf

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

// counts are the parameters of one of upstream's workloads; nodes 0 is no workload.
type counts struct{ nodes, init, measured int }

// upstreamCases are cases of upstream's scheduler_perf, in sizes that two cores can run
// often enough.
var upstreamCases = []struct {
	dir, name    string
	small, large counts
	// third is the side that is measured besides base and beside: managed if pods of a
	// queue find room as upstream's do. In the cases of preemption they do not, because
	// high-priority pods of a queue do not evict others of it: there it is asks.
	third string
}{
	{"misc", "SchedulingBasic", counts{500, 500, 3000}, counts{5000, 1000, 1000}, "managed"},
	{"misc", "SchedulingWithMixedChurn", counts{500, 0, 1000}, counts{}, "managed"},
	{"misc", "SchedulingDaemonset", counts{500, 0, 3000}, counts{5000, 0, 3000}, "managed"},
	{"misc", "Unschedulable", counts{500, 10, 1000}, counts{}, "managed"},
	{"misc", "PreemptionBasic", counts{500, 2000, 400}, counts{}, "asks"},
	{"misc", "PreemptionAsync", counts{500, 2000, 1500}, counts{5000, 20000, 1000}, "asks"},
	{"topology_spreading", "TopologySpreading", counts{500, 1000, 1000}, counts{}, "managed"},
	{"affinity", "SchedulingNodeAffinity", counts{500, 500, 1000}, counts{}, "managed"},
}

// BenchmarkUpstream runs upstream's cases with upstream's configuration (base), beside
// our profile in one process (beside), and either with all pods in a queue (managed) or
// beside with a profile that also calls QueuePreemption (asks).
func BenchmarkUpstream(b *testing.B) {
	out := expect.Get(exec.CommandContext(b.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output())(b)
	cases := filepath.Join(string(bytes.TrimSpace(out)), "test", "integration", "scheduler_perf")
	for _, c := range upstreamCases {
		for size, n := range map[string]counts{"small": c.small, "large": c.large} {
			if n.nodes == 0 {
				continue
			}
			for _, side := range []string{"base", "beside", c.third} {
				b.Run(c.name+"/"+size+"/"+side, func(b *testing.B) {
					dir := filepath.Join(cases, c.dir)
					file := writer{b}.upstream(dir, c.name, n, upstreamConfigurations[side])
					b.Chdir(dir) // templates are named from there
					measure(b, file, c.name, nil)
				})
			}
		}
	}
}

// upstream writes one of upstream's cases with these counts, and with a scheduler of this
// configuration; empty is upstream's default.
func (w writer) upstream(dir, name string, n counts, configuration string) string {
	text := expect.Get(os.ReadFile(filepath.Join(dir, "performance-config.yaml")))(w.b)
	var all []map[string]any
	expect.OK(w.b, yaml.Unmarshal(text, &all))
	for _, c := range all {
		if c["name"] != name {
			continue
		}
		c["workloads"] = []any{map[string]any{"name": fmt.Sprintf("%dNodes", n.nodes), "params": n.used(w, c["workloadTemplate"])}}
		if configuration != "" {
			queues := w.write("queues.yaml", teamDocument)
			c["schedulerConfigPath"] = w.write("scheduler.yaml", fmt.Sprintf(configuration, queues))
		}
		return w.write("case.yaml", string(expect.Get(yaml.Marshal([]any{c}))(w.b)))
	}
	w.b.Fatalf("upstream has no case %s in %s any more", name, dir)
	return ""
}

// used returns the counts that the operations name; scheduler_perf accepts no others.
func (n counts) used(w writer, operations any) map[string]any {
	text := expect.Get(yaml.Marshal(operations))(w.b)
	out := map[string]any{}
	for name, count := range map[string]int{"initNodes": n.nodes, "initPods": n.init, "measurePods": n.measured} {
		if bytes.Contains(text, []byte("$"+name)) {
			out[name] = count
		}
	}
	return out
}

// upstreamConfigurations are those of the sides; a missing one is upstream's default.
var upstreamConfigurations = map[string]string{
	"base":    "",
	"beside":  shipped(manifests.TwoProfiles),
	"asks":    shipped(manifests.TwoProfilesDaemonSets), // leaves all but pods of DaemonSets to DefaultPreemption
	"managed": strings.ReplaceAll(ourConfiguration, "yunikorn", "default-scheduler"),
}

// teamDocument has one queue for all pods, with a guarantee so that plans are made.
const teamDocument = `partitions:
- name: default
  placementrules: [{name: fixed, value: root.team}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: team, resources: {guaranteed: {vcore: 100000, memory: 1000Ti}}}
`
