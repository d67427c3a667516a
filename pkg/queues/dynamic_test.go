package queues_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

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

// TestDynamicQueuesAreCounted makes, configures, and removes queues at random.
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
