package store

import (
	"cmp"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
)

// Originators are the pods without which their application cannot run, such as a driver
// or a master. The living pods of an application are ranked, and those of the first rank
// present are its originators; see rank.

// rank is the rank of a pod among the living pods of its application.
type rank uint8

// Of the pods that are ranked by age, only the oldest are originators, and only in an
// application that has other pods.
const (
	bySaying rank = iota
	byRole
	byOwning // it owns another living pod of its application
	byAge
	never
)

func (p *pod) rank() rank {
	switch {
	case p.Originator == objects.OriginatorYes:
		return bySaying
	case p.Originator == objects.OriginatorByRole:
		return byRole
	case p.Originator == objects.OriginatorNo:
		return never
	case p.app != nil && p.app.owned[p.UID] > 0:
		return byOwning
	}
	return byAge
}

// seniority is the position of a pod among the living pods of its application.
type seniority struct {
	pod *pod
	at  int
}

// Place implements the interface of package ranking.
func (e *seniority) Place() *int { return &e.at }

// elderFirst orders pods: rank, creation, then UID.
func elderFirst(a, b *seniority) bool {
	if c := cmp.Compare(a.pod.rank(), b.pod.rank()); c != 0 {
		return c < 0
	}
	if c := a.pod.Created.Compare(b.pod.Created); c != 0 {
		return c < 0
	}
	return a.pod.UID < b.pod.UID
}

// lead identifies the originators of an application: the pods with this rank and, for
// byAge, with this second of creation. The API server stores creation times in seconds,
// and controllers create several pods within one.
type lead struct {
	rank   rank
	second int64
	alone  bool // ranked by age and the only living pod
}

func (p *pod) lead() lead {
	l := lead{rank: p.rank()}
	if l.rank == byAge {
		l.second = p.Created.Unix()
	}
	return l
}

func (a *app) lead() lead {
	first, ok := a.living.First()
	if !ok {
		return lead{rank: never}
	}
	l := first.pod.lead()
	l.alone = l.rank == byAge && a.living.Len() == 1
	return l
}

// originator tells whether a pod is an originator of its application. A pod of no queue
// has no application: it is an originator if its annotation or role says so, or if it
// owns any other pod.
func (s *Store) originator(p *pod) bool {
	if p.app == nil {
		r := p.rank()
		return r < byOwning || r == byAge && s.owned[p.UID] > 0
	}
	return p.elder.at != ranking.Outside && p.rank() != never && p.lead() == p.app.lead()
}

// live updates whether a pod of an application lives: it is known and not being deleted.
func (s *Store) live(p *pod, lives bool) {
	a := p.app
	if (p.elder.at != ranking.Outside) == lives {
		return
	}
	before := a.lead()
	a.living.Update(&p.elder, lives)
	n := 1
	if !lives {
		n = -1
	}
	for _, owner := range p.Owners {
		s.owns(a, owner, n)
	}
	s.touchPod(p)
	if after := a.lead(); before != after {
		s.touchLeads(a, before, after)
	}
}

// touchLeads notes that the pods of an application that belong to either lead changed for
// plans.
func (s *Store) touchLeads(a *app, before, after lead) {
	last := before
	if last.rank == never || after.rank != never && compareLeads(after, before) > 0 {
		last = after
	}
	leads, all := a.living.Leading(func(e *seniority) bool { return compareLeads(e.pod.lead(), last) <= 0 }, mostLeads)
	if !all {
		leads = a.living.Items() // finding the first of many costs more than touching all
	}
	for _, e := range leads {
		s.touchPod(e.pod)
	}
}

const mostLeads = 64

func compareLeads(a, b lead) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.second, b.second))
}

// owns adds n to the number of an application's pods that a pod owns.
func (s *Store) owns(a *app, owner types.UID, n int) {
	if a.owned == nil {
		a.owned = map[types.UID]int{}
	}
	if a.owned[owner] += n; a.owned[owner] == 0 {
		delete(a.owned, owner)
	}
	if o := s.pods[owner]; o != nil && o.app == a && o.elder.at != ranking.Outside {
		a.living.Update(&o.elder, true) // its rank may have changed
	}
	s.ownsAny(owner, n)
}

// ownsAny adds n to the number of living pods, of any application or none, that a pod
// owns.
func (s *Store) ownsAny(owner types.UID, n int) {
	if s.owned[owner] += n; s.owned[owner] == 0 {
		delete(s.owned, owner)
	}
	if o := s.pods[owner]; o != nil {
		s.touchPod(o)
	}
}
