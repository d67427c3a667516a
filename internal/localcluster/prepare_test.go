package localcluster

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

func TestCertificates(t *testing.T) {
	p := expect.Get(newPKI(filepath.Join(t.TempDir(), "pki")))(t)
	roots := x509.NewCertPool()
	roots.AddCert(p.ca.certificate)
	server := parse(t, expect.Get(os.ReadFile(p.file("apiserver.crt")))(t))
	for _, name := range []string{"127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1"} {
		expect.Get(server.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}))(t)
	}
	pair := expect.Get(p.ca.client("jane", "team-a"))(t)
	client := parse(t, pair.ClientCertificateData)
	expect.Get(client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}))(t)
	expect.Same(t, "subject of the client certificate", "CN=jane,O=team-a", client.Subject.String())
	// Only the authority for requests from the front proxy may sign those.
	proxy := expect.Get(os.ReadFile(p.file("front-proxy.crt")))(t)
	anyUse := []x509.ExtKeyUsage{x509.ExtKeyUsageAny}
	expect.Refused(parse(t, proxy).Verify(x509.VerifyOptions{Roots: roots, KeyUsages: anyUse}))(t, "unknown authority")
	expect.Same(t, "mode of a private key", os.FileMode(0o600), expect.Get(os.Stat(p.file("sa.key")))(t).Mode())
}

func parse(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	if block == nil {
		t.Fatal("no PEM data")
	}
	return expect.Get(x509.ParseCertificate(block.Bytes))(t)
}

func TestFreePort(t *testing.T) {
	given := map[int]bool{}
	for range 500 {
		port := expect.Get(freePort())(t)
		expect.That(t, !given[port], "port %d was given twice", port)
		given[port] = true
	}
	for port := range given {
		expect.Holds(t, expect.Get(net.Listen("tcp", address(port)))(t).Close())
	}
}

func TestStateDirIsTakenOverClean(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	d := expect.Get(takeDir(dir))(t)
	expect.Refused(takeDir(dir))(t, ErrInUse.Error())
	expect.OK(t, os.CopyFS(dir, fstest.MapFS{"etcd/member/data": {}, "pki/ca.key": {}, "logs/etcd.log": {}, "notes.txt": {}}))
	expect.OK(t, d.Close())
	again := expect.Get(takeDir(dir))(t)
	for file, want := range map[string]bool{"etcd": false, "pki": false, "logs/etcd.log": false, "logs/etcd.log.old": true, "notes.txt": true} {
		_, err := os.Stat(filepath.Join(dir, file))
		expect.Same(t, file+" exists", want, err == nil)
	}
	expect.Holds(t, again.Close())
}

func TestForeignDirectoryIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "etcd")
	expect.OK(t, os.WriteFile(precious, []byte("x"), 0o600))
	expect.Refused(takeDir(dir))(t, "choose another one")
	expect.Get(os.Stat(precious))(t)
}

func TestOptions(t *testing.T) {
	binary := os.Args[0]
	expect.Refused(Options{Dir: "x", Binary: "no/such/file"}.withDefaults())(t, "make binaries")
	o := expect.Get(Options{Dir: "x", Binary: binary}.withDefaults())(t)
	expect.That(t, filepath.IsAbs(o.Dir), "%s is not absolute", o.Dir)
	expect.Get(Options{Dir: "x", Binary: "no/such/file", Kubeconfig: "k"}.withDefaults())(t)
}

func TestSchedulerConfigIsPointedToTheCluster(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct{ given, want string }{
		"added":    {"kind: X\nprofiles:\n- schedulerName: a\n", "clientConnection:\n  kubeconfig: /k\nkind: X\nprofiles:\n- schedulerName: a\n"},
		"replaced": {"clientConnection: {kubeconfig: old, qps: 5}\n", "clientConnection:\n  kubeconfig: /k\n  qps: 5\n"},
	} {
		run := expect.Get(prepareScheduler(dir, SchedulerOptions{
			Name: "second", Binary: "bin/s", Config: []byte(test.given), Kubeconfig: "/k", Args: []string{"--v=4"}, Env: []string{"A=b"},
		}))(t)
		got := expect.Get(os.ReadFile(filepath.Join(dir, "second", "config.yaml")))(t)
		expect.Same(t, name, test.want, string(got))
		expect.That(t, run.name == "second" && strings.HasPrefix(run.url, "https://127.0.0.1:") &&
			slices.Contains(run.args, "--leader-elect=false") && run.args[len(run.args)-1] == "--v=4" &&
			slices.Contains(run.env, "KUBECONFIG=/k"), "%s: unexpected run %+v", name, run)
	}
}

// TestFlagsOfManifests shows that the flags of a manifest are used unchanged, except for
// the files that they name.
func TestFlagsOfManifests(t *testing.T) {
	dir := t.TempDir()
	run := expect.Get(prepareScheduler(dir, SchedulerOptions{
		Name: "s", Binary: "bin/s", Config: []byte("kind: X\n"), Kubeconfig: "/k", LeaderElection: true, Args: []string{"--v=4"},
		Flags: []string{"--config=/etc/s.yaml", "--authentication-kubeconfig=/etc/a", "--authorization-kubeconfig=/etc/b", "--leader-elect=false"},
	}))(t)
	want := []string{
		"--config=" + filepath.Join(dir, "s", "config.yaml"), "--authentication-kubeconfig=/k", "--authorization-kubeconfig=/k", "--leader-elect=false",
		"--secure-port=" + run.url[strings.LastIndex(run.url, ":")+1:], "--v=4",
	}
	expect.Same(t, "arguments", want, run.args)
}

func TestArgumentsAreWrittenToAllProfiles(t *testing.T) {
	dir := t.TempDir()
	args := []Argument{{"QueueSort", "restAddress", "127.0.0.1:6"}, {"NodeReservation", "holdTaint", "Never"}, {"QueueSort", "restAddress", "127.0.0.1:7"}}
	for _, shipped := range [][]byte{manifests.SecondScheduler, manifests.TwoProfiles, manifests.TwoProfilesDaemonSets} {
		expect.Get(prepareScheduler(dir, SchedulerOptions{Binary: "bin/s", Config: shipped, Kubeconfig: "/k", Arguments: args}))(t)
		got := expect.Get(os.ReadFile(filepath.Join(dir, "scheduler", "config.yaml")))(t)
		want := strings.Count(string(shipped), "name: QueueSort\n")
		expect.That(t, want > 0, "there is no profile in\n%s", shipped)
		for _, line := range []string{"      restAddress: 127.0.0.1:7\n    name: QueueSort\n", "      holdTaint: Never\n    name: NodeReservation\n"} {
			expect.Same(t, line, want, strings.Count(string(got), line))
		}
	}
}

func TestBadSchedulerOptions(t *testing.T) {
	dir := t.TempDir()
	plain := []byte("profiles: [{schedulerName: a}, 7]\n")
	for want, o := range map[string]SchedulerOptions{
		"only comments":  {Binary: "b", Config: []byte("# none\n")},
		"did not find":   {Binary: "b", Config: []byte("a: [\n")},
		"holdTaint of X": {Binary: "b", Config: []byte("profiles: [7]\n"), Arguments: []Argument{{Plugin: "X", Name: "holdTaint"}}},
		"need a Config":  {Binary: "b", Flags: []string{"--config=/etc/s.yaml"}},
		"and --config=":  {Binary: "b", Config: plain, Flags: []string{"--v=2"}},
	} {
		expect.Refused(prepareScheduler(dir, o))(t, want)
	}
}

func names(objects []*unstructured.Unstructured) (out []string) {
	for _, o := range objects {
		out = append(out, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
	}
	return out
}

// Every binding keeps the service account of the manifest and gets the user of local clusters.
func TestSchedulerAccess(t *testing.T) {
	objects := expect.Get(schedulerAccess())(t)
	both := []any{
		map[string]any{"kind": "ServiceAccount", "name": "paddock-scheduler", "namespace": "yunikorn"},
		map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-scheduler"},
	}
	for _, o := range objects {
		if _, isBinding := o.Object["roleRef"]; isBinding {
			expect.Same(t, o.GetName()+": subjects", both, o.Object["subjects"])
		}
	}
	before, moved := names(objects), movedTo(objects, "elsewhere")
	want := []string{"Role elsewhere/paddock-scheduler-queues", "RoleBinding elsewhere/paddock-scheduler-queues"}
	expect.Same(t, "objects in another namespace", want, names(moved))
	expect.Same(t, "the originals were changed", before, names(objects))
}

func TestAwaitGranted(t *testing.T) {
	c := testCluster(t)
	asked := 0
	answer := func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		s := review.Spec
		expect.That(t, s.User == "system:kube-scheduler" && s.ResourceAttributes.Namespace == "ns",
			"asked about %+v", s)
		asked++
		review.Status.Allowed = asked == 3
		return true, review, nil
	}
	c.client.(*fake.Clientset).PrependReactor("create", "subjectaccessreviews", answer)
	expect.Holds(t, c.awaitGranted(t.Context(), "ns"))
	expect.Same(t, "questions", 3, asked)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := c.awaitGranted(ctx, "ns")
	expect.That(t, errors.Is(err, context.DeadlineExceeded), "got %v, want the end of patience", err)
}
