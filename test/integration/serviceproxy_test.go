package integration

import (
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// reachableAddress is an address of this machine that is not loopback, with a free port:
// the API server accepts no loopback address for an endpoint.
func reachableAddress(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(expect.Get(localcluster.FreeAddress())(t))
	expect.OK(t, err)
	addresses := expect.Get(net.InterfaceAddrs())(t)
	for _, a := range addresses {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return net.JoinHostPort(n.IP.String(), port)
		}
	}
	t.Fatalf("this machine has no address but loopback ones: %v", addresses)
	return ""
}

// servedAt makes a service with one endpoint, a pod with this address, as the controller
// would for a scheduler that runs in the cluster. The API server's proxy connects only to
// addresses of pods.
func (e *env) servedAt(service, address string) {
	e.Helper()
	host, portText, err := net.SplitHostPort(address)
	e.ok(err)
	port := expect.Get(strconv.Atoi(portText))(e)
	core := suite.client.CoreV1()
	_, err = core.Services(e.ns).Create(e.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 9080}}},
	}, metav1.CreateOptions{})
	e.ok(err)
	pod, err := core.Pods(e.ns).Create(e.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: service},
		Spec:       corev1.PodSpec{SchedulerName: "nobody", Containers: []corev1.Container{{Name: "scheduler", Image: "scheduler"}}},
	}, metav1.CreateOptions{})
	e.ok(err)
	pod.Status.PodIP, pod.Status.PodIPs = host, []corev1.PodIP{{IP: host}}
	expect.Get(core.Pods(e.ns).UpdateStatus(e.Context(), pod, metav1.UpdateOptions{}))(e)
	//nolint:staticcheck // the proxy reads Endpoints, not EndpointSlices
	_, err = core.Endpoints(e.ns).Create(e.Context(), &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: service},
		Subsets: []corev1.EndpointSubset{{
			Addresses: []corev1.EndpointAddress{{IP: host, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: e.ns, Name: service, UID: pod.UID}}},
			Ports:     []corev1.EndpointPort{{Port: int32(port)}},
		}},
	}, metav1.CreateOptions{})
	e.ok(err)
}

// mayProxy gives a service account only the right to use the proxy to services, by these
// verbs.
func (e *env) mayProxy(name string, verbs ...string) {
	e.Helper()
	roles := suite.client.RbacV1()
	expect.Get(roles.Roles(e.ns).Create(e.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services/proxy"}, Verbs: verbs}},
	}, metav1.CreateOptions{}))(e)
	expect.Get(roles.RoleBindings(e.ns).Create(e.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: e.ns, Name: name}},
	}, metav1.CreateOptions{}))(e)
}

// TestPluginThroughTheServiceProxy runs kubectl-paddock without --server: through the API
// server, and only with the rights that the documentation names.
func TestPluginThroughTheServiceProxy(t *testing.T) {
	address := reachableAddress(t)
	e := setup(t, oneLeaf("2"), queueSort("restAddress", address))
	e.rest = address
	e.useNodes(1, localcluster.NodeSpec{CPU: "6"})
	const service = "paddock"
	e.servedAt(service, address)
	rights := map[string][]string{"reads": {"get"}, "sends": {"get", "create"}, "neither": {"list"}}
	admin, kubeconfig := suite.cluster.AdminConfig(), clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile}
	for name, verbs := range rights {
		kubeconfig.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: e.token(name)}
		kubeconfig.Contexts[name] = &clientcmdapi.Context{Cluster: "c", AuthInfo: name}
		e.mayProxy(name, verbs...)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	e.ok(clientcmd.WriteToFile(*kubeconfig, path))
	e.awaitRefused(e.createPod(e.pod("waits", "waits", inQueue("root.a"), requests("cpu", "5"))), reasons.OverMax)
	for _, c := range []struct {
		as, args string
		exit     int
		says     string
	}{
		{"reads", "queues root.a", 0, "root.a"},
		{"reads", "explain pod waits -n " + e.ns, 0, "OverMax"},
		{"reads", "preview -f -", 2, "you need the verb create on services/proxy there"},
		{"sends", "preview -f -", 0, "fits: Pod " + e.ns + "/light"},
		{"neither", "queues", 2, "you need the verb get on services/proxy there"},
		{"neither", "preview -f -", 2, "you need the verb create on services/proxy there"},
	} {
		args := append(strings.Fields(c.args), "--service", e.ns+"/"+service+":9080", "--kubeconfig", path, "--context", c.as)
		if out := e.paddockAt(e.manifest("light", "root.a", requests("memory", "1Mi")), c.exit, args...); !strings.Contains(out, c.says) {
			t.Errorf("%s as %s does not say %q: %s", c.args, c.as, c.says, out)
		}
	}
}
