package informer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"
)

// says returns how the store got the pod: "absent", "ordinary", "maybe" or "daemon".
func (r *recorder) says(uid types.UID) string {
	told, known := r.pods.Load(uid)
	if !known {
		return "absent"
	}
	switch pod := told.(objects.Pod); {
	case pod.RequiredNode != "":
		return "daemon"
	case pod.MaybeDaemon:
		return "maybe"
	}
	return "ordinary"
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

// eventually waits until the store has got the pods in a way.
func (r *recorder) eventually(t *testing.T, want string, uids ...types.UID) {
	t.Helper()
	for _, uid := range uids {
		plugintest.Becomes(t, "pod "+string(uid)+" is told of as", want, func() string { return r.says(uid) })
	}
}

// TestOwnersAreVerified: a pod belongs to a DaemonSet if one with the name and UID of its
// controller exists in its namespace and is not being deleted.
func TestOwnersAreVerified(t *testing.T) {
	mine := ownedBy("apps/v1", "DaemonSet", "agent", "u1")
	notController, refuses := mine, mine
	notController.Controller, refuses.Controller = nil, ptr.To(false)
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
				s := newFixture(t, client, func(o *Options) { o.ClaimedOwners = claims })
				s.run(t)
				s.synced(t)
				want := map[bool]string{false: c.want, true: c.claimed}[claims]
				expect.Same(t, "the pods are told of as", []string{want, want}, []string{s.store.says("p"), s.store.says("q")})
				asked := requests(client, "list", "daemonsets") + requests(client, "watch", "daemonsets")
				expect.Same(t, "DaemonSets are read", !claims, asked > 0)
			})
		}
	}
}

// TestDaemonSetSeenLater: the event of a pod may come before that of its DaemonSet. The
// DaemonSet may be deleted, or created again with its name, while the pod stays.
func TestDaemonSetSeenLater(t *testing.T) {
	client := fake.NewClientset()
	isPeer := func(name string) bool { return name == "peer" }
	s := newFixture(t, client, func(o *Options) { o.Peer = isPeer })
	s.start(t)
	r := s.store
	ctx, sets, pods := t.Context(), client.AppsV1().DaemonSets("ns"), client.CoreV1().Pods("ns")
	mine := ownedBy("apps/v1", "DaemonSet", "agent", "u1")
	all := []types.UID{"waits", "runs", "peer"}
	send(t, pods.Create, daemonPod("waits", profile, "", mine))
	send(t, pods.Create, daemonPod("runs", profile, "n1", mine))
	send(t, pods.Create, daemonPod("peer", "peer", "", mine))
	send(t, pods.Create, daemonPod("gone", profile, "", mine))
	r.eventually(t, "ordinary", append(all, "gone")...)
	expect.OK(t, pods.Delete(ctx, "gone", metav1.DeleteOptions{}))
	r.eventually(t, "absent", "gone")

	send(t, sets.Create, set("ns", "agent", "u1"))
	r.eventually(t, "daemon", all...)
	send(t, sets.Update, beingDeleted(set("ns", "agent", "u1")))
	r.eventually(t, "ordinary", all...)
	expect.OK(t, sets.Delete(ctx, "agent", metav1.DeleteOptions{}))
	send(t, sets.Create, set("ns", "agent", "u1"))
	r.eventually(t, "daemon", all...)
	expect.Same(t, "a pod that is gone is told of as", "absent", r.says("gone"))
	expect.OK(t, sets.Delete(ctx, "agent", metav1.DeleteOptions{}))
	r.eventually(t, "ordinary", all...)
	send(t, sets.Create, set("ns", "agent", "u2"))
	send(t, pods.Create, daemonPod("next", "peer", "", ownedBy("apps/v1", "DaemonSet", "agent", "u2")))
	r.eventually(t, "daemon", "next")
	r.eventually(t, "ordinary", all...)

	// The pod is deleted at the same time as its DaemonSet.
	expect.OK(t, sets.Delete(ctx, "agent", metav1.DeleteOptions{}))
	expect.OK(t, pods.Delete(ctx, "next", metav1.DeleteOptions{}))
	r.eventually(t, "absent", "next")
}

// TestDaemonSetsMayBeForbidden: if DaemonSets cannot be read, that is logged and the
// scheduler starts. A pod that names one then neither preempts nor is a victim. Once they
// can be read, each pod is treated by its real owner.
func TestDaemonSetsMayBeForbidden(t *testing.T) {
	client := fake.NewClientset(set("ns", "agent", "u1"),
		daemonPod("real", profile, "n1", ownedBy("apps/v1", "DaemonSet", "agent", "u1")),
		daemonPod("forged", profile, "n1", ownedBy("apps/v1", "DaemonSet", "none", "u7")),
		daemonPod("other", profile, "n1", ownedBy("fake.example/v1", "DaemonSet", "agent", "u1")))
	refusal := apierrors.NewForbidden(appsv1.Resource("daemonsets"), "", errors.New("no role"))
	allowed := failing(client, "daemonsets", refusal)
	s := newFixture(t, client)
	s.run(t)
	s.synced(t)
	r := s.store
	r.eventually(t, "maybe", "real", "forged")
	r.eventually(t, "ordinary", "other")
	expect.Says(t, s.log(), "DaemonSets cannot be read", "daemonsets of API group apps",
		"manifests/rbac/second-scheduler.yaml", "daemonSetOwner: Claimed")
	allowed.Store(true)
	r.eventually(t, "daemon", "real")
	r.eventually(t, "ordinary", "forged")
}
