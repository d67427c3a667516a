package integration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// held is the condition by which an asker holds its node.
const held = corev1.PodConditionType(reservations.HeldCondition)

// sight is the state of a pod at a moment.
type sight struct {
	at   time.Time
	pod  *corev1.Pod
	gone bool
}

// history is the history of the pods of a namespace, recorded by one tail.
type history struct {
	env  *env
	tail *tail
	mu   sync.Mutex
	// sights of each pod, the first one first.
	sights map[types.UID][]sight
}

// keepHistory records the changes of the pods of the test from now on. It is called
// before the first pod.
func (e *env) keepHistory() *history {
	e.Helper()
	c := &history{env: e, sights: map[types.UID][]sight{}}
	c.tail = e.follow(e.listAll(), func(event watch.Event) {
		p := event.Object.(*corev1.Pod)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sights[p.UID] = append(c.sights[p.UID], sight{time.Now(), p, event.Type == watch.Deleted})
	})
	return c
}

// of returns the states of one pod.
func (c *history) of(uid types.UID) []sight {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sights[uid])
}

// first returns the first state of a pod that fulfils a condition; nil if there was none.
func (c *history) first(uid types.UID, check func(sight) bool) *sight {
	for _, s := range c.of(uid) {
		if check(s) {
			return &s
		}
	}
	return nil
}

// boundAt tells where and when a pod was bound; a zero time if it was not.
func (c *history) boundAt(uid types.UID) (node string, at time.Time) {
	if s := c.first(uid, func(s sight) bool { return s.pod.Spec.NodeName != "" }); s != nil {
		return s.pod.Spec.NodeName, s.at
	}
	return "", time.Time{}
}

// boundByNow returns the pods of a group that were bound up to now, including deleted
// ones, in the state in which that was first seen.
func (c *history) boundByNow(of string) []sight {
	c.env.Helper()
	c.tail.catchUp(c.env.Context(), c.env)
	return c.bound(of)
}

// bound is boundByNow, up to the last change that was seen.
func (c *history) bound(of string) []sight {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []sight
	for _, sights := range c.sights {
		i := slices.IndexFunc(sights, func(s sight) bool { return s.pod.Spec.NodeName != "" })
		if i >= 0 && sights[i].pod.Labels[group] == of {
			out = append(out, sights[i])
		}
	}
	slices.SortFunc(out, func(a, b sight) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.pod.Name, b.pod.Name)) })
	return out
}

// evicted returns the pods of some groups that were evicted after they were bound, in the
// state and the order in which that was first seen.
func (c *history) evicted(groups ...string) []sight {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []sight
	for _, sights := range c.sights {
		i := slices.IndexFunc(sights, func(s sight) bool { return s.gone || s.pod.DeletionTimestamp != nil })
		if i >= 0 && sights[i].pod.Spec.NodeName != "" && slices.Contains(groups, sights[i].pod.Labels[group]) {
			out = append(out, sights[i])
		}
	}
	slices.SortFunc(out, func(a, b sight) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.pod.Name, b.pod.Name)) })
	return out
}

// lastOf returns the last state of a pod.
func (c *history) lastOf(uid types.UID) *corev1.Pod {
	sights := c.of(uid)
	if len(sights) == 0 {
		return nil
	}
	return sights[len(sights)-1].pod
}

// claim returns the claim in an asker's condition, and when it was first seen.
func (c *history) claim(uid types.UID) (claim reservations.Claim, at time.Time) {
	c.env.Helper()
	s := c.first(uid, func(s sight) bool { return conditionIs(s.pod, held, corev1.ConditionTrue) })
	if s == nil {
		return claim, at
	}
	claim = expect.Get(reservations.ParseClaim(conditionOf(s.pod, held).Message))(c.env)
	return claim, s.at
}

// expectEvicted waits until so many pods of a group are evicted, and fails at once if
// there are more.
func (c *history) expectEvicted(of string, n int) []sight {
	e := c.env
	e.Helper()
	eventually(e, patience, fmt.Sprintf("%d pods of group %s are evicted", n, of), func() (bool, string) {
		seen := c.evicted(of)
		if len(seen) > n {
			e.Fatalf("%d pods of group %s are evicted, want %d: %s", len(seen), of, n, names(seen))
		}
		return len(seen) == n, names(seen)
	})
	return c.evicted(of)
}

// expectNoMore checks for a while that n pods of some groups together are evicted, and
// once more when all changes of that time were seen.
func (c *history) expectNoMore(period time.Duration, n int, groups ...string) {
	e := c.env
	e.Helper()
	what := fmt.Sprintf("of %s %d pods are evicted", strings.Join(groups, ", "), n)
	throughout(e, period, what, func() (bool, string) {
		seen := c.evicted(groups...)
		return len(seen) == n, names(seen)
	})
	if seen := c.evictedByNow(groups...); len(seen) != n {
		e.Fatalf("it does not stay so: %s; seen: %s", what, names(seen))
	}
}

// evictedByNow is evicted, up to now.
func (c *history) evictedByNow(groups ...string) []sight {
	c.env.Helper()
	c.tail.catchUp(c.env.Context(), c.env)
	return c.evicted(groups...)
}

func names(sights []sight) string {
	var list []string
	for _, s := range sights {
		list = append(list, s.pod.Name)
	}
	return strings.Join(list, " ")
}

// conditionOf returns a condition of a pod; nil if it has none of that type.
func conditionOf(p *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}

func conditionIs(p *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus) bool {
	c := conditionOf(p, kind)
	return c != nil && c.Status == status
}

// awaitPlaced waits until an asker is bound and its hold has ended.
func (c *history) awaitPlaced(asker *corev1.Pod) *corev1.Pod {
	c.env.Helper()
	return c.env.awaitPod(asker, "is bound and holds no node", func(p *corev1.Pod) bool {
		return p.Spec.NodeName != "" && conditionIs(p, held, corev1.ConditionFalse)
	})
}
