package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// The shipped service account.
const accountNamespace, accountName = "yunikorn", "paddock-scheduler"

// prefixed is an installation of its own: namespaced objects are in its namespace; objects without
// namespace, or in kube-system, have names with a prefix. The lease is the same for all.
func prefixed(objects []*unstructured.Unstructured, prefix, namespace string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, o := range objects {
		o = o.DeepCopy()
		ours := strings.HasPrefix(o.GetName(), "paddock-")
		switch {
		case o.GetKind() == "Namespace":
			continue
		case o.GetNamespace() == accountNamespace:
			o.SetNamespace(namespace)
		case ours:
			o.SetName(prefix + "-" + o.GetName())
		}
		if role, found, _ := unstructured.NestedString(o.Object, "roleRef", "name"); found && strings.HasPrefix(role, "paddock-") && o.GetNamespace() != namespace {
			_ = unstructured.SetNestedField(o.Object, prefix+"-"+role, "roleRef", "name") // there is a roleRef
		}
		if subjects, found, _ := unstructured.NestedSlice(o.Object, "subjects"); found {
			for _, s := range subjects {
				s.(map[string]any)["namespace"] = namespace
			}
			o.Object["subjects"] = subjects
		}
		out = append(out, o)
	}
	return out
}

// installation is the manifests that users apply, in a namespace of its own and with its name.
type installation struct {
	namespace string
	objects   []*unstructured.Unstructured
}

var installations atomic.Int32

// newInstallation reads a file of manifests/install.
func newInstallation(t *testing.T, file, name string) installation {
	t.Helper()
	namespace := fmt.Sprintf("install-%s-%d", name, installations.Add(1)) // the previous one may still be terminating
	return installation{namespace, prefixed(installed(t, file), namespace, namespace)}
}

// run installs all but the Deployment, and returns settings for a scheduler as the
// Deployment would run it: its configuration, under its service account, with a lease.
func (i installation) run(t *testing.T) func(*settings) {
	t.Helper()
	gates := slices.DeleteFunc(slices.Clone(deploymentOf(t, i.objects).Spec.Template.Spec.Containers[0].Args),
		func(arg string) bool { return !strings.HasPrefix(arg, "--feature-gates=") })
	expect.Get(suite.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.namespace}}, metav1.CreateOptions{}))(t)
	a := newApplier(t)
	var shipped []byte
	t.Cleanup(func() {
		forgetLease(t)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		for _, o := range slices.Backward(i.objects) {
			expect.Holds(t, a.delete(ctx, o))
		}
		expect.Holds(t, suite.client.CoreV1().Namespaces().Delete(ctx, i.namespace, metav1.DeleteOptions{}))
	})
	for _, o := range i.objects {
		switch o.GetKind() {
		case "Deployment":
			continue
		case "ConfigMap":
			text, _, err := unstructured.NestedString(o.Object, "data", "scheduler.yaml")
			expect.OK(t, err)
			shipped = []byte(text)
		}
		expect.Get(a.apply(t.Context(), o, false))(t)
	}
	forgetLease(t)
	kubeconfig := kubeconfigOf(t, i.namespace, accountName)
	awaitRights(t, accountsOf(i.namespace)+accountName, i.objects)
	return func(s *settings) {
		s.shipped, s.configNamespace = shipped, i.namespace
		s.launch.Kubeconfig, s.launch.LeaderElection = kubeconfig, true
		// So long that a busy machine does not lose the lease: a test that kills the
		// leader calls forgetLease.
		s.launch.Args = []string{"--leader-elect-lease-duration=2m", "--leader-elect-renew-deadline=90s", "--leader-elect-retry-period=500ms"}
		s.launch.Args = append(s.launch.Args, gates...)
	}
}

// kubeconfigOf returns the path of a kubeconfig with a token of a service account, valid for eight
// hours.
func kubeconfigOf(t *testing.T, namespace, account string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(8 * 3600))}}
	accounts := suite.client.CoreV1().ServiceAccounts(namespace)
	token := expect.Get(accounts.CreateToken(t.Context(), account, request, metav1.CreateOptions{}))(t).Status.Token
	kubeconfig := expect.Get(clientcmd.LoadFromFile(suite.cluster.KubeconfigPath(localcluster.UserAdmin)))(t)
	for user := range kubeconfig.AuthInfos {
		kubeconfig.AuthInfos[user] = &clientcmdapi.AuthInfo{Token: token}
	}
	path := suite.cluster.KubeconfigPath("serviceaccount-" + namespace + "-" + account)
	expect.OK(t, clientcmd.WriteToFile(*kubeconfig, path))
	return path
}

// forgetLease removes the lease, so that no scheduler waits for one of another test that was killed.
func forgetLease(t *testing.T) {
	t.Helper()
	leases := suite.client.CoordinationV1().Leases(metav1.NamespaceSystem)
	expect.Holds(t, notFoundIsFine(leases.Delete(context.Background(), "paddock-scheduler", metav1.DeleteOptions{})))
}

// awaitRights waits until the API server has seen all roles and bindings: it asks for one
// right of each bound rule.
func awaitRights(t *testing.T, user string, objects []*unstructured.Unstructured) {
	ours, upstream := boundRoles(t, objects)
	awaitOurs(t, user, ours, true)
	// These are the roles of upstream that installations bind; what else is bound is a role of a test.
	for role, ask := range map[string]authorizationv1.ResourceAttributes{
		"system:kube-scheduler":   {Verb: "watch", Resource: "pods"},
		"system:volume-scheduler": {Verb: "update", Resource: "persistentvolumes"},
		"extension-apiserver-authentication-reader": {
			Namespace: metav1.NamespaceSystem, Verb: "get", Resource: "configmaps", Name: "extension-apiserver-authentication",
		},
	} {
		if slices.Contains(upstream, role) {
			awaitAllowed(t, user, &ask, true)
		}
	}
}

// awaitOurs waits until the API server allows a user one right of each rule, or none.
func awaitOurs(t *testing.T, user string, ours []bound, want bool) {
	t.Helper()
	for _, b := range ours {
		for _, rule := range b.rules {
			r := bound{b.role, b.namespace, []rbacv1.PolicyRule{rule}}.rights()[0]
			awaitAllowed(t, user, &authorizationv1.ResourceAttributes{
				Namespace: r.namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Name: r.name,
			}, want)
		}
	}
}

func awaitAllowed(t *testing.T, user string, ask *authorizationv1.ResourceAttributes, want bool) {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: ask}}
	eventually(t, patience, fmt.Sprintf("the API server says %t to %s, %+v", want, user, *ask), func() (bool, string) {
		answer, err := suite.client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed == want, fmt.Sprint(err)
	})
}

// installLife is the configuration of a pod life.
var installLife = belowRoot(`{name: daemons}, {name: capped, resources: {max: {vcore: 1}}},
 {name: owed, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1s}},
 {name: borrows, properties: {preemption.delay: 1s}}`)

// TestInstalledAccess runs the scheduler as installed, with its configuration and only the rights of
// its service account, through all its kinds of requests; nothing is forbidden.
func TestInstalledAccess(t *testing.T) {
	shipped := newInstallation(t, "second-scheduler.yaml", "life")
	e := setup(t, "", shipped.run(t), func(s *settings) { // a refusal is remembered for 10 s otherwise, see lifeOfMetrics
		s.launch.Args = append(s.launch.Args, "--authorization-webhook-cache-unauthorized-ttl=1s")
	})
	e.configure(installLife)
	first := e.awaitLeader("")
	e.awaitMetric(reloadSuccess, "1")

	e.lifeOfQuota()
	e.lifeOfPreemption()
	e.lifeOfDaemonSet()
	e.lifeOfVolume()
	e.lifeOfClaim()
	e.lifeOfConfiguration()
	e.lifeOfMetrics()

	// A second replica stays in sync and takes over: a leader that is stopped in an orderly
	// way gives up the lease, which is for two minutes.
	standby := *e
	standby.id += "b"
	standby.listsFirst()
	standby.rest = expect.Get(localcluster.FreeAddress())(e.T)
	standby.start()
	e.checkLog(e.process.Running())
	e.ok(e.process.Stop())
	e.process, e.rest = standby.process, standby.rest
	e.awaitLeader(first)
	e.create("after", 1, inQueue("root.owed"), requests("cpu", "100m"))
	e.expect("after", 1, 0, "")
	e.expectBooks()
	checkRights(t, shipped, "")
}

// listsFirst makes the next scheduler read as with an API server that streams no lists:
// by a list, and a watch from there on.
func (e *env) listsFirst() {
	e.settings.launch.Args = append(slices.Clone(e.settings.launch.Args), "--feature-gates=WatchListClient=false")
}

// lifeOfQuota: bind, condition, event.
func (e *env) lifeOfQuota() {
	e.create("capped", 2, inQueue("root.capped"))
	e.expect("capped", 1, 1, reasons.OverMax)
	_, waiting := e.podsOf("capped")
	e.awaitEvent(waiting[0], string(reasons.OverMax), "root.capped")
}

// lifeOfPreemption: the claim of a node, conditions and deletes of victims.
func (e *env) lifeOfPreemption() {
	part := e.apart("full", 1, localcluster.NodeSpec{CPU: "4"})
	c := part.keepHistory()
	part.fill("victim", 4, inQueue("root.borrows"), stopsAfter(300*time.Millisecond))
	asker := part.createPod(part.pod("asker", "asker", inQueue("root.owed"), requests("cpu", "2")))
	c.expectEvicted("victim", 2)
	c.awaitPlaced(asker)
	claim, _ := c.claim(asker.UID)
	expect.Same(e, "victims that the claim names while the node is held", 2, len(claim.Victims))
}

// lifeOfDaemonSet: a pod that can run on one node only.
func (e *env) lifeOfDaemonSet() {
	part := e.apart("daemon", 1, localcluster.NodeSpec{CPU: "2"})
	part.fill("fills", 2, inQueue("root.borrows"), stopsAfter(300*time.Millisecond))
	part.createDaemonSet("agent", inQueue("root.daemons"))
	part.expect("agent", 1, 0, "")
}

// lifeOfVolume: the scheduler chooses a volume and writes that on it and on the claim.
func (e *env) lifeOfVolume() {
	class := e.storageClass("WaitForFirstConsumer", "kubernetes.io/no-provisioner")
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: class}, Spec: corev1.PersistentVolumeSpec{
		Capacity: amounts("storage", "1Gi"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: class,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/volume"}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: pool, Operator: corev1.NodeSelectorOpIn, Values: []string{e.nodePool}}},
		}}}},
	}}
	made(e, suite.client.CoreV1().PersistentVolumes(), volume)
	e.create("volume", 1, inQueue("root.owed"), requests("cpu", "100m"), e.withClaim("claim", class))
	e.expect("volume", 1, 0, "")
}

// lifeOfConfiguration: a change, and a mistake, which an event of the ConfigMap, the metric, the page
// and the health check report.
func (e *env) lifeOfConfiguration() {
	e.configure(strings.Replace(installLife, "max: {vcore: 1}", "max: {vcore: 2}", 1))
	e.expect("capped", 2, 0, "")
	e.configure("partitions: none")
	configMap := expect.Get(suite.client.CoreV1().ConfigMaps(e.configNamespace()).Get(e.Context(), config.QueuesConfigMap, metav1.GetOptions{}))(e)
	e.awaitEvent(configMap, string(reasons.ConfigurationInvalid), "the configuration before stays in force: ")
	e.awaitMetric(reloadSuccess, "0")
	e.awaitText("/configuration", "must be a list")
	e.awaitText("/ws/v1/scheduler/healthcheck", "must be a list")
	e.configure(installLife)
	e.awaitMetric(reloadSuccess, "1")
}

// lifeOfMetrics: only users bound to paddock-metrics-reader may read the metrics. The
// scheduler asks the API server for the user of a request and for its rights.
func (e *env) lifeOfMetrics() {
	as := &clientrest.Config{BearerToken: e.token("prometheus")}
	expect.Refused(e.metricsAs(as))(e, "403 Forbidden")
	bindRole(e.T, e.ns, "prometheus", e.configNamespace()+"-paddock-metrics-reader")
	// A refusal is cached for a while.
	succeeds(e, "/metrics can be read with the binding", func() error {
		_, err := e.metricsAs(as)
		return err
	})
}

// awaitLeader waits until the lease has a holder other than the one before, and returns it.
func (e *env) awaitLeader(before string) string {
	e.Helper()
	holder := ""
	eventually(e, patience, "the scheduler leads", func() (bool, string) {
		lease, err := suite.client.CoordinationV1().Leases(metav1.NamespaceSystem).Get(e.Context(), "paddock-scheduler", metav1.GetOptions{})
		if err != nil || lease.Spec.HolderIdentity == nil {
			return false, fmt.Sprint(err)
		}
		holder = *lease.Spec.HolderIdentity
		return holder != "" && holder != before, holder
	})
	return holder
}

// lifeOfClaim: the scheduler gives a device to the claim of a pod and writes that on the
// claim. The second pod waits until the first is gone.
func (e *env) lifeOfClaim() {
	part := *e
	part.nodePool = e.id + "-device"
	node := part.device(e.id+"-device.example.com", "first", "second")
	first := part.createPod(part.pod("first", "first", inQueue("root.owed"), requests("cpu", "100m"), withClaim("first")))
	part.expect("first", 1, 0, "")
	claim := expect.Get(suite.client.ResourceV1().ResourceClaims(e.ns).Get(e.Context(), "first", metav1.GetOptions{}))(e)
	a, of := claim.Status.Allocation, claim.Status.ReservedFor
	expect.That(e, a != nil && len(a.Devices.Results) == 1 && a.Devices.Results[0].Pool == node,
		"the claim has %+v, want the device of node %s", a, node)
	expect.That(e, len(of) == 1 && of[0].UID == first.UID,
		"the claim is reserved for %+v, want pod %s", of, first.UID)
	second := part.createPod(part.pod("second", "second", inQueue("root.owed"), requests("cpu", "100m"), withClaim("second")))
	part.awaitEvent(second, "FailedScheduling")
	part.expectStill("second", 0, 1, "")
	part.delete(first)
	part.expect("second", 1, 0, "")
}
