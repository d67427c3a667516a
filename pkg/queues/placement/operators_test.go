package placement_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		"root":           {submit: everybody},
		"root.spark":     {},
		"root.spark.etl": {QueueInfo: placement.QueueInfo{Leaf: true}},
		"root.ray":       {QueueInfo: placement.QueueInfo{Leaf: true}},
		"root.flink":     {QueueInfo: placement.QueueInfo{Leaf: true}},
	}
	var wanted map[string][]struct{ Pod, Queue, Application, User, Gang string }
	readYAML(t, "wanted.yaml", &wanted)
	files, err := filepath.Glob(operators + "/*.yaml")
	if err != nil || len(files) != len(wanted)+1 {
		t.Fatalf("%d files and %d of them wanted: %v", len(files), len(wanted), err)
	}
	for file, wants := range wanted {
		pods := readPods(t, file)
		named := map[string]bool{}
		for _, want := range wants {
			named[want.Pod] = true
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(named)), slices.Sorted(maps.Keys(pods))); diff != "" || len(named) != len(wants) {
			t.Errorf("%s: %d wanted, each pod once (-wanted +there):\n%s", file, len(wants), diff)
		}
		for _, want := range wants {
			p := pods[want.Pod]
			id, reason := placement.Identify(p, false)
			if !reason.None() {
				t.Errorf("%s: %v", want.Pod, reason)
			}
			result, reason := placement.Place([]config.Rule{{Kind: config.RuleProvided}},
				placement.Request{Identity: id, Namespace: placement.Namespace{Name: p.Namespace}}, queues)
			if !reason.None() {
				t.Errorf("%s: %v", want.Pod, reason)
			}
			got := want
			got.Queue, got.Application, got.User, got.Gang = result.Path, id.Application, id.User.Name, id.Gang.String()
			expect.Same(t, "", want, got)
		}
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
		if err := yaml.Unmarshal(document, &manifest); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if manifest.Spec.SchedulerName != "yunikorn" {
			t.Errorf("%s: pod %s is of scheduler %q", file, manifest.Metadata.Name, manifest.Spec.SchedulerName)
		}
		out[manifest.Metadata.Name] = manifest.Metadata
	}
	if !strings.Contains(string(text), "Source") {
		t.Errorf("%s does not say where this is known from", file)
	}
	return out
}

func readYAML(t *testing.T, file string, into any) {
	t.Helper()
	text := expect.Get(os.ReadFile(filepath.Join(operators, file)))(t)
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
