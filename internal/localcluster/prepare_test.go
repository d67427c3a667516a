package localcluster

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	manifests "github.com/paddock-scheduler/paddock/manifests/config"

	"github.com/paddock-scheduler/paddock/internal/expect"
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
	if client.Subject.CommonName != "jane" || !slices.Equal(client.Subject.Organization, []string{"team-a"}) {
		t.Errorf("client certificate is for %v", client.Subject)
	}
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
	d := expect.Get(OpenStateDir(dir))(t)
	expect.Refused(OpenStateDir(dir))(t, ErrInUse.Error())
	expect.OK(t, os.CopyFS(dir, fstest.MapFS{"etcd/member/data": {}, "pki/ca.key": {}, "logs/etcd.log": {}, "notes.txt": {}}))
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
		o := expect.Get(Options{Dir: "x", Binary: binary, Nodes: nodes}.withDefaults())(t)
		expect.Same(t, fmt.Sprint("lease with nodes: ", nodes), want, o.lease())
		expect.That(t, filepath.IsAbs(o.Dir), "%s is not absolute", o.Dir)
	}
}

// given writes a configuration of a scheduler into a directory.
func given(t *testing.T, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "given.yaml")
	expect.OK(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestSchedulerConfigIsPointedToTheCluster(t *testing.T) {
	dir := t.TempDir()
	for name, test := range map[string]struct{ given, want string }{
		"added":    {"kind: X\nprofiles:\n- schedulerName: a\n", "clientConnection:\n  kubeconfig: /k\nkind: X\nprofiles:\n- schedulerName: a\n"},
		"replaced": {"clientConnection: {kubeconfig: old, qps: 5}\n", "clientConnection:\n  kubeconfig: /k\n  qps: 5\n"},
	} {
		run := expect.Get(prepareScheduler(dir, SchedulerOptions{
			Name: "second", Binary: "bin/s", Config: given(t, dir, test.given), Kubeconfig: "/k", Args: []string{"--v=4"}, Env: []string{"A=b"},
		}))(t)
		got := expect.Get(os.ReadFile(filepath.Join(dir, "second", "config.yaml")))(t)
		expect.Same(t, name, test.want, string(got))
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
	run := expect.Get(prepareScheduler(dir, SchedulerOptions{
		Name: "s", Binary: "bin/s", Config: given(t, dir, "kind: X\n"), Kubeconfig: "/k", LeaderElection: true, Args: []string{"--v=4"},
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
		from := given(t, dir, string(shipped))
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
