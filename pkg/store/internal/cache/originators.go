package cache

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/ranking"
	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// Originators are the pods without which their application cannot run, such as a driver
// or a master. The living pods of an application are ranked, and those of the first rank
// present are its originators; see rank. Pods that changed for plans are noted until Take.
// Make one with NewOriginators.
type Originators struct {
	// owned counts, for each pod, the living pods that it owns, of any application or
	// none. It identifies originators among pods of no queue, which have no application.
	owned   map[types.UID]int
	find    func(types.UID) *Pod // returns nil for a pod that is not known
	changed []*Pod
}

// NewOriginators returns Originators without pods.
func NewOriginators(find func(types.UID) *Pod) Originators {
	return Originators{owned: map[types.UID]int{}, find: find}
}

// Take returns the pods that changed for plans since the last call: their originator
// status may have changed. A pod may be listed several times.
func (o *Originators) Take() []*Pod { return Take(&o.changed) }

// rank is the rank of a pod among the living pods of its application.
type rank uint8

// Of the pods that are ranked by age, only the oldest are originators, and only in an
// application that has other pods.
const (
	bySetting rank = iota
	byRole
	byOwning // it owns another living pod of its application
	byAge
	never
)

// rank is what the pod says, or what follows from its pods and its age.
func (p *Pod) rank() rank {
	switch {
	case p.Originator == objects.OriginatorYes:
		return bySetting
	case p.Originator == objects.OriginatorByRole:
		return byRole
	case p.Originator == objects.OriginatorNo:
		return never
	case p.app != nil && p.app.owned[p.UID] > 0:
		return byOwning
	}
	return byAge
}

// Place is the place of a pod among the living pods of its application.
func (p *Pod) Place() *int { return &p.age }

// rankedFirst orders pods: rank, creation, then UID.
func rankedFirst(a, b *Pod) bool {
	return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID)) < 0
}

// originatorKey identifies the originators of an application: the pods with this rank and, for
// byAge, with this second of creation. The API server stores creation times in seconds,
// and controllers create several pods within one.
type originatorKey struct {
	rank   rank
	second int64 // Unix seconds; 0 for other ranks than byAge
	alone  bool  // ranked by age and the only living pod
}

// originatorKey is the key of an application of which the pod is an originator.
func (p *Pod) originatorKey() originatorKey {
	l := originatorKey{rank: p.rank()}
	if l.rank == byAge {
		l.second = p.Created.Unix()
	}
	return l
}

// originatorKey is that of the first pod; of rank never without living pods.
func (a *App) originatorKey() originatorKey {
	first, ok := a.living.First()
	if !ok {
		return originatorKey{rank: never}
	}
	l := first.originatorKey()
	l.alone = l.rank == byAge && a.living.Len() == 1
	return l
}

// lives tells whether the pod is among the living pods of its application.
func (p *Pod) lives() bool { return p.age != ranking.Outside }

// Is tells whether a pod is an originator of its application. A pod of no queue has no
// application: it is an originator if its annotation or role says so, or if it owns any
// other pod.
func (o *Originators) Is(p *Pod) bool {
	if p.app == nil {
		r := p.rank()
		return r < byOwning || r == byAge && o.owned[p.UID] > 0
	}
	return p.lives() && p.rank() != never && p.originatorKey() == p.app.originatorKey()
}

// SetLives updates whether a pod of an application lives: it is known and not being deleted.
func (o *Originators) SetLives(p *Pod, lives bool) {
	a := p.app
	if p.lives() == lives {
		return
	}
	before := a.originatorKey()
	a.living.Update(p, lives)
	n := 1
	if !lives {
		n = -1
	}
	for _, owner := range p.Owners {
		o.owns(a, owner, n)
	}
	o.changed = append(o.changed, p)
	if after := a.originatorKey(); before != after {
		o.noteOriginators(a, before, after)
	}
}

// noteOriginators notes the pods of an application that were originators under one key, or
// are under the other. Living pods are sorted by key, so these are the first ones.
func (o *Originators) noteOriginators(a *App, before, after originatorKey) {
	last := before
	if last.rank == never || after.rank != never && compareKeys(after, before) > 0 {
		last = after
	}
	pods, all := a.living.Leading(func(p *Pod) bool { return compareKeys(p.originatorKey(), last) <= 0 }, mostNoted)
	if !all {
		pods = a.living.Items() // finding the first of many costs more than noting all
	}
	o.changed = append(o.changed, pods...)
}

// mostNoted is how many pods of a key are looked for before all living pods are noted.
const mostNoted = 64

// compareKeys orders keys as rankedFirst orders their pods.
func compareKeys(a, b originatorKey) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.second, b.second))
}

// owns adds n to the number of an application's pods that a pod owns.
func (o *Originators) owns(a *App, owner types.UID, n int) {
	if a.owned == nil {
		a.owned = map[types.UID]int{}
	}
	if a.owned[owner] += n; a.owned[owner] == 0 {
		delete(a.owned, owner)
	}
	if p := o.find(owner); p != nil && p.app == a && p.lives() {
		a.living.Update(p, true) // its rank may have changed
	}
	o.Owns(owner, n)
}

// Owns adds n to the number of living pods, of any application or none, that a pod owns.
func (o *Originators) Owns(owner types.UID, n int) {
	if o.owned[owner] += n; o.owned[owner] == 0 {
		delete(o.owned, owner)
	}
	if p := o.find(owner); p != nil {
		o.changed = append(o.changed, p)
	}
}

// count adds one for each owner.
func count(owned map[types.UID]int, owners []types.UID) {
	for _, owner := range owners {
		owned[owner]++
	}
}

// Check verifies the living pods of applications, and the numbers of owned pods in them,
// against all pods.
func (o *Originators) Check(pods iter.Seq[*Pod]) error {
	var errs []error
	living, owned := map[*App]int{}, map[*App]map[types.UID]int{}
	for p := range pods {
		if p.lives() != (p.app != nil && !p.Deleting) {
			errs = append(errs, fmt.Errorf("pod %s/%s counts as living: %v", p.Namespace, p.Name, p.lives()))
		}
		if p.app == nil {
			continue
		}
		if owned[p.app] == nil {
			owned[p.app] = map[types.UID]int{}
		}
		if p.lives() {
			living[p.app]++
			count(owned[p.app], p.Owners)
		}
	}
	for a, of := range owned {
		errs = append(errs, a.living.Check())
		if a.living.Len() != living[a] || !maps.Equal(a.owned, of) {
			errs = append(errs, fmt.Errorf("an application has %d living pods and owned ones %v, its pods sum up to %d and %v",
				a.living.Len(), a.owned, living[a], of))
		}
	}
	return errors.Join(errs...)
}
