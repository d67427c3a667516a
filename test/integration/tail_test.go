package integration

import (
	"context"
	"fmt"
	"sync"
	"testing"

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
)

// tail follows the pods of a namespace: every change once, in order, and none missed. The
// API server ends a watch whenever it likes, above all one with a slow reader, as on a
// busy machine; client-go's watcher continues where that watch ended. A watch that cannot
// be continued is an error, because a test that looks for forbidden events would pass
// without having seen any.
type tail struct {
	pods typedv1.PodInterface
	from string // the resource version of the list
	note func(watch.Event)

	mu   sync.Mutex // guards the fields below
	seen map[types.UID]mark
}

// mark is how far a pod was followed.
type mark struct {
	version string
	gone    bool
}

// newTail follows pods from a list on.
func newTail(pods typedv1.PodInterface, list *corev1.PodList, note func(watch.Event)) *tail {
	t := &tail{pods: pods, from: list.ResourceVersion, note: note, seen: map[types.UID]mark{}}
	for i := range list.Items {
		t.seen[list.Items[i].UID] = mark{version: list.Items[i].ResourceVersion}
	}
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
		t.seen[p.UID] = mark{p.ResourceVersion, event.Type == watch.Deleted}
		t.mu.Unlock()
	}
	return nil
}

// behind describes the part of a list that was not recorded yet; empty if all of it was.
func (t *tail) behind(list *corev1.PodList) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	listed := map[types.UID]bool{}
	for i := range list.Items {
		p := &list.Items[i]
		listed[p.UID] = true
		seen, known := t.seen[p.UID]
		if !known {
			return "pod " + p.Name + " was never seen", nil
		}
		order, err := resourceversion.CompareResourceVersion(seen.version, p.ResourceVersion)
		if err != nil || order < 0 {
			return fmt.Sprintf("pod %s was seen as of version %s, and is at %s", p.Name, seen.version, p.ResourceVersion), err
		}
	}
	for uid, seen := range t.seen {
		if seen.gone || listed[uid] {
			continue
		}
		order, err := resourceversion.CompareResourceVersion(seen.version, list.ResourceVersion)
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

// follow records every change of the pods of the test from a list on. When the test ends,
// all changes must have been recorded.
func (e *env) follow(list *corev1.PodList, note func(watch.Event)) *tail {
	e.Helper()
	t := newTail(suite.client.CoreV1().Pods(e.ns), list, note)
	// Not the context of the test, which ends before the last changes are checked.
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := t.run(ctx); err != nil {
			e.Errorf("the test does not see any more what happens to the pods in namespace %s: %v", e.ns, err)
		}
	}()
	e.Cleanup(func() {
		defer func() {
			stop()
			<-done
		}()
		if !e.Failed() {
			t.catchUp(ctx, e)
		}
	})
	return t
}

// listAll lists the pods of the test's namespace.
func (e *env) listAll() *corev1.PodList {
	e.Helper()
	return expect.Get(suite.client.CoreV1().Pods(e.ns).List(e.Context(), metav1.ListOptions{}))(e)
}
