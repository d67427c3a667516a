package queues_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// TestApply runs the files of testdata/apply. Each is the history of one tree:
//
//	apply                     makes the tree follow the specification of the input
//	dynamic PATH [NAMESPACE]  makes a dynamic leaf and what is missing above it
//	quota NAMESPACE W...      sets the quota of a namespace; W as in queuestest.Tree; none
//	                          takes it away
//	use PATH APPLICATIONS     adds to the applications of a queue
//
// Every command prints the tree, see queuestest.ShowSettings.
func TestApply(t *testing.T) {
	datadriven.Walk(t, "testdata/apply", func(t *testing.T, file string) {
		var d *queues.Draft
		quotas := map[string]*queues.NamespaceQuota{}
		of := func(namespace string) *queues.NamespaceQuota { return quotas[namespace] }
		datadriven.RunTest(t, file, func(t *testing.T, td *datadriven.TestData) string {
			switch td.Cmd {
			case "apply":
				spec := queuestest.MustTree(t, td.Input)
				if d == nil {
					d = queues.NewDraftFrom(spec)
				} else {
					d.Apply(spec)
				}
			case "dynamic":
				namespace := ""
				if len(td.CmdArgs) > 1 {
					namespace = td.CmdArgs[1].Key
				}
				leaf, err := d.AddDynamic(word(t, td, 0), namespace)
				if err != nil {
					td.Fatalf(t, "%v", err)
				}
				d.ApplyQuotasTo(leaf, of)
				if changed := d.ApplyQuotas(of); len(changed) > 0 {
					td.Fatalf(t, "ApplyQuotasTo left out %v", changed)
				}
			case "quota":
				quotas[word(t, td, 0)] = namespaceQuota(t, td)
				d.ApplyQuotas(of)
			case "use":
				var n int
				if _, err := fmt.Sscan(word(t, td, 1), &n); err != nil {
					td.Fatalf(t, "%v", err)
				}
				d.Update(id(t, d, word(t, td, 0)), func(u *queues.Usage) { u.Applications += n })
			default:
				td.Fatalf(t, "unknown command %s", td.Cmd)
			}
			return queuestest.ShowSettings(d)
		})
	})
}

func word(t *testing.T, td *datadriven.TestData, i int) string {
	t.Helper()
	if i >= len(td.CmdArgs) {
		td.Fatalf(t, "%s needs more words", td.Cmd)
	}
	return td.CmdArgs[i].Key
}

func namespaceQuota(t *testing.T, td *datadriven.TestData) *queues.NamespaceQuota {
	t.Helper()
	if len(td.CmdArgs) <= 1 {
		return nil
	}
	words := []string{"root"}
	for _, arg := range td.CmdArgs[1:] {
		words = append(words, arg.String())
	}
	q := queuestest.MustTree(t, strings.Join(words, " ")).Root
	return &queues.NamespaceQuota{Guaranteed: q.Guaranteed, Max: q.Max, MaxApplications: q.MaxApplications}
}

// specSteps are specifications and, between them, dynamic queues and usage.
type specSteps struct {
	specs   []*config.Spec
	dynamic [][]string
}

func histories() *rapid.Generator[specSteps] {
	return rapid.Custom(func(t *rapid.T) specSteps {
		var h specSteps
		for range rapid.IntRange(1, 4).Draw(t, "reloads") {
			h.specs = append(h.specs, specs().Draw(t, "spec"))
			h.dynamic = append(h.dynamic, rapid.SliceOfN(rapid.SampledFrom([]string{
				"root.a.x", "root.a.a.x", "root.b.x.y", "root.x", "root.aa",
			}), 0, 3).Draw(t, "dynamic"))
		}
		return h
	})
}

// follow applies the specifications one after the other and checks the tree
// after each.
func follow(h specSteps, judge func(*queues.Draft, *config.Spec, map[string]bool) error) error {
	var d *queues.Draft
	dynamic := map[string]bool{} // queues that were made dynamically and never configured since
	for i, spec := range h.specs {
		ids := map[string]queues.ID{}
		if d == nil {
			d = queues.NewDraftFrom(spec)
		} else {
			for q := range d.All() {
				ids[q.Path] = q.ID
			}
			d.Apply(spec)
		}
		configured(spec.Root, func(q *config.Queue) { delete(dynamic, q.Path) })
		if err := judge(d, spec, dynamic); err != nil {
			return fmt.Errorf("reload %d: %w", i, err)
		}
		for path, id := range ids {
			if q := d.Queue(id); q == nil || q.Path != path {
				return fmt.Errorf("reload %d: %s lost its ID %d", i, path, id)
			}
		}
		for _, path := range h.dynamic[i] {
			if err := grow(d, path, dynamic); err != nil {
				return fmt.Errorf("after reload %d: %w", i, err)
			}
		}
	}
	return nil
}

func grow(d *queues.Draft, path string, dynamic map[string]bool) error {
	for above := path; ; above = above[:strings.LastIndex(above, ".")] {
		q, found := d.Find(above)
		if !found {
			continue
		}
		if q.Leaf && above != path {
			return nil // placement never asks for this
		}
		break
	}
	before := map[string]bool{}
	for q := range d.All() {
		before[q.Path] = true
	}
	leaf, err := d.AddDynamic(path, path)
	if err != nil {
		return err
	}
	if d.Queue(leaf).Path != path {
		return fmt.Errorf("AddDynamic(%s) made %s", path, d.Queue(leaf).Path)
	}
	for q := range d.All() {
		if !before[q.Path] {
			dynamic[q.Path] = true
			if q.Managed || q.Leaf != (q.Path == path) {
				return fmt.Errorf("AddDynamic(%s): %s managed %v, leaf %v", path, q.Path, q.Managed, q.Leaf)
			}
		}
	}
	return nil
}

func configured(q *config.Queue, f func(*config.Queue)) {
	f(q)
	for _, c := range q.Children {
		configured(c, f)
	}
}

// lawful compares the tree with the specification, written down queue by queue.
func lawful(d *queues.Draft, spec *config.Spec, dynamic map[string]bool) error {
	want := map[string]*config.Queue{}
	configured(spec.Root, func(q *config.Queue) { want[q.Path] = q })
	for q := range d.All() {
		if c := want[q.Path]; c != nil {
			delete(want, q.Path)
			if !q.Managed || q.State != queues.Active || q.Leaf != c.Leaf || !q.Max.Equal(c.Max) ||
				!q.Guaranteed.Equal(c.Guaranteed) || q.MaxApplications != c.MaxApplications ||
				q.Policies != c.Policies || q.Template != c.Template || !reflect.DeepEqual(q.Limits, c.Limits) {
				return fmt.Errorf("%s is not as configured: %+v", q.Path, *q.Settings)
			}
		} else if q.Managed == dynamic[q.Path] || (q.State == queues.Draining) != q.Managed {
			return fmt.Errorf("%s, not in the configuration: managed %v, %v", q.Path, q.Managed, q.State)
		}
		var pathMax resources.Limit
		limited := false
		for a := range d.Ancestors(q.ID) {
			pathMax, limited = pathMax.Min(a.Max), limited || len(a.Limits) > 0
		}
		if !q.PathMax.Equal(pathMax) || q.PathLimited != limited {
			return fmt.Errorf("%s: max of the path %v, limited %v, want %v, %v", q.Path, q.PathMax, q.PathLimited, pathMax, limited)
		}
	}
	for path := range want {
		return fmt.Errorf("%s is missing", path)
	}
	return nil
}

func TestApplyProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := follow(histories().Draw(t, "history"), lawful); err != nil {
			t.Fatal(err)
		}
	})
}

func TestApplyPropertyFindsAQueueThatDoesNotDrain(t *testing.T) {
	forgetful := func(d *queues.Draft, spec *config.Spec, dynamic map[string]bool) error {
		for q := range d.All() {
			if q.State == queues.Draining {
				s := *q.Settings
				s.State = queues.Active
				d.SetSettings(q.ID, s)
			}
		}
		return lawful(d, spec, dynamic)
	}
	for seed := range 50 {
		if follow(histories().Example(seed), forgetful) != nil {
			return
		}
	}
	t.Error("it is not found that removed queues stay active")
}
