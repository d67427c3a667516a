package localcluster

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"path/filepath"
	"time"
)

// The components of a cluster, in the order they are started.
const (
	Etcd              = "etcd"
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Nodes             = "nodes"
)

// ports are those of one cluster.
type ports struct {
	etcd, etcdPeer, apiServer, controllerManager, nodes int
}

func newPorts() (p ports, err error) {
	for _, port := range []*int{&p.etcd, &p.etcdPeer, &p.apiServer, &p.controllerManager, &p.nodes} {
		if *port, err = freePort(); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (c *Cluster) apiURL() string  { return "https://" + address(c.ports.apiServer) }
func (c *Cluster) etcdURL() string { return "http://" + address(c.ports.etcd) }

// component returns the program of a component.
func (c *Cluster) component(name, url, ready string, readyIn time.Duration, args ...string) program {
	return program{name: name, binary: c.options.Binary, args: append([]string{name}, args...), url: url, ready: ready, readyIn: readyIn}
}

// etcd does not sync to disk, and elects itself at once: the data is not needed after the
// cluster's end.
func (c *Cluster) etcd() program {
	peer := "http://" + address(c.ports.etcdPeer)
	return c.component(Etcd, c.etcdURL(), "/health", 30*time.Second,
		"--name=local", "--data-dir="+filepath.Join(c.options.Dir, "etcd"),
		"--listen-client-urls="+c.etcdURL(), "--advertise-client-urls="+c.etcdURL(),
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=local="+peer,
		"--unsafe-no-fsync", "--heartbeat-interval=10", "--election-timeout=100",
		"--quota-backend-bytes=8589934592", "--log-level=warn")
}

func (c *Cluster) apiServer() program {
	args := []string{
		"--etcd-servers=" + c.etcdURL(), "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", c.ports.apiServer),
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
		"--tls-cert-file=" + c.pki.file("apiserver.crt"), "--tls-private-key-file=" + c.pki.file("apiserver.key"),
		"--client-ca-file=" + c.pki.file("ca.crt"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + c.pki.file("sa.pub"), "--service-account-signing-key-file=" + c.pki.file("sa.key"),
		"--requestheader-client-ca-file=" + c.pki.file("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + c.pki.file("front-proxy.crt"), "--proxy-client-key-file=" + c.pki.file("front-proxy.key"),
		"--max-requests-inflight=2000", "--max-mutating-requests-inflight=1000",
	}
	args = append(args, c.options.APIServerArgs...)
	return c.component(APIServer, c.apiURL(), "/readyz", 2*time.Minute, args...)
}

// controllerManager runs all default controllers. Without more QPS the first service account takes five seconds; without
// the FlexVolume directory it would make one below /usr. Nodes renew no lease, and none of them fails, so it waits a year
// for a sign of life.
func (c *Cluster) controllerManager() program {
	kubeconfig := c.KubeconfigPath(userControllerManager)
	return c.component(ControllerManager, "https://"+address(c.ports.controllerManager), "/healthz", time.Minute,
		"--kubeconfig="+kubeconfig, "--authentication-kubeconfig="+kubeconfig, "--authorization-kubeconfig="+kubeconfig,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.ports.controllerManager),
		"--cert-dir="+filepath.Join(c.options.Dir, "kube-controller-manager"), "--leader-elect=false",
		"--use-service-account-credentials=true", "--service-account-private-key-file="+c.pki.file("sa.key"),
		"--root-ca-file="+c.pki.file("ca.crt"),
		"--cluster-signing-cert-file="+c.pki.file("ca.crt"), "--cluster-signing-key-file="+c.pki.file("ca.key"),
		"--flex-volume-plugin-dir="+filepath.Join(c.options.Dir, "flexvolume"), "--service-cluster-ip-range=10.96.0.0/16",
		"--kube-api-qps=200", "--kube-api-burst=400",
		"--concurrent-deployment-syncs=10", "--concurrent-replicaset-syncs=10", "--concurrent-gc-syncs=20", "--concurrent-namespace-syncs=20",
		"--node-monitor-grace-period=8760h")
}

func (c *Cluster) nodeAgent() program {
	return c.component(Nodes, "http://"+address(c.ports.nodes), "/readyz", time.Minute,
		"--kubeconfig="+c.KubeconfigPath(UserAdmin), "--listen="+address(c.ports.nodes))
}

// probe shows no certificate, because readiness needs no permission, and does not check the
// server's, as most components sign their own.
var probe = &http.Client{
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	Timeout:   5 * time.Second,
}

// awaitReady polls the ready path of a process.
func (p *Process) awaitReady(ctx context.Context) error {
	return awaitProcess(ctx, p, p.readyIn, func(ctx context.Context) (bool, error) {
		return answers(ctx, p.url+p.ready)
	})
}

// answers tells whether a URL answers 200.
func answers(ctx context.Context, url string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, fmt.Errorf("probe %s: %w", url, err)
	}
	response, err := probe.Do(request)
	if err != nil {
		return false, nil // not up yet
	}
	defer response.Body.Close()
	return response.StatusCode == http.StatusOK, nil
}
