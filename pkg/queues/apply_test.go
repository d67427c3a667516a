package queues_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
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
				leaf := d.AddDynamic(word(t, td, 0), namespace)
				d.ApplyQuotasTo(leaf, of)
				if changed := d.ApplyQuotas(of); len(changed) > 0 {
					td.Fatalf(t, "ApplyQuotasTo left out %v", changed)
				}
			case "quota":
				quotas[word(t, td, 0)] = namespaceQuota(t, td)
				d.ApplyQuotas(of)
			case "use":
				n := expect.Get(strconv.Atoi(word(t, td, 1)))(t)
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
