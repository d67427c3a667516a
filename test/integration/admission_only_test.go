package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// markPaddock is the label of the pods of an installation.
const markPaddock = "label app.kubernetes.io/name"

// markMirror is the annotation of mirror pods.
const markMirror = "annotation " + corev1.MirrorPodAnnotationKey

// serviceAccount makes a service account.
func serviceAccount(t *testing.T, namespace, name string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	expect.Get(suite.client.CoreV1().ServiceAccounts(namespace).Create(t.Context(), account, metav1.CreateOptions{}))(t)
}

// schedulerAccount makes a service account that may bind pods, as in every installation.
func (p policed) schedulerAccount(name string) {
	p.Helper()
	serviceAccount(p.T, p.ns, name)
	bindings := suite.client.RbacV1().ClusterRoleBindings()
	made := expect.Get(bindings.Create(p.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: p.ns, Name: name}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kube-scheduler"},
	}, metav1.CreateOptions{}))(p)
	p.Cleanup(func() { expect.Holds(p, bindings.Delete(context.Background(), made.Name, metav1.DeleteOptions{})) })
	awaitAllowed(p.T, "system:serviceaccount:"+p.ns+":"+name,
		&authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "binding"}, true)
}

// mirrorPod requests a mirror pod as a kubelet does, and returns the result.
func (p policed) mirrorPod() (*corev1.Pod, error) {
	p.Helper()
	nodes, err := suite.client.CoreV1().Nodes().List(p.Context(), metav1.ListOptions{Limit: 1})
	if err != nil || len(nodes.Items) == 0 {
		p.Fatal("no node: ", err)
	}
	node, controls := nodes.Items[0], true
	client := p.asMember("system:node:"+node.Name, []string{"system:nodes", "system:authenticated"})
	return p.dryRun(client, "", marks{markMirror: "of-a-file"}, func(pod *corev1.Pod) {
		pod.Spec.NodeName, pod.Spec.NodeSelector = node.Name, nil
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: &controls}}
	})
}

// TestOnlyQueues is a table of pods that would bypass the queues.
func TestOnlyQueues(t *testing.T) {
	applyPolicies(t, installed(t, "admission-only-queues.yaml"))
	on := newPoliced(t, "policed-only", map[string]string{"yunikorn.apache.org/namespace.enableYuniKorn": "true"})
	none := newPoliced(t, "policed-free", nil)
	on.schedulerAccount("paddock")
	serviceAccount(t, on.ns, "robot")
	const node = "elsewhere"
	create := func(p policed, user, scheduler, node, account string, m marks) error {
		t.Helper()
		_, err := p.dryRun(p.as(user), scheduler, m, func(pod *corev1.Pod) { pod.Spec.NodeName, pod.Spec.ServiceAccountName = node, account })
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

// TestRequireUser is a table of pods with and without a user.
func TestRequireUser(t *testing.T) {
	applyPolicies(t, installed(t, "admission-require-user.yaml"))
	on := newPoliced(t, "policed-whose", map[string]string{"yunikorn.apache.org/namespace.enableYuniKorn": "true"})
	none := newPoliced(t, "policed-any", nil)
	must := "pods of namespace " + on.ns + " must say whose they are: set annotation yunikorn.apache.org/user.info"
	on.awaitPolicies(must, func() error { return on.try(profile, nil) })
	for _, c := range []struct {
		name      string
		in        policed
		scheduler string
		m         marks
		says      string
	}{
		{"nobody's", on, profile, nil, must},
		{"an empty user", on, profile, marks{markInfo: ""}, must},
		{"by name alone", on, profile, marks{markUsername: "bob"}, must},
		{"bob's", on, profile, marks{markInfo: bobInfo}, ""},
		{"another scheduler's", on, corev1.DefaultSchedulerName, nil, ""},
		{"another namespace", none, profile, nil, ""},
	} {
		c.in.expectAnswer(c.name, c.in.try(c.scheduler, c.m), c.says)
	}
	_, err := on.mirrorPod()
	on.expectAnswer("a mirror pod", err, "")
	on.checkTypes("paddock-require-user")
}

// TestLimitsWithPolicies shows the purpose of the policies: if everything that the label
// leaves out is refused, no user escapes the limit of a group.
func TestLimitsWithPolicies(t *testing.T) {
	applyPolicies(t, slices.Concat(installed(t, "admission.yaml"), installed(t, "admission-require-user.yaml")))
	e := setup(t, `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    limits:
    - {limit: everybody together, groups: ["system:authenticated"], maxresources: {vcore: 1}}
    queues:
    - name: team
`)
	e.annotate(e.ns, map[string]string{"yunikorn.apache.org/namespace.enableYuniKorn": "true"})
	p := policed{t, e.ns}
	p.allow("bob", "admin")
	p.awaitValidation("bob")
	p.awaitPolicies("must say whose they are", func() error { return p.make("bob", "Pod", nil) })
	for what, c := range map[string]struct {
		says      marks
		wants, or string // where two policies refuse it, the API server tells the answer of one
	}{
		"without a user": {nil, "must say whose they are", "must say whose they are"},
		"by name alone":  {marks{markUsername: "bob"}, "alone leaves out the groups", "must say whose they are"},
		"of no group":    {marks{markInfo: `{"user":"bob"}`}, "the annotation must be exactly", "the annotation must be exactly"},
	} {
		err := p.make("bob", "Pod", c.says)
		if err == nil || !strings.Contains(err.Error(), c.wants) && !strings.Contains(err.Error(), c.or) {
			t.Errorf("a pod %s: %v, want a refusal that says %q", what, err, c.wants)
		}
	}
	for i := range 2 {
		pod := e.pod(fmt.Sprintf("of-bob-%d", i), "of-bob", inQueue("root.team"))
		pod.Annotations = map[string]string{placement.KeyUserInfo: bobInfo}
		expect.Get(p.as("bob").CoreV1().Pods(e.ns).Create(t.Context(), pod, metav1.CreateOptions{}))(e)
	}
	e.expect("of-bob", 1, 1, reasons.OverGroupLimit)
}

// TestNamespaceQueue is a namespace bound to one queue: a table of the pods that the API
// server accepts. A pod with one queue as label and another as annotation is in that of its label.
func TestNamespaceQueue(t *testing.T) {
	applyPolicies(t, installed(t, "admission-namespace-queue.yaml"))
	e := setup(t, `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: team
      queues: [{name: day}, {name: night}]
    - name: teams
    - name: other
`)
	e.annotate(e.ns, map[string]string{"paddock.io/only-queue": "root.Team"})
	p, none := policed{t, e.ns}, newPoliced(t, "policed-queue", nil)
	belong := "pods of namespace " + e.ns + " belong into queue root.team"
	p.awaitPolicies(belong, func() error { return p.try(profile, nil) })
	for _, c := range []struct {
		name      string
		in        policed
		scheduler string
		m         marks
		says      string
	}{
		{"no queue", p, profile, nil, belong},
		{"its queue", p, profile, marks{markQueue: "root.team"}, ""},
		{"below it, by annotation", p, profile, marks{markQueueNote: "root.team.day"}, ""},
		{"below it, by the legacy label, in capitals", p, profile, marks{markLegacyQueue: "ROOT.team.Night"}, ""},
		{"another queue", p, profile, marks{markQueue: "root.other"}, belong},
		{"one whose name begins so", p, profile, marks{markQueue: "root.teams"}, belong},
		{"above it", p, profile, marks{markQueue: "root"}, belong},
		{"not in full", p, profile, marks{markQueue: "team"}, belong},
		{"another queue by label, its own by annotation", p, profile, marks{markQueue: "root.other", markQueueNote: "root.team.day"}, belong},
		{"its own by label, another one by annotation", p, profile, marks{markQueue: "root.team.day", markQueueNote: "root.other"}, ""},
		{"another scheduler's", p, corev1.DefaultSchedulerName, nil, ""},
		{"another namespace", none, profile, marks{markQueue: "root.other"}, ""},
	} {
		c.in.expectAnswer(c.name, c.in.try(c.scheduler, c.m), c.says)
	}
	there := e.create("there", 1, inQueue("root.team.day"))[0]
	e.awaitRunning(there)
	e.awaitRefused(e.createPod(e.pod("missing", "missing", inQueue("root.team.noon"))), reasons.QueueNotFound)
	differ := e.pod("differ", "differ", inQueue("root.team.day"))
	differ.Annotations = map[string]string{placement.KeyQueue: "root.other"}
	e.awaitRunning(e.createPod(differ))
	e.awaitQueue("root.team.day", "has the pod whose annotation names another queue", func(q *documents.Queue) bool {
		return q.AllocatedResource["vcore"] == 2000
	})
	patch := func(change string, subresources ...string) error {
		_, err := suite.client.CoreV1().Pods(e.ns).Patch(t.Context(), there.Name, types.MergePatchType, []byte(change), metav1.PatchOptions{}, subresources...)
		return err
	}
	p.expectAnswer("another queue later", patch(`{"metadata":{"labels":{"`+placement.KeyQueue+`":"root.other"}}}`), belong)
	p.expectAnswer("another queue later, by the status", patch(`{"metadata":{"labels":{"`+placement.KeyQueue+`":"root.other"}}}`, "status"), belong)
	p.expectAnswer("no queue later", patch(`{"metadata":{"labels":{"`+placement.KeyQueue+`":null}}}`), belong)
	p.expectAnswer("something else later", patch(`{"metadata":{"labels":{"note":"x"}}}`), "")
	for _, wrong := range []string{"team", "root.", "root. team", "rooted.team"} {
		e.annotate(e.ns, map[string]string{"paddock.io/only-queue": wrong})
		p.awaitPolicies(`is "`+wrong+`", which is no queue in full`, func() error { return p.try(profile, marks{markQueue: "root.team"}) })
		p.expectAnswer("a pod that is there, with "+wrong, patch(`{"metadata":{"labels":{"note":"`+wrong[:4]+`"}}}`), "")
	}
	// Pods from before the annotation keep running.
	e.annotate(e.ns, map[string]string{"paddock.io/only-queue": "root.other"})
	p.awaitPolicies("belong into queue root.other", func() error { return p.try(profile, nil) })
	p.expectAnswer("a pod from before", patch(`{"metadata":{"labels":{"note":"y"}}}`), "")
	p.checkTypes("paddock-namespace-queue")
}

// TestBoundedPods is a table of pods that would take much of the scheduler's time.
func TestBoundedPods(t *testing.T) {
	p := newPoliced(t, "policed-bounded", nil)
	large := func(bytes int) marks { return marks{"annotation note": strings.Repeat("x", bytes-len("note"))} }
	before := &corev1.Pod{ObjectMeta: large(70000).meta(), Spec: podSpec("mine")}
	before.Name = "before"
	expect.Get(suite.client.CoreV1().Pods(p.ns).Create(t.Context(), before, metav1.CreateOptions{}))(t)
	applyPolicies(t, installed(t, "admission-bounded-pods.yaml"))
	const tooLarge, tooMany = "at most 65536 are allowed: shorten them", "at most 64 are allowed: remove those"
	p.awaitPolicies(tooLarge, func() error { return p.try(profile, large(65537)) })
	requesting := func(n int) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceEphemeralStorage: resource.MustParse("1Gi")}
			for i := range n / 2 {
				requests[corev1.ResourceName(fmt.Sprintf("example.com/r%d", i))] = resource.MustParse("1")
			}
			c := &pod.Spec.Containers[0]
			c.Resources.Requests, c.Resources.Limits = requests, requests
			rest := corev1.Container{Name: "i", Image: "none"}
			rest.Resources.Limits = corev1.ResourceList{}
			for i := range n - n/2 {
				rest.Resources.Limits[corev1.ResourceName(fmt.Sprintf("example.com/s%d", i))] = resource.MustParse("1")
			}
			pod.Spec.InitContainers = []corev1.Container{rest}
		}
	}
	for _, scheduler := range []string{profile, corev1.DefaultSchedulerName} {
		for _, c := range []struct {
			name  string
			m     marks
			types int
			says  string
		}{
			{"the largest annotations", large(65536), 0, ""},
			{"larger annotations", large(65537), 0, tooLarge},
			{"annotations of long characters", marks{"annotation note": strings.Repeat("😀", 65536/4)}, 0, tooLarge},
			{"the most types", nil, 64, ""},
			{"a type more", nil, 65, tooMany},
		} {
			_, err := p.dryRun(suite.client, scheduler, c.m, requesting(c.types))
			p.expectAnswer(c.name+" of "+scheduler, err, c.says)
		}
	}
	annotate := func(bytes int, subresources ...string) error {
		change := fmt.Appendf(nil, `{"metadata":{"annotations":{"note":%q}}}`, strings.Repeat("x", bytes))
		_, err := suite.client.CoreV1().Pods(p.ns).Patch(t.Context(), before.Name, types.MergePatchType, change, metav1.PatchOptions{}, subresources...)
		return err
	}
	p.expectAnswer("a pod from before with larger annotations", annotate(70001), tooLarge)
	p.expectAnswer("with larger ones by the status", annotate(70001, "status"), tooLarge)
	current := expect.Get(suite.client.CoreV1().Pods(p.ns).Get(t.Context(), before.Name, metav1.GetOptions{}))(t)
	current.Status.Message = "as a kubelet writes it"
	_, err := suite.client.CoreV1().Pods(p.ns).UpdateStatus(t.Context(), current, metav1.UpdateOptions{})
	p.expectAnswer("a status of the same pod", err, "")
	p.expectAnswer("with smaller ones", annotate(69000), "")
	_, err = p.mirrorPod()
	p.expectAnswer("a mirror pod", err, "")
	p.checkTypes("paddock-bounded-pods")
}
