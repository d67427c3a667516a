package store

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The quota check of a PodGroup covers all missing members; see podgroup.go.

// share is the request of the missing members of one application.
type share struct {
	app     *app
	request resources.Vector
}

// sharesOf sums requests of pods by application.
func sharesOf(chosen []*pod) []share {
	var out []share
	at := map[*app]int{}
	for _, p := range chosen {
		i, known := at[p.app]
		if !known {
			i = len(out)
			at[p.app] = i
			out = append(out, share{app: p.app})
		}
		out[i].request = out[i].request.Add(p.Request)
	}
	return out
}

// judgeTogether checks the quotas for the missing members: for each application as if the
// members of the applications before it were admitted.
func (s *Store) judgeTogether(g *podGroup) queues.Verdict {
	if g.Data.shares == nil {
		g.Data.shares = sharesOf(g.Next())
	}
	v, lent := queues.Granted, 0
	for i, part := range g.Data.shares {
		if v = s.cache.Books.CheckQuota(&part.app.cacheApp, part.request, queues.OnCommitted); !v.OK() {
			v.Reason.Text = fmt.Sprintf("PodGroup %s starts with %d more pods at once: %s", g.Name(), g.Missing(), v.Reason.Text)
			break
		}
		if i+1 < len(g.Data.shares) {
			s.cache.Books.Tentatively(&part.app.cacheApp, part.request, 1)
			lent++
		}
	}
	for _, part := range g.Data.shares[:lent] {
		s.cache.Books.Tentatively(&part.app.cacheApp, part.request, -1)
	}
	return v
}

// stillRefused checks again whether a queue has room for a group.
func (s *Store) stillRefused(g *podGroup) bool {
	at := g.Refusal().At
	if s.cache.Tree().Queue(at) == nil || g.Missing() <= 0 {
		return false
	}
	v := s.judgeTogether(g)
	if v.OK() {
		return false
	}
	s.pending.Groups.Refuse(g, v)
	return true
}
