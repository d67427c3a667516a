package store

import (
	"fmt"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/model"
)

// TestManyRequestsHideNoPodBelowItsGuarantee: requests that no node can take, of other queues
// or below the same max, do not use up the bounds of the look at pods that go first (P2a).
func TestManyRequestsHideNoPodBelowItsGuarantee(t *testing.T) {
	for _, queue := range []string{"root.other", "root.p.h"} {
		t.Run(queue, func(t *testing.T) {
			s := New(queuestest.MustTree(t, `root
  other
  p max.vcore=1
    g guaranteed.vcore=1
    h guaranteed.vcore=1
    loose`), model.Options{})
			upsert := func(name, queue string, vcore int) {
				s.Upsert(newPod(name, queue, name, queuestest.Vector(fmt.Sprintf("pods=1 vcore=%d", vcore))), epoch)
				s.TakeActivations()
			}
			s.UpsertNode("n1", queuestest.Vector("vcore=10 pods=500"), epoch)
			s.Start(epoch)
			upsert("borrower", "root.p.loose", 1)
			upsert("owed", "root.p.g", 1)
			for i := range 300 {
				upsert(fmt.Sprintf("large-%03d", i), queue, 20+i)
			}
			s.Gate("borrower", epoch)
			if v := s.Assume("borrower", "n1", NoSnapshot, epoch); v.Reason.Code != reasons.InOrder {
				t.Errorf("the borrower is told %q, want that others go first", v.Reason.Text)
			}
		})
	}
}
