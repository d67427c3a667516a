package integration

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/kubectl/pkg/proxy"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/test/browser"
)

func (e *env) token(name string) string {
	e.Helper()
	serviceAccount(e.T, e.ns, name)
	accounts := suite.client.CoreV1().ServiceAccounts(e.ns)
	request := expect.Get(accounts.CreateToken(e.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{}))(e)
	return request.Status.Token
}

func (e *env) mayRead(name string, paths ...string) {
	e.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: e.ns + "-reader"},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: paths, Verbs: []string{"get"}}},
	}
	made(e, suite.client.RbacV1().ClusterRoles(), role)
	bindRole(e.T, e.ns, name, role.Name)
}

// TestRESTAccess serves over TLS to the users that the API server allows.
func TestRESTAccess(t *testing.T) {
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	cert, key, err := certutil.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	expect.OK(t, errors.Join(err, os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600)))
	e := setup(t, oneLeaf("2"), queueSort("restTLSCertFile", certFile), queueSort("restTLSKeyFile", keyFile),
		queueSort("restAuthorization", "Delegated"))
	permitted, refused := e.token("permitted"), e.token("refused")
	e.mayRead("permitted", "/paddock/ws/v1/*")
	read := func(path, token string) (string, error) {
		access := &clientrest.Config{BearerToken: token, TLSClientConfig: clientrest.TLSClientConfig{CAData: cert}}
		client := expect.Get(clientrest.HTTPClientFor(access))(e)
		body, err := fetch(e.Context(), client, "https://"+e.rest+path)
		return string(body), err
	}
	const page = "/ws/v1/partition/default/queues"
	eventually(e, patience, "a permitted user reads the queues", func() (bool, string) {
		body, err := read(page, permitted)
		return strings.Contains(body, "root.a"), fmt.Sprint(body, err)
	})
	mayNot := "system:serviceaccount:" + e.ns + ":refused may not get the path /paddock" + page
	for _, c := range []struct{ path, token, status, says string }{
		{page, refused, "403 Forbidden", mayNot},
		{"/api/v1/holds", permitted, "403 Forbidden", "may not get the path /paddock/api/v1/holds"},
		{page, "", "401 Unauthorized", "send a valid bearer token"},
		{page, "nonsense", "401 Unauthorized", "send a valid bearer token"},
	} {
		_, err := read(c.path, c.token)
		expect.Fails(t, err, c.status)
		expect.Fails(t, err, c.says)
	}
	_, err = fetch(e.Context(), http.DefaultClient, "http://"+e.rest+page)
	expect.That(t, err != nil, "plain HTTP is answered, too")
}

// reachableAddress is an address of this machine that is not loopback, with a free port:
// the API server accepts no loopback address for an endpoint.
func reachableAddress(t *testing.T) string {
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

// servedAt makes a service with one endpoint, a pod with this address, as the controller would for a
// scheduler that runs in the cluster. The API server's proxy connects only to addresses of pods.
func (e *env) servedAt(service, address string) {
	host, portText, err := net.SplitHostPort(address)
	e.ok(err)
	port := expect.Get(strconv.ParseInt(portText, 10, 32))(e)
	core, named := suite.client.CoreV1(), metav1.ObjectMeta{Name: service}
	expect.Get(core.Services(e.ns).Create(e.Context(), &corev1.Service{
		ObjectMeta: named, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 9080}}},
	}, metav1.CreateOptions{}))(e)
	pod := e.createPod(e.pod(service, service, ofProfile("none")))
	pod.Status.PodIP, pod.Status.PodIPs = host, []corev1.PodIP{{IP: host}}
	expect.Get(core.Pods(e.ns).UpdateStatus(e.Context(), pod, metav1.UpdateOptions{}))(e)
	target := &corev1.ObjectReference{Kind: "Pod", Namespace: e.ns, Name: service, UID: pod.UID}
	//nolint:staticcheck // the proxy reads Endpoints, not EndpointSlices
	endpoints := &corev1.Endpoints{ObjectMeta: named, Subsets: []corev1.EndpointSubset{{
		Addresses: []corev1.EndpointAddress{{IP: host, TargetRef: target}},
		Ports:     []corev1.EndpointPort{{Port: int32(port)}},
	}}}
	expect.Get(core.Endpoints(e.ns).Create(e.Context(), endpoints, metav1.CreateOptions{}))(e)
}

// mayProxy gives a service account only the right to use the proxy to services, by these verbs.
func (e *env) mayProxy(name string, verbs ...string) {
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
	e.createPod(e.pod("waits", "waits", inQueue("root.a"), requests("cpu", "5")))
	e.expect("waits", 0, 1, reasons.OverMax)
	light := e.pod("light", "light", inQueue("root.a"), requests("memory", "1Mi"))
	light.APIVersion, light.Kind = "v1", "Pod"
	manifest := expect.Get(yaml.Marshal(light))(e)
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
		args := append(strings.Fields(c.args), "--kubeconfig", path, "--context", c.as, "--service", e.ns+"/"+service+":9080")
		command := exec.CommandContext(e.Context(), suite.plugin, args...)
		var failed bytes.Buffer
		command.Stdin, command.Stderr = bytes.NewReader(manifest), &failed
		out, _ := command.Output() // of its errors, the exit code is judged
		exit, said := command.ProcessState.ExitCode(), string(out)+failed.String()
		expect.That(t, exit == c.exit && (exit != 0 || failed.Len() == 0) && strings.Contains(said, c.says),
			"%s as %s: exit code %d, want %d and %q; it says %s", c.args, c.as, exit, c.exit, c.says, said)
	}
}

// kubectlProxy serves what "kubectl proxy --server=URL --insecure-skip-tls-verify
// --reject-paths='^/(ws|api)/' --token=TOKEN" serves, and returns its address.
func (e *env) kubectlProxy(token string) string {
	filter := &proxy.FilterServer{
		AcceptPaths: proxy.MakeRegexpArrayOrDie(proxy.DefaultPathAcceptRE), RejectPaths: proxy.MakeRegexpArrayOrDie("^/(ws|api)/"),
		AcceptHosts: proxy.MakeRegexpArrayOrDie(proxy.DefaultHostAcceptRE), RejectMethods: proxy.MakeRegexpArrayOrDie(proxy.DefaultMethodRejectRE),
	}
	to := &clientrest.Config{Host: "https://" + e.rest, BearerToken: token, TLSClientConfig: clientrest.TLSClientConfig{Insecure: true}}
	handler := expect.Get(proxy.NewProxyHandler("/", filter, to, 0, false))(e)
	server := httptest.NewServer(handler)
	e.Cleanup(server.Close)
	return server.URL
}

// stealing is a page of another site. It asks for pages of the scheduler, and shows what
// it got of each: nothing, where the browser or the server refuses.
const stealing = `<!DOCTYPE html><html lang="en"><title>waiting</title><script>
Promise.all(%s.map(u => fetch(u).then(r => r.text().then(t => r.status + ' ' + t), e => 'nothing'))).then(all => document.title = all.join('|'));
</script>`

// TestBrowserWithAuthorization: with restAuthorization Delegated a browser reads all pages
// through kubectl proxy, without a problem, and a page of another site that is open in the
// same browser reads none of them: the proxy lets it read no answer, and the scheduler
// refuses it, because its request has no token.
func TestBrowserWithAuthorization(t *testing.T) {
	e := setup(t, oneLeaf("2"), queueSort("restAuthorization", "Delegated"))
	token := e.token("reader")
	e.mayRead("reader", "/paddock/*")
	at := e.kubectlProxy(token)
	succeeds(e, "the reader may read", func() error {
		_, err := fetch(e.Context(), http.DefaultClient, at+"/")
		return err
	})
	b := expect.Get(browser.Start(e.Context()))(e)
	defer func() { e.ok(b.Close()) }()
	tab := expect.Get(b.Open(browser.Look{Width: 1400, Height: 900}))(e)
	for _, page := range []string{"", "?queue=root.a", "waiting", "nodes", "node?name=" + shared + "-0000", "decisions", "configuration", "health"} {
		e.ok(tab.Go(at + "/" + page))
		for _, problem := range tab.Problems() {
			t.Errorf("/%s: %s", page, problem)
		}
		const isStyled = "document.styleSheets.length == 1 && document.styleSheets[0].cssRules.length > 10"
		styled, err := browser.Eval[bool](tab, isStyled)
		expect.That(t, err == nil && styled, "/%s has no style sheet: %v", page, err)
	}
	targets := fmt.Sprintf("[%q, %q, %q]", at+"/", at+"/ws/v1/partition/default/queues", "https://"+e.rest+"/ws/v1/partition/default/queues")
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, stealing, targets)
	}))
	defer other.Close()
	e.ok(tab.Go(other.URL))
	eventually(e, patience, "the page of another site got no page", func() (bool, string) {
		title := expect.Get(browser.Eval[string](tab, "document.title"))(e)
		if title != "waiting" && !strings.HasPrefix(title, "nothing|nothing|401 ") {
			e.Fatalf("the page of another site got %s", title)
		}
		return title != "waiting", title
	})
}
