package compare

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
)

// The files in testdata have two documents with a line ==== between them; an
// empty one stands for no specification at all.
func TestSpecs(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			before, after, _ := strings.Cut(d.Input+"\n", "====\n")
			differences := Specs(read(t, d, before), read(t, d, after))
			var b strings.Builder
			for _, diff := range differences {
				fmt.Fprintf(&b, "%s [%s]: %s\n", orPartition(diff.Queue), diff.Effect, diff)
			}
			if len(differences) == 0 {
				return "no difference\n"
			}
			return b.String()
		})
	})
}

func read(t *testing.T, d *datadriven.TestData, document string) *config.Spec {
	t.Helper()
	if strings.TrimSpace(document) == "" {
		return nil
	}
	spec, err := config.Parse([]byte(document))
	if err != nil {
		d.Fatalf(t, "refused:\n%v", err)
	}
	return spec
}

func orPartition(queue string) string {
	if queue == "" {
		return "partition"
	}
	return queue
}

// checkComplete compares with config.Diff: the same queues differ.
func checkComplete(differences []Difference, changes []config.Change) error {
	told, due := map[string]bool{}, map[string]bool{}
	for _, d := range differences {
		told[d.Queue] = true
		if d.Old == d.New {
			return fmt.Errorf("%s: %s is no difference", d.Queue, d)
		}
	}
	for _, c := range changes {
		due[c.Path] = true
		if !told[c.Path] {
			return fmt.Errorf("not told: %s", c)
		}
	}
	for queue := range told {
		if !due[queue] {
			return fmt.Errorf("told of %s, which is the same", queue)
		}
	}
	return nil
}

func TestNothingIsLeftOut(t *testing.T) {
	specs := queuestest.Specs(queuestest.Features{
		Guaranteed: true, Max: true, MaxApplications: true, Limits: true, Policies: true, Templates: true,
	})
	rapid.Check(t, func(t *rapid.T) {
		before, after := specs.Draw(t, "before"), specs.Draw(t, "after")
		if err := checkComplete(Specs(before, after), config.Diff(before, after)); err != nil {
			t.Fatal(err)
		}
	})
}

func TestTheCheckNoticesWhatIsLeftOut(t *testing.T) {
	before := queuestest.MustTree(t, "root\n  a\n")
	after := queuestest.MustTree(t, "root\n  a max.vcore=4\n  b\n")
	changes, differences := config.Diff(before, after), Specs(before, after)
	for i := range differences {
		planted := append(append([]Difference{}, differences[:i]...), differences[i+1:]...)
		if checkComplete(planted, changes) == nil {
			t.Errorf("it is not found that %q is left out", differences[i])
		}
	}
	if checkComplete(append(differences, Difference{Queue: "root.c", Old: "1", New: "2"}), changes) == nil {
		t.Error("a difference that is made up is not found")
	}
}
