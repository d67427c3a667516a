package localcluster

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	manifests "github.com/paddock-scheduler/paddock/manifests/config"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

func TestCertificates(t *testing.T) {
	p := expect.Get(newPKI(filepath.Join(t.TempDir(), "pki")))(t)
	roots := x509.NewCertPool()
	roots.AddCert(p.ca.certificate)
	server := expect.Get(os.ReadFile(p.file("apiserver.crt")))(t)
	for _, name := range []string{"127.0.0.1", "localhost", "kubernetes.default.svc", "10.96.0.1"} {
		if _, err := parse(t, server).Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Errorf("server certificate for %s: %v", name, err)
		}
	}
	pair := expect.Get(p.ca.client("jane", "team-a"))(t)
	client := parse(t, pair.ClientCertificateData)
	expect.Get(client.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}))(t)
	if client.Subject.CommonName != "jane" || !slices.Equal(client.Subject.Organization, []string{"team-a"}) {
		t.Errorf("client certificate is for %v", client.Subject)
	}
	// Only the authority for requests from the front proxy may sign those.
	proxy := expect.Get(os.ReadFile(p.file("front-proxy.crt")))(t)
	if _, err := parse(t, proxy).Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err == nil {
		t.Error("the front proxy's certificate is signed by the cluster's authority")
	}
	info, err := os.Stat(p.file("sa.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("private key is readable by others: %v %v", info.Mode(), err)
	}
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
	var ports []int
	for range 500 {
		ports = append(ports, expect.Get(freePort())(t))
	}
	slices.Sort(ports)
	if n := len(slices.Compact(slices.Clone(ports))); n != 500 {
		t.Errorf("%d of 500 ports were given twice: %v", 500-n, ports)
	}
	for _, port := range ports {
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			t.Errorf("port %d is not free: %v", port, err)
			continue
		}
		expect.Holds(t, l.Close())
	}
}

func TestStateDirIsTakenOverClean(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	d := expect.Get(OpenStateDir(dir))(t)
	if _, err := OpenStateDir(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v for a directory in use, want ErrInUse", err)
	}
	for _, file := range []string{"etcd/member/data", "pki/ca.key", "logs/etcd.log", "notes.txt"} {
		path := filepath.Join(dir, file)
		expect.OK(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("x"), 0o600)))
	}
	expect.OK(t, d.Close())
	again := expect.Get(OpenStateDir(dir))(t)
	for file, want := range map[string]bool{"etcd": false, "pki": false, "logs/etcd.log": false, "logs/etcd.log.old": true, "notes.txt": true} {
		if _, err := os.Stat(filepath.Join(dir, file)); (err == nil) != want {
			t.Errorf("%s: exists is %v, want %v", file, err == nil, want)
		}
	}
	expect.Holds(t, again.Close())
}

func TestForeignDirectoryIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "etcd")
	expect.OK(t, os.WriteFile(precious, []byte("x"), 0o600))
	expect.Refused(OpenStateDir(dir))(t, "choose another one")
	expect.Get(os.Stat(precious))(t)
}

func TestOptions(t *testing.T) {
	binary := os.Args[0]
	expect.Refused(Options{Dir: "x", Binary: "no/such/file"}.withDefaults())(t, "go build")
	for nodes, want := range map[int]time.Duration{0: 40 * time.Second, 500: 40 * time.Second, 501: 5 * time.Minute} {
		o, err := Options{Dir: "x", Binary: binary, Nodes: nodes}.withDefaults()
		if err != nil || o.lease() != want || !filepath.IsAbs(o.Dir) {
			t.Errorf("%d nodes: lease %v, dir %s, %v", nodes, o.lease(), o.Dir, err)
		}
	}
}

func TestKubeconfigs(t *testing.T) {
	c := testCluster(t)
	c.pki = expect.Get(newPKI(filepath.Join(c.options.Dir, "pki")))(t)
	expect.OK(t, c.writeKubeconfigs())
	for user, want := range map[string]string{UserAdmin: "admin", UserScheduler: "system:kube-scheduler"} {
		config := expect.Get(clientcmd.BuildConfigFromFlags("", c.KubeconfigPath(user)))(t)
		if name := parse(t, config.CertData).Subject.CommonName; name != want || config.Host != "https://127.0.0.1:3" {
			t.Errorf("%s: certificate of %s for %s", user, name, config.Host)
		}
	}
}

func TestSchedulerConfigIsPointedToTheCluster(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "given.yaml")
	for name, test := range map[string]struct{ given, want string }{
		"added":    {"kind: X\nprofiles:\n- schedulerName: a\n", "clientConnection:\n  kubeconfig: /k\nkind: X\nprofiles:\n- schedulerName: a\n"},
		"replaced": {"clientConnection: {kubeconfig: old, qps: 5}\n", "clientConnection:\n  kubeconfig: /k\n  qps: 5\n"},
	} {
		expect.OK(t, os.WriteFile(from, []byte(test.given), 0o600))
		run := expect.Get(prepareScheduler(dir, SchedulerOptions{Name: "second", Binary: "bin/s", Config: from, Kubeconfig: "/k", Args: []string{"--v=4"}, Env: []string{"A=b"}}))(t)
		got, err := os.ReadFile(filepath.Join(dir, "second", "config.yaml"))
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
		if run.name != "second" || !slices.Contains(run.args, "--leader-elect=false") || run.args[len(run.args)-1] != "--v=4" ||
			!slices.Contains(run.env, "KUBECONFIG=/k") || !strings.HasPrefix(run.url, "https://127.0.0.1:") {
			t.Errorf("%s: unexpected run %+v", name, run)
		}
	}
}

// TestFlagsOfManifests shows that the flags of a manifest are used unchanged, except for
// the files that they name.
func TestFlagsOfManifests(t *testing.T) {
	dir := t.TempDir()
	from := filepath.Join(dir, "given.yaml")
	expect.OK(t, os.WriteFile(from, []byte("kind: X\n"), 0o600))
	run := expect.Get(prepareScheduler(dir, SchedulerOptions{
		Name: "s", Binary: "bin/s", Config: from, Kubeconfig: "/k", LeaderElection: true, Args: []string{"--v=4"},
		Flags: []string{"--config=/etc/s.yaml", "--authentication-kubeconfig=/etc/a", "--authorization-kubeconfig=/etc/b", "--leader-elect=false"},
	}))(t)
	want := []string{
		"--config=" + filepath.Join(dir, "s", "config.yaml"), "--authentication-kubeconfig=/k", "--authorization-kubeconfig=/k", "--leader-elect=false",
		"--secure-port=" + run.url[strings.LastIndex(run.url, ":")+1:], "--v=4",
	}
	expect.Same(t, "arguments", want, run.args)
}

func TestRESTAddressIsWrittenToAllProfiles(t *testing.T) {
	dir := t.TempDir()
	for _, shipped := range [][]byte{manifests.SecondScheduler, manifests.TwoProfiles, manifests.TwoProfilesDaemonSets} {
		from := filepath.Join(dir, "given.yaml")
		expect.OK(t, os.WriteFile(from, shipped, 0o600))
		expect.Get(prepareScheduler(dir, SchedulerOptions{Binary: "bin/s", Config: from, Kubeconfig: "/k", RESTAddress: "127.0.0.1:7"}))(t)
		got := expect.Get(os.ReadFile(filepath.Join(dir, "scheduler", "config.yaml")))(t)
		want := strings.Count(string(shipped), "name: QueueSort\n")
		if n := strings.Count(string(got), "restAddress: 127.0.0.1:7\n"); n != want || n == 0 {
			t.Errorf("restAddress was written %d times, want %d:\n%s", n, want, got)
		}
	}
}

func TestBadSchedulerOptions(t *testing.T) {
	dir := t.TempDir()
	empty, broken := filepath.Join(dir, "empty"), filepath.Join(dir, "broken")
	plain := filepath.Join(dir, "plain")
	expect.OK(t, errors.Join(os.WriteFile(plain, []byte("profiles: [{schedulerName: a}, 7]\n"), 0o600), os.WriteFile(empty, nil, 0o600), os.WriteFile(broken, []byte("a: [\n"), 0o600)))
	for want, o := range map[string]SchedulerOptions{
		"empty":             {Binary: "b", Config: empty},
		broken:              {Binary: "b", Config: broken},
		"no such file":      {Binary: "b", Config: filepath.Join(dir, "missing")},
		"args of QueueSort": {Binary: "b", Config: plain, RESTAddress: "127.0.0.1:7"},
		"need a Config":     {Binary: "b", Flags: []string{"--config=/etc/s.yaml"}},
		"and --config=":     {Binary: "b", Config: plain, Flags: []string{"--v=2"}},
	} {
		expect.Refused(prepareScheduler(dir, o))(t, want)
	}
}
