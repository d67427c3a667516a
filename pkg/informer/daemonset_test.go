package informer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
)

// heard records the last version of each pod that the store got; deleted pods are
// removed.
type heard struct {
	*recorder

	pods map[types.UID]objects.Pod // guarded by recorder.mu
}

func (r *heard) Upsert(pod objects.Pod, now time.Time) {
	r.mu.Lock()
	r.pods[pod.UID] = pod
	r.mu.Unlock()
	r.recorder.Upsert(pod, now)
}

func (r *heard) Delete(uid types.UID, now time.Time) {
	r.mu.Lock()
	delete(r.pods, uid)
	r.mu.Unlock()
	r.recorder.Delete(uid, now)
}

// says returns how the store got the pod: "absent", "ordinary", "maybe" or "daemon".
func (r *heard) says(uid types.UID) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	pod, known := r.pods[uid]
	switch {
	case !known:
		return "absent"
	case pod.RequiredNode != "":
		return "daemon"
	case pod.MaybeDaemon:
		return "maybe"
	}
	return "ordinary"
}

// daemonFixture is a store fed from a fake API server, with Options that can be changed.
func daemonFixture(t *testing.T, client *fake.Clientset, change func(*Options)) (*fixture, *heard) {
	t.Helper()
	s := newFixture(t, client)
	r := &heard{recorder: s.store, pods: map[types.UID]objects.Pod{}}
	logger, log := logged(t)
	o := Options{
		ManagedProfiles: []string{profile}, Peer: func(name string) bool { return name == "peer" },
		Clock: clocktesting.NewFakePassiveClock(time.Now()), Logger: logger, Client: client,
		Namespace: func(*corev1.Namespace, []error) {},
	}
	if change != nil {
		change(&o)
	}
	s.factory, s.log = informers.NewSharedInformerFactory(client, 0), log
	s.watcher = expect.Get(Watch(r, s.factory, o))(t)
	return s, r
}

// daemonPod is a pod that names a DaemonSet as its owner and can run on one node only.
func daemonPod(uid types.UID, scheduler, node string, owners ...metav1.OwnerReference) *corev1.Pod {
	pod := requiring(term(in("n1")))
	pod.Namespace, pod.Name, pod.UID = "ns", string(uid), uid
	pod.Spec.SchedulerName, pod.Spec.NodeName, pod.OwnerReferences = scheduler, node, owners
	return pod
}

func ownedBy(version, kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: uid, Controller: ptr.To(true)}
}

func set(namespace, name string, uid types.UID) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uid}}
}

// beingDeleted is a DaemonSet that stays until its pods are gone.
func beingDeleted(s *appsv1.DaemonSet) *appsv1.DaemonSet {
	s.DeletionTimestamp, s.Finalizers = &metav1.Time{Time: time.Now()}, []string{metav1.FinalizerDeleteDependents}
	return s
}

func (r *heard) eventually(t *testing.T, uid types.UID, want string) {
	t.Helper()
	plugintest.Eventually(t, func() error {
		if got := r.says(uid); got != want {
			return fmt.Errorf("pod %s is told of as %s, want %s", uid, got, want)
		}
		return nil
	})
}

// TestOwnersAreVerified: a pod belongs to a DaemonSet if one with the name and UID of its
// controller exists in its namespace and is not being deleted.
func TestOwnersAreVerified(t *testing.T) {
	mine := ownedBy("apps/v1", "DaemonSet", "agent", "u1")
	notController := mine
	notController.Controller = nil
	refuses := mine
	refuses.Controller = ptr.To(false)
	many := slices.Repeat([]metav1.OwnerReference{ownedBy("v1", "Pod", "o", "o")}, maxOwners)
	for i := range many {
		many[i].Controller = nil
	}
	for _, c := range []struct {
		name, want, claimed string
		owners              []metav1.OwnerReference
	}{
		{"its DaemonSet", "daemon", "daemon", []metav1.OwnerReference{mine}},
		{"not as controller", "ordinary", "daemon", []metav1.OwnerReference{notController}},
		{"said not to be the controller", "ordinary", "daemon", []metav1.OwnerReference{refuses}},
		{"beside another controller", "ordinary", "daemon", []metav1.OwnerReference{ownedBy("apps/v1", "ReplicaSet", "r", "r"), notController}},
		{"beside other owners", "daemon", "daemon", []metav1.OwnerReference{many[0], mine}},
		{"after too many owners", "daemon", "ordinary", append(many, mine)},
		{"a DaemonSet that is being deleted", "ordinary", "daemon", []metav1.OwnerReference{ownedBy("apps/v1", "DaemonSet", "leaves", "u3")}},
		{"another UID", "ordinary", "daemon", []metav1.OwnerReference{ownedBy("apps/v1", "DaemonSet", "agent", "u2")}},
		{"another name", "ordinary", "daemon", []metav1.OwnerReference{ownedBy("apps/v1", "DaemonSet", "agents", "u1")}},
		{"of another namespace", "ordinary", "daemon", []metav1.OwnerReference{ownedBy("apps/v1", "DaemonSet", "proxy", "u9")}},
		{"a made-up group", "ordinary", "daemon", []metav1.OwnerReference{ownedBy("fake.example/v1", "DaemonSet", "agent", "u1")}},
		{"an old version", "ordinary", "daemon", []metav1.OwnerReference{ownedBy("extensions/v1beta1", "DaemonSet", "agent", "u1")}},
		{"another kind", "ordinary", "ordinary", []metav1.OwnerReference{ownedBy("apps/v1", "ReplicaSet", "agent", "u1")}},
		{"nothing", "ordinary", "ordinary", nil},
	} {
		for _, claims := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, claimed %t", c.name, claims), func(t *testing.T) {
				client := fake.NewClientset(set("ns", "agent", "u1"), beingDeleted(set("ns", "leaves", "u3")), set("kube-system", "proxy", "u9"),
					daemonPod("p", profile, "", c.owners...), daemonPod("q", profile, "n1", c.owners...))
				s, r := daemonFixture(t, client, func(o *Options) { o.ClaimedOwners = claims })
				s.run(t)
				plugintest.Eventually(t, synced(s))
				want := c.want
				if claims {
					want = c.claimed
				}
				for _, uid := range []types.UID{"p", "q"} {
					expect.Same(t, "pod "+string(uid)+" is told of as", want, r.says(uid))
				}
				asked := requests(client, "list", "daemonsets") + requests(client, "watch", "daemonsets")
				if claims == (asked > 0) {
					t.Errorf("with claimed owners %t, DaemonSets are read: %t", claims, !claims)
				}
			})
		}
	}
}

// TestDaemonSetSeenLater: the event of a pod may come before that of its DaemonSet. The
// DaemonSet may be deleted, or created again with its name, while the pod stays.
func TestDaemonSetSeenLater(t *testing.T) {
	client := fake.NewClientset()
	s, r := daemonFixture(t, client, nil)
	s.run(t)
	plugintest.Eventually(t, synced(s))
	plugintest.Eventually(t, func() error { return watched(client, "pods", "daemonsets") })
	ctx, sets := t.Context(), client.AppsV1().DaemonSets("ns")
	mine := ownedBy("apps/v1", "DaemonSet", "agent", "u1")
	pods := []*corev1.Pod{daemonPod("waits", profile, "", mine), daemonPod("runs", profile, "n1", mine), daemonPod("peer", "peer", "", mine), daemonPod("gone", profile, "", mine)}
	create := func(pod *corev1.Pod) {
		t.Helper()
		expect.Get(client.CoreV1().Pods("ns").Create(ctx, pod, metav1.CreateOptions{}))(t)
	}
	for _, pod := range pods {
		create(pod)
	}
	all := func(what string) {
		t.Helper()
		r.eventually(t, "waits", what)
		r.eventually(t, "runs", what)
		r.eventually(t, "peer", what)
	}
	all("ordinary")
	r.eventually(t, "gone", "ordinary")
	expect.OK(t, client.CoreV1().Pods("ns").Delete(ctx, "gone", metav1.DeleteOptions{}))
	r.eventually(t, "gone", "absent")

	make := func(uid types.UID) {
		t.Helper()
		expect.Get(sets.Create(ctx, set("ns", "agent", uid), metav1.CreateOptions{}))(t)
	}
	remove := func() {
		t.Helper()
		expect.OK(t, sets.Delete(ctx, "agent", metav1.DeleteOptions{}))
	}
	make("u1")
	all("daemon")
	expect.Get(sets.Update(ctx, beingDeleted(set("ns", "agent", "u1")), metav1.UpdateOptions{}))(t)
	all("ordinary")
	remove()
	make("u1")
	all("daemon")
	expect.Same(t, "a pod that is gone is told of as", "absent", r.says("gone"))
	remove()
	all("ordinary")
	make("u2")
	create(daemonPod("next", "peer", "", ownedBy("apps/v1", "DaemonSet", "agent", "u2")))
	r.eventually(t, "next", "daemon")
	all("ordinary")

	// The pod is deleted at the same time as its DaemonSet.
	remove()
	expect.OK(t, client.CoreV1().Pods("ns").Delete(ctx, "next", metav1.DeleteOptions{}))
	r.eventually(t, "next", "absent")
}

// TestDaemonSetsMayBeForbidden: if DaemonSets cannot be read, that is logged and the
// scheduler starts. A pod that names one then neither preempts nor is a victim. Once they
// can be read, each pod is treated by its real owner.
func TestDaemonSetsMayBeForbidden(t *testing.T) {
	client := fake.NewClientset(set("ns", "agent", "u1"),
		daemonPod("real", profile, "n1", ownedBy("apps/v1", "DaemonSet", "agent", "u1")),
		daemonPod("forged", profile, "n1", ownedBy("apps/v1", "DaemonSet", "none", "u7")),
		daemonPod("other", profile, "n1", ownedBy("fake.example/v1", "DaemonSet", "agent", "u1")))
	var allowed atomic.Bool
	client.PrependReactor("list", "daemonsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return !allowed.Load(), nil, apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "daemonsets"}, "", errors.New("no role"))
	})
	s, r := daemonFixture(t, client, nil)
	s.run(t)
	plugintest.Eventually(t, synced(s))
	r.eventually(t, "real", "maybe")
	r.eventually(t, "forged", "maybe")
	r.eventually(t, "other", "ordinary")
	for _, want := range []string{"DaemonSets cannot be read", "daemonsets of API group apps", "manifests/rbac/second-scheduler.yaml", "daemonSetOwner: Claimed"} {
		if !strings.Contains(s.log(), want) {
			t.Errorf("the log lacks %q: %s", want, s.log())
		}
	}
	allowed.Store(true)
	r.eventually(t, "real", "daemon")
	r.eventually(t, "forged", "ordinary")
}
