package integration

import (
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// markPaddock is the label of the pods of an installation.
const markPaddock = "label app.kubernetes.io/name"

// markMirror is the annotation of mirror pods.
const markMirror = "annotation " + corev1.MirrorPodAnnotationKey

func serviceAccount(t *testing.T, namespace, name string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}
	made(t, suite.client.CoreV1().ServiceAccounts(namespace), account)
}

// bindRole binds a ClusterRole to a service account until the test ends.
func bindRole(t *testing.T, namespace, account, role string) {
	t.Helper()
	made(t, suite.client.RbacV1().ClusterRoleBindings(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	})
}

// schedulerAccount makes a service account that may bind pods, as in every installation.
func (p policed) schedulerAccount(name string) {
	p.Helper()
	serviceAccount(p.T, p.ns, name)
	bindRole(p.T, p.ns, name, "system:kube-scheduler")
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
	node := nodes.Items[0]
	client := p.asMember("system:node:"+node.Name, []string{"system:nodes", "system:authenticated"})
	return p.dryRun(client, "", marks{markMirror: "of-a-file"}, func(pod *corev1.Pod) {
		pod.Spec.NodeName, pod.Spec.NodeSelector = node.Name, nil
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID, Controller: new(true)}}
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
	succeeds(t, "bob may make pods elsewhere", func() error { return create(none, bob, "mine", "", "", nil) })
	mirror, paddock := marks{markMirror: "x"}, marks{markPaddock: "paddock"}
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

// TestNamespaceQueue is a namespace bound to one queue: a table of the pods that the API
// server accepts. A pod with one queue as label and another as annotation is in that of its label
// (pkg/queues/placement/testdata/identify/queue.txt).
func TestNamespaceQueue(t *testing.T) {
	applyPolicies(t, installed(t, "admission-namespace-queue.yaml"))
	const onlyQueue = "paddock.io/only-queue"
	p := newPoliced(t, "policed-queue", map[string]string{onlyQueue: "root.Team"})
	none := newPoliced(t, "policed-no-queue", nil)
	belong := "pods of namespace " + p.ns + " belong into queue root.team"
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
	p.create("there", marks{markQueue: "root.team.day"})
	set := func(key, value string, subresources ...string) error {
		change := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, key, value)
		return p.patch(suite.client, "there", change, subresources...)
	}
	p.expectAnswer("another queue later", set(placement.KeyQueue, `"root.other"`), belong)
	p.expectAnswer("another queue later, by the status", set(placement.KeyQueue, `"root.other"`, "status"), belong)
	p.expectAnswer("no queue later", set(placement.KeyQueue, "null"), belong)
	p.expectAnswer("something else later", set("note", `"x"`), "")
	for i, wrong := range []string{"team", "root.", "root. team", "rooted.team"} {
		p.annotate(onlyQueue, wrong)
		p.awaitPolicies(`is "`+wrong+`", which is no queue in full`, func() error { return p.try(profile, marks{markQueue: "root.team"}) })
		p.expectAnswer("a pod that is there, with "+wrong, set("note", fmt.Sprintf(`"%d"`, i)), "")
	}
	// Pods from before the annotation stay, and can be changed.
	p.annotate(onlyQueue, "root.other")
	p.awaitPolicies("belong into queue root.other", func() error { return p.try(profile, nil) })
	p.expectAnswer("a pod from before", set("note", `"y"`), "")
	p.checkTypes("paddock-namespace-queue")
}

// TestBoundedPods is a table of pods that would take much of the scheduler's time.
func TestBoundedPods(t *testing.T) {
	p := newPoliced(t, "policed-bounded", nil)
	large := func(bytes int) marks { return marks{"annotation note": strings.Repeat("x", bytes-len("note"))} }
	p.create("before", large(70000))
	applyPolicies(t, installed(t, "admission-bounded-pods.yaml"))
	const tooLarge, tooMany = "at most 65536 are allowed: shorten them", "at most 64 are allowed: remove those"
	p.awaitPolicies(tooLarge, func() error { return p.try(profile, large(65537)) })
	requesting := func(n int) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			some := func(prefix string, n int) (list []string) {
				for i := range n {
					list = append(list, fmt.Sprint("example.com/", prefix, i), "1")
				}
				return list
			}
			c := &pod.Spec.Containers[0]
			c.Resources.Requests = amounts(append(some("r", n/2), "cpu", "1", "ephemeral-storage", "1Gi")...)
			c.Resources.Limits = c.Resources.Requests
			rest := corev1.Container{Name: "i", Image: "none"}
			rest.Resources.Limits = amounts(some("s", n-n/2)...)
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
		change := fmt.Sprintf(`{"metadata":{"annotations":{"note":%q}}}`, strings.Repeat("x", bytes))
		return p.patch(suite.client, "before", change, subresources...)
	}
	p.expectAnswer("a pod from before with larger annotations", annotate(70001), tooLarge)
	p.expectAnswer("with larger ones by the status", annotate(70001, "status"), tooLarge)
	const status = `{"status":{"message":"as a kubelet writes it"}}`
	p.expectAnswer("a status of the same pod", p.patch(suite.client, "before", status, "status"), "")
	p.expectAnswer("with smaller ones", annotate(69000), "")
	_, err := p.mirrorPod()
	p.expectAnswer("a mirror pod", err, "")
	p.checkTypes("paddock-bounded-pods")
}
