package integration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"

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

// keepHistory records the changes of the pods of the test from now on.
func (e *env) keepHistory() *history {
	e.Helper()
	c := &history{env: e, sights: map[types.UID][]sight{}}
	c.tail = e.follow(func(event watch.Event) {
		p := event.Object.(*corev1.Pod)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.sights[p.UID] = append(c.sights[p.UID], sight{time.Now(), p, event.Type == watch.Deleted})
	})
	return c
}

func (c *history) of(uid types.UID) []sight {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.sights[uid])
}

// first returns the first state of a pod that fulfils a condition; nil if there was none.
func (c *history) first(uid types.UID, check func(sight) bool) *sight {
	sights := c.of(uid)
	if i := slices.IndexFunc(sights, check); i >= 0 {
		return &sights[i]
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
	return c.firsts(func(s sight) bool { return s.pod.Spec.NodeName != "" }, of)
}

// evicted returns the pods of some groups that were evicted after they were bound, in the
// state and the order in which that was first seen.
func (c *history) evicted(groups ...string) []sight {
	return c.firsts(func(s sight) bool {
		return s.pod.Spec.NodeName != "" && (s.gone || s.pod.DeletionTimestamp != nil)
	}, groups...)
}

// firsts returns the first state of each pod of some groups that fulfils a condition, in
// the order in which they were seen.
func (c *history) firsts(check func(sight) bool, groups ...string) []sight {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []sight
	for _, sights := range c.sights {
		i := slices.IndexFunc(sights, check)
		if i >= 0 && slices.Contains(groups, sights[i].pod.Labels[group]) {
			out = append(out, sights[i])
		}
	}
	slices.SortFunc(out, func(a, b sight) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.pod.Name, b.pod.Name)) })
	return out
}

func (c *history) lastOf(uid types.UID) *corev1.Pod {
	if sights := c.of(uid); len(sights) > 0 {
		return sights[len(sights)-1].pod
	}
	return nil
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
	c.tail.catchUp(e.Context(), e)
	if seen := c.evicted(groups...); len(seen) != n {
		e.Fatalf("it does not stay so: %s; seen: %s", what, names(seen))
	}
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

// tail follows the pods of a namespace: every change once, in order, and none missed. The
// API server ends a watch whenever it likes, above all one with a slow reader, as on a
// busy machine; client-go's watcher continues where that watch ended. A watch that cannot
// be continued is an error, because a test that looks for forbidden events would pass
// without having seen any.
type tail struct {
	pods typedv1.PodInterface
	from string // the resource version of the list
	note func(watch.Event)

	mu    sync.Mutex           // guards the fields below
	last  string               // the resource version of the last change
	alive map[types.UID]string // those of the last changes of the pods that are there
}

// follow notes every change of the pods of the test from now on. When the test ends, all
// changes must have been noted.
func (e *env) follow(note func(watch.Event)) *tail {
	e.Helper()
	pods := suite.client.CoreV1().Pods(e.ns)
	list := expect.Get(pods.List(e.Context(), metav1.ListOptions{}))(e)
	t := &tail{pods: pods, from: list.ResourceVersion, note: note, last: list.ResourceVersion, alive: map[types.UID]string{}}
	for i := range list.Items {
		t.alive[list.Items[i].UID] = list.Items[i].ResourceVersion
	}
	// Not the context of the test, which ends before the last changes are checked.
	ctx, stop := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		err := t.run(ctx)
		expect.That(e, err == nil,
			"what happens to the pods in namespace %s is not seen any more: %v", e.ns, err)
	})
	e.Cleanup(func() {
		defer following.Wait()
		defer stop()
		if !e.Failed() {
			t.catchUp(ctx, e)
		}
	})
	return t
}

// run follows until the context ends. An error means that something may have been missed.
func (t *tail) run(ctx context.Context) error {
	w, err := toolswatch.NewRetryWatcherWithContext(ctx, t.from, &cache.ListWatch{WatchFuncWithContext: t.pods.Watch})
	if err != nil {
		return err
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		p, isPod := event.Object.(*corev1.Pod)
		if !isPod {
			return fmt.Errorf("the watch of pods cannot be continued: %w", apierrors.FromObject(event.Object))
		}
		t.note(event)
		t.mu.Lock()
		t.last, t.alive[p.UID] = p.ResourceVersion, p.ResourceVersion
		if event.Type == watch.Deleted {
			delete(t.alive, p.UID)
		}
		t.mu.Unlock()
	}
	return nil
}

// behind describes the part of a list that was not recorded yet; empty if all of it was.
func (t *tail) behind(list *corev1.PodList) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gone := maps.Clone(t.alive)
	for i := range list.Items {
		p := &list.Items[i]
		delete(gone, p.UID)
		order, err := resourceversion.CompareResourceVersion(t.last, p.ResourceVersion)
		if err != nil || order < 0 {
			return fmt.Sprintf("pod %s is at version %s, seen is %s", p.Name, p.ResourceVersion, t.last), err
		}
	}
	for uid, version := range gone {
		order, err := resourceversion.CompareResourceVersion(version, list.ResourceVersion)
		if err != nil || order <= 0 {
			return fmt.Sprintf("the end of pod %s was not seen", uid), err
		}
	}
	return "", nil
}

// catchUp waits until all changes up to now are recorded.
func (t *tail) catchUp(ctx context.Context, tb testing.TB) {
	tb.Helper()
	list := expect.Get(t.pods.List(ctx, metav1.ListOptions{}))(tb)
	eventually(tb, patience, "what happened to pods is seen", func() (bool, string) {
		missing := expect.Get(t.behind(list))(tb)
		return missing == "", missing
	})
}
