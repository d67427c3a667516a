package integration

import (
	"context"
	"fmt"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	clientrest "k8s.io/client-go/rest"
)

// markPaddock is the label of the pods of an installation.
const markPaddock = "label app.kubernetes.io/name"

// markMirror is the annotation of pods that a kubelet has from a file.
const markMirror = "annotation " + corev1.MirrorPodAnnotationKey

// account makes a service account in the namespace.
func (p policed) account(name string) {
	p.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := suite.client.CoreV1().ServiceAccounts(p.ns).Create(p.Context(), account, metav1.CreateOptions{}); err != nil {
		p.Fatal(err)
	}
}

// schedulerAccount makes one that may bind pods, as every installation has it.
func (p policed) schedulerAccount(name string) {
	p.Helper()
	p.account(name)
	bindings := suite.client.RbacV1().ClusterRoleBindings()
	made, err := bindings.Create(p.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: p.ns, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kube-scheduler"},
	}, metav1.CreateOptions{})
	if err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() {
		if err := bindings.Delete(context.Background(), made.Name, metav1.DeleteOptions{}); err != nil {
			p.Error(err)
		}
	})
	awaitAllowed(p.T, "system:serviceaccount:"+p.ns+":"+name,
		&authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "binding"}, true)
}

// mirrorPod asks for a pod as a kubelet announces one that it has from a file, and returns
// what is made of it.
func (p policed) mirrorPod() (*corev1.Pod, error) {
	p.Helper()
	nodes, err := suite.client.CoreV1().Nodes().List(p.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(nodes.Items) == 0 {
		p.Fatal("no node: ", err)
	}
	node, controls := nodes.Items[0], true
	access := suite.cluster.AdminConfig()
	access.Impersonate = clientrest.ImpersonationConfig{UserName: "system:node:" + node.Name, Groups: []string{"system:nodes", "system:authenticated"}}
	client, err := kubernetes.NewForConfig(access)
	if err != nil {
		p.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: marks{markMirror: "of-a-file"}.meta(), Spec: podSpec("")}
	pod.Name, pod.Spec.NodeName, pod.Spec.NodeSelector = "mirror", node.Name, nil
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &controls}}
	return client.CoreV1().Pods(p.ns).Create(p.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
}

// TestOnlyQueues is a table of pods that would go past the queues.
func TestOnlyQueues(t *testing.T) {
	applyPolicies(t, installed(t, "admission-only-queues.yaml"))
	on := newPoliced(t, "policed-only", map[string]string{"yunikorn.apache.org/namespace.enableYuniKorn": "true"})
	none := newPoliced(t, "policed-free", nil)
	on.schedulerAccount("paddock")
	on.account("robot")
	const node = "elsewhere"
	create := func(p policed, user, scheduler, node, account string, m marks) error {
		t.Helper()
		pod := &corev1.Pod{ObjectMeta: m.meta(), Spec: podSpec(scheduler)}
		pod.Name, pod.Spec.NodeName, pod.Spec.ServiceAccountName = "x", node, account
		_, err := p.as(user).CoreV1().Pods(p.ns).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	const bob, daemonSets = "bob", "system:serviceaccount:kube-system:daemon-set-controller"
	for _, p := range []policed{on, none} {
		for _, user := range []string{bob, daemonSets} {
			p.allow(user, "admin")
		}
	}
	byQueues := "pods of namespace " + on.ns + " are placed by queues: set spec.schedulerName to yunikorn"
	const noNode = "remove spec.nodeName"
	on.awaitPolicies(byQueues, func() error { return create(on, bob, "mine", "", "", nil) })
	on.awaitPolicies(byQueues, func() error { return create(on, daemonSets, "mine", "", "", nil) })
	eventually(t, patience, "bob may make pods elsewhere", func() (bool, string) {
		err := create(none, bob, "mine", "", "", nil)
		return err == nil, fmt.Sprint(err)
	})
	mirror := marks{markMirror: "x"}
	paddock := marks{markPaddock: "paddock"}
	for _, c := range []struct {
		name                           string
		in                             policed
		user, scheduler, node, account string
		m                              marks
		says                           string
	}{
		{"by queues", on, bob, profile, "", "", nil, ""},
		{"no scheduler named", on, bob, "", "", "", nil, byQueues},
		{"default-scheduler", on, bob, corev1.DefaultSchedulerName, "", "", nil, byQueues},
		{"a node", on, bob, profile, node, "", nil, noNode},
		{"a DaemonSet's pod", on, daemonSets, profile, "", "", nil, ""},
		{"a DaemonSet's pod of another scheduler", on, daemonSets, "mine", "", "", nil, byQueues},
		{"what says it is a mirror pod", on, bob, "mine", node, "", mirror, byQueues},
		{"Paddock itself", on, bob, corev1.DefaultSchedulerName, "", "paddock", paddock, ""},
		{"its label alone", on, bob, corev1.DefaultSchedulerName, "", "", paddock, byQueues},
		{"its label, another account", on, bob, corev1.DefaultSchedulerName, "", "robot", paddock, byQueues},
		{"its account without the label", on, bob, corev1.DefaultSchedulerName, "", "paddock", nil, byQueues},
		{"another namespace, another scheduler", none, bob, "mine", "", "", nil, ""},
		{"another namespace, a node", none, bob, "mine", node, "", nil, ""},
	} {
		c.in.expectAnswer(c.name, create(c.in, c.user, c.scheduler, c.node, c.account, c.m), c.says)
	}
	_, err := on.mirrorPod()
	on.expectAnswer("a mirror pod", err, "")
	on.checkTypes("paddock-only-queues")
}
