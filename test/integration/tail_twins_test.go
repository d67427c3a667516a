package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// bare is a test without a scheduler, on the shared nodes.
func bare(t *testing.T) *env {
	t.Helper()
	id := fmt.Sprintf("t%02d", tests.Add(1))
	e := &env{T: t, id: id, ns: id, nodePool: shared}
	e.namespace(e.ns, nil)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		e.removePods(ctx)
		e.ok(e.removeRest(ctx))
	})
	return e
}

// noted is what a tail recorded: the changes of each pod, in order.
type noted struct {
	mu    sync.Mutex
	lines map[string][]string // by the pod's name
}

func (n *noted) note(event watch.Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := event.Object.(*corev1.Pod)
	n.lines[p.Name] = append(n.lines[p.Name], string(event.Type)+" "+p.ResourceVersion)
}

func (n *noted) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return fmt.Sprint(n.lines)
}

// restless is a source with watches that the API server ends after every second event, or
// after a second without one.
type restless struct{ podSource }

func (r restless) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	second, n := int64(1), 0
	o.TimeoutSeconds = &second
	w, err := r.podSource.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
		if n++; n == 2 {
			w.Stop()
		}
		return event, true
	}), nil
}

// deaf is a source that drops the events of pods of one name.
type deaf struct {
	podSource
	name string
}

func (d deaf) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := d.podSource.Watch(ctx, o)
	if err != nil {
		return nil, err
	}
	return watch.Filter(w, func(event watch.Event) (watch.Event, bool) {
		p, isPod := event.Object.(*corev1.Pod)
		return event, !isPod || p.Name != d.name
	}), nil
}

// TestTailOfWatchesThatEnd checks that nothing is missed when watches end, and that a gap
// is noticed.
func TestTailOfWatchesThatEnd(t *testing.T) {
	e := bare(t)
	api := suite.client.CoreV1().Pods(e.ns)
	list := e.listAll()
	steady, torn, partial := &noted{lines: map[string][]string{}}, &noted{lines: map[string][]string{}}, &noted{lines: map[string][]string{}}
	calm := e.follow(list, steady.note)
	broken := newTail(restless{api}, list, torn.note)
	lacking := newTail(deaf{api, "p-3"}, list, partial.note)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, x := range []*tail{broken, lacking} {
		running.Go(func() {
			if err := x.run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	pods := e.create("p", 6, requests("cpu", "1m"), ofProfile("nobody"))
	eventually(t, patience, "the API server has ended a watch that was idle", func() (bool, string) {
		n := broken.endings()
		return n >= 5, fmt.Sprint(n)
	})
	for _, p := range pods {
		e.patch(p, `{"metadata":{"annotations":{"integration/touched":"yes"}}}`)
	}
	e.delete(pods[0])
	e.delete(pods[3])
	e.awaitGone(pods[0])
	e.awaitGone(pods[3])
	now := e.listAll()
	for _, x := range []*tail{calm, broken} {
		x.catchUp(t.Context(), t)
	}
	if got, want := torn.String(), steady.String(); got != want {
		t.Errorf("by watches that end:\n%s\nby one that does not:\n%s", got, want)
	}
	if n := len(steady.lines["p-0"]); n < 3 {
		t.Errorf("of a pod that was made, changed and deleted %d changes were seen", n)
	}
	t.Logf("%d watches ended", broken.endings())

	missing := func(list *corev1.PodList) string {
		text, err := lacking.behind(list)
		e.ok(err)
		return text
	}
	p5 := slices.IndexFunc(now.Items, func(p corev1.Pod) bool { return p.Name == "p-5" })
	eventually(t, patience, "all but one pod is seen by who does not hear of it", func() (bool, string) {
		text := missing(&corev1.PodList{ListMeta: list.ListMeta, Items: now.Items[p5 : p5+1]})
		return text == "", text
	})
	p3 := &corev1.PodList{ListMeta: list.ListMeta, Items: []corev1.Pod{*pods[3]}}
	if text := missing(p3); !strings.Contains(text, "p-3 was never seen") {
		t.Errorf("a pod was never heard of, and it says %q", text)
	}
	lacking.seen[pods[3].UID] = mark{version: pods[3].ResourceVersion}
	if text := missing(now); !strings.Contains(text, "the end of pod "+string(pods[3].UID)) {
		t.Errorf("the end of a pod was not heard of, and it says %q", text)
	}
	p3.Items[0].ResourceVersion = now.ResourceVersion
	if text := missing(p3); !strings.Contains(text, "as of version "+pods[3].ResourceVersion) {
		t.Errorf("a change of a pod was not heard of, and it says %q", text)
	}
}

// forgetful is a source that has forgotten the requested version, and says so in the
// answer or in the stream.
type forgetful struct {
	podSource
	inStream bool
}

func (f forgetful) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	expired := apierrors.NewResourceExpired("too old resource version")
	if !f.inStream {
		return nil, expired
	}
	w := watch.NewFakeWithChanSize(1, false)
	w.Error(&expired.ErrStatus)
	return w, nil
}

// TestTailWithAGap checks that a tail that cannot continue reports that at once.
func TestTailWithAGap(t *testing.T) {
	for _, inStream := range []bool{false, true} {
		list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		err := newTail(forgetful{inStream: inStream}, list, func(watch.Event) {}).run(ctx)
		cancel()
		if !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "after version 7 is not to be had any more") {
			t.Errorf("a tail from a version that nobody knows (in the stream: %t) ends with %v", inStream, err)
		}
	}
}
