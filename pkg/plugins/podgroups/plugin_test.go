package podgroups

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned/fake"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
)

// listener writes down what a store is told.
type listener struct {
	mu   sync.Mutex
	told []string
}

func (l *listener) SetPodGroup(namespace, name string, minMember int, _ time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, fmt.Sprintf("%s/%s %d", namespace, name, minMember))
}

// awaitTold waits until the last thing it was told is this.
func (l *listener) awaitTold(t *testing.T, want string) {
	t.Helper()
	plugintest.Eventually(t, func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		if n := len(l.told); n == 0 || l.told[n-1] != want {
			return fmt.Errorf("told %v, want %s last", l.told, want)
		}
		return nil
	})
}

func podGroup(name string, minMember int32) *v1alpha1.PodGroup {
	return &v1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: v1alpha1.PodGroupSpec{MinMember: minMember}}
}

// TestPodGroupsAreFollowed: PodGroups that exist, that come, change and go.
func TestPodGroupsAreFollowed(t *testing.T) {
	// The fake does not end a list that is watched.
	featurestesting.SetFeatureDuringTest(t, features.WatchListClient, false)
	ctx, stop := context.WithCancel(t.Context())
	client := fake.NewSimpleClientset(podGroup("there", 3)) // its successor lacks the schema of PodGroups
	l := &listener{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx, client, l, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	}()
	defer func() {
		stop()
		<-ended
	}()
	l.awaitTold(t, "ns/there 3")
	groups := client.SchedulingV1alpha1().PodGroups("ns")
	expect.Get(groups.Create(ctx, podGroup("new", 2), metav1.CreateOptions{}))(t)
	l.awaitTold(t, "ns/new 2")
	expect.Get(groups.Update(ctx, podGroup("new", 5), metav1.UpdateOptions{}))(t)
	l.awaitTold(t, "ns/new 5")
	expect.OK(t, groups.Delete(ctx, "there", metav1.DeleteOptions{}))
	l.awaitTold(t, "ns/there 0")
}

// TestDeleteThatWasMissed: the informer has the last state only.
func TestDeleteThatWasMissed(t *testing.T) {
	l := &listener{}
	h := handler(l, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "ns/lost", Obj: podGroup("lost", 3)})
	h.OnDelete("no PodGroup")
	h.OnAdd("no PodGroup", false)
	if len(l.told) != 1 || l.told[0] != "ns/lost 0" {
		t.Errorf("told %v", l.told)
	}
}
