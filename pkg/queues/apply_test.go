package queues_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
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
				leaf := d.AddDynamic(td.CmdArgs[0].Key, namespace)
				d.ApplyQuotasTo(leaf, of)
				expect.Same(t, "what ApplyQuotasTo left out", 0, len(d.ApplyQuotas(of)))
			case "quota":
				quotas[td.CmdArgs[0].Key] = namespaceQuota(t, td)
				d.ApplyQuotas(of)
			case "use":
				n := expect.Get(strconv.Atoi(td.CmdArgs[1].Key))(t)
				d.Update(id(t, d, td.CmdArgs[0].Key), func(u *queues.Usage) { u.Applications += n })
			default:
				td.Fatalf(t, "unknown command %s", td.Cmd)
			}
			return queuestest.ShowSettings(d)
		})
	})
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

// counted checks that the limits admit as many queues as are missing from them, and no
// more, after the queues of the draft were counted anew.
func counted(d *queues.Draft) error {
	total, by := 0, map[string]int{}
	for q := range d.All() {
		if !q.Managed && q.Path != queues.RecoveryPath && !q.IsRoot() {
			total++
			by[q.MadeFor]++
		}
	}
	by["other"] += 0
	for namespace, n := range by {
		for l, want := range map[queues.DynamicLimits]reasons.Code{
			{Total: total + 2}: "", {PerNamespace: n + 2}: "",
			{Total: total + 1}: reasons.TooManyQueues, {PerNamespace: n + 1}: reasons.TooManyQueues,
		} {
			if why := l.Admit(d, "root.new.leaf", namespace); why.Code != want { // two queues would be made: root.new and its leaf
				return fmt.Errorf("%d queues, %d for %q; %+v: %v", total, n, namespace, l, why)
			}
		}
	}
	return nil
}

func TestDynamicQueuesAreCounted(t *testing.T) {
	specs := []*config.Spec{
		queuestest.MustTree(t, "root\n  a parent\n    b\n"), queuestest.MustTree(t, "root\n"),
		queuestest.MustTree(t, "root\n  a\n  c parent template.max.vcore=1\n"),
	}
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // not for secrets
		d := queues.NewDraftFrom(specs[0])
		for step := range 50 {
			what := r.IntN(4)
			switch what {
			case 0:
				d.Apply(specs[r.IntN(len(specs))])
			case 1, 2:
				path := "root"
				for range 1 + r.IntN(3) {
					path += "." + string(rune('a'+r.IntN(4)))
				}
				d.AddDynamic(path, string(rune('x'+r.IntN(3))))
				d.ApplyQuotas(func(namespace string) *queues.NamespaceQuota {
					return map[string]*queues.NamespaceQuota{"x": {MaxApplications: 1}}[namespace]
				})
			case 3:
				for q := range d.All() {
					if r.IntN(3) == 0 && d.Remove(q.ID) {
						break
					}
				}
			}
			if err := counted(d); err != nil {
				t.Fatalf("seed %d, step %d (%d): %v", seed, step, what, err)
			}
		}
	}
}
