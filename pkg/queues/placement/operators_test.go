package placement_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// operators has pods as operators make them.
const operators = "testdata/operators"

// TestOperators places pods as operators make them.
func TestOperators(t *testing.T) {
	everybody := config.ACL{Everybody: true}
	queues := tree{
		"root":           {Submit: everybody},
		"root.spark":     {},
		"root.spark.etl": {QueueInfo: placement.QueueInfo{Leaf: true}},
		"root.ray":       {QueueInfo: placement.QueueInfo{Leaf: true}},
		"root.flink":     {QueueInfo: placement.QueueInfo{Leaf: true}},
	}
	var wanted map[string][]struct{ Pod, Queue, Application, User, Gang string }
	text := expect.Get(os.ReadFile(filepath.Join(operators, "wanted.yaml")))(t)
	expect.OK(t, yaml.UnmarshalStrict(text, &wanted))
	files, err := filepath.Glob(operators + "/*.yaml")
	if err != nil || len(files) != len(wanted)+1 {
		t.Fatalf("%d files and %d of them wanted: %v", len(files), len(wanted), err)
	}
	for file, wants := range wanted {
		pods := readPods(t, file)
		var named []string
		for _, want := range wants {
			named = append(named, want.Pod)
			p := pods[want.Pod]
			id, reason := placement.Identify(p, false)
			expect.That(t, reason.None(), "%s: %v", want.Pod, reason)
			result, reason := placement.Place([]config.Rule{{Kind: config.RuleProvided}},
				placement.Request{Identity: id, Namespace: placement.Namespace{Name: p.Namespace}}, queues)
			expect.That(t, reason.None(), "%s: %v", want.Pod, reason)
			got := want
			got.Queue, got.Application, got.User, got.Gang = result.Path, id.Application, id.User.Name, id.Gang.String()
			expect.Same(t, "", want, got)
		}
		slices.Sort(named)
		expect.Same(t, file+": wanted pods, each once", named, slices.Sorted(maps.Keys(pods)))
	}
}

// readPods returns the pods of a file by name.
func readPods(t *testing.T, file string) map[string]placement.Pod {
	t.Helper()
	text := expect.Get(os.ReadFile(filepath.Join(operators, file)))(t)
	out := map[string]placement.Pod{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		var manifest struct {
			Metadata placement.Pod
			Spec     struct{ SchedulerName string }
		}
		expect.OK(t, yaml.Unmarshal(document, &manifest))
		expect.Same(t, file+": scheduler", "yunikorn", manifest.Spec.SchedulerName)
		out[manifest.Metadata.Name] = manifest.Metadata
	}
	expect.Says(t, string(text), "Source") // where this is known from
	return out
}
