package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/localcluster/demo"
	"github.com/paddock-scheduler/paddock/manifests/samples"
)

// TestMain makes the test binary a scheduler where that is its name: it says how it was started, and is ready.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "scheduler" {
		os.Exit(m.Run())
	}
	fmt.Println(os.Args)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	_, port, _ := strings.Cut(os.Args[len(os.Args)-1], "--secure-port=")
	s.Listener, _ = net.Listen("tcp", "127.0.0.1:"+port) // StartTLS panics without it
	s.StartTLS()
	select {}
}

// api is an API server, as far as samples need one: it keeps objects by their paths.
type api struct {
	mu      sync.Mutex
	objects map[string]json.RawMessage
	keeps   bool // refuses to delete
}

var discovery = map[string]string{
	"/api": `{"kind": "APIVersions", "versions": ["v1"]}`,
	"/apis": `{"kind": "APIGroupList", "groups": [
		{"name": "apps", "versions": [{"groupVersion": "apps/v1", "version": "v1"}]}, {"name": "batch", "versions": [{"groupVersion": "batch/v1", "version": "v1"}]}]}`,
	"/api/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "v1", "resources": [{"name": "namespaces", "kind": "Namespace"},
		{"name": "configmaps", "kind": "ConfigMap", "namespaced": true}, {"name": "pods", "kind": "Pod", "namespaced": true}]}`,
	"/apis/apps/v1":  `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment", "namespaced": true}]}`,
	"/apis/batch/v1": `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "batch/v1", "resources": [{"name": "jobs", "kind": "Job", "namespaced": true}]}`,
}

const sampleNamespace = "/api/v1/namespaces/paddock-sample-shop"

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	path := r.URL.Path
	var made unstructured.Unstructured
	if r.Method == http.MethodPost {
		_ = json.NewDecoder(r.Body).Decode(&made) // what cannot be read has no name, and is not there
		path += "/" + made.GetName()
	}
	object, found := a.objects[path]
	switch {
	case discovery[path] != "":
		fmt.Fprint(w, discovery[path])
	case r.Method == http.MethodGet && path == "/api/v1/namespaces":
		_ = json.NewEncoder(w).Encode(corev1.NamespaceList{Items: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "paddock-sample-shop"}}}})
	case r.Method == http.MethodGet && path == sampleNamespace+"/pods": // all are placed
		_ = json.NewEncoder(w).Encode(corev1.PodList{Items: placedPods(samples.Placed)})
	case r.Method == http.MethodPost && found:
		w.WriteHeader(http.StatusConflict)
	case r.Method == http.MethodPost:
		a.objects[path], _ = made.MarshalJSON()
		_, _ = w.Write(a.objects[path])
	case !found:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete && a.keeps:
		w.WriteHeader(http.StatusForbidden)
	case r.Method == http.MethodDelete:
		delete(a.objects, path)
	default:
		_, _ = w.Write(object)
	}
}

func placedPods(n int) []corev1.Pod {
	pods := make([]corev1.Pod, n)
	for i := range pods {
		pods[i].Name, pods[i].Spec.NodeName = fmt.Sprint("p", i), "theirs"
	}
	return pods
}

// count is how many objects there are.
func (a *api) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.objects)
}

func kubeconfigOf(server string) string {
	return fmt.Sprintf("{current-context: c, contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}", server)
}

// existing is a launcher for a cluster with a namespace yunikorn of its own. It hears what the launcher says.
func existing(t *testing.T, hears func(said string)) (*launcher, *api) {
	t.Helper()
	theirs := &api{objects: map[string]json.RawMessage{
		"/api/v1/namespaces/yunikorn": json.RawMessage(`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "yunikorn"}}`),
	}}
	server := httptest.NewServer(theirs)
	t.Cleanup(server.Close)
	bin, kubeconfig := t.TempDir(), filepath.Join(t.TempDir(), "theirs")
	expect.OK(t, errors.Join(
		os.Symlink(expect.Get(os.Executable())(t), filepath.Join(bin, "scheduler")),
		os.WriteFile(filepath.Join(bin, "kubectl-paddock"), []byte("#!/bin/sh\necho \"a table by $*\"\n"), 0o700),
		os.WriteFile(kubeconfig, []byte(kubeconfigOf(server.URL)), 0o600)))
	return &launcher{settings: settings{bin: bin, dir: t.TempDir(), nodes: 1, kubeconfig: kubeconfig}, screen: newScreen(hearing(hears))}, theirs
}

type hearing func(said string)

func (h hearing) Write(text []byte) (int, error) {
	h(string(text))
	return len(text), nil
}

// TestExistingCluster: with KUBECONFIG only a scheduler is started, as a second one for that cluster. At the
// end the samples are gone, and what was there before is not.
func TestExistingCluster(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var said, pods bytes.Buffer
	var l *launcher
	var theirs *api
	l, theirs = existing(t, func(text string) {
		said.WriteString(text)
		if strings.Contains(text, "Ctrl-C") {
			expect.Same(t, "objects", len(expect.Get(demo.Read(samples.Files))(t)), theirs.count())
			expect.Holds(t, runCommand(ctx, l.dir, []string{"pods"}, &pods))
			cancel()
		}
	})
	expect.Holds(t, l.run(ctx))
	expect.Says(t, said.String(), "using the existing cluster of "+l.kubeconfig, "Namespace yunikorn exists and is not ours: left as it is\n",
		fmt.Sprintf("%d sample pods are placed", samples.Placed), "a table by queues --server http://"+l.restAddress, "kubeconfig   "+l.kubeconfig+"\n",
		"removes the samples; the cluster stays", "everything is stopped\n")
	expect.Same(t, "objects that are left", 1, theirs.count())
	expect.Same(t, "lines of the command pods", 1+samples.Placed, strings.Count(pods.String(), "\n"))
	runs(t, []string{"--dir", l.dir, "pods"}, 1, "no cluster runs in ")
	logs := expect.Get(filepath.Glob(filepath.Join(l.dir, "logs", "*")))(t)
	expect.Same(t, "logs of what was started", []string{filepath.Join(l.dir, "logs", "scheduler.log")}, logs)
	expect.Says(t, string(expect.Get(os.ReadFile(logs[0]))(t)), "--leader-elect=true", "--kubeconfig="+l.kubeconfig)
	config := string(expect.Get(os.ReadFile(filepath.Join(l.dir, "scheduler", "config.yaml")))(t))
	expect.That(t, strings.Contains(config, "schedulerName: yunikorn") && !strings.Contains(config, "schedulerName: default-scheduler"),
		"unexpected profiles in\n%s", config)
}

// TestSamplesThatStayAreAnError: also where Ctrl-C interrupts the start.
func TestSamplesThatStayAreAnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var theirs *api
	var l *launcher
	l, theirs = existing(t, func(said string) {
		expect.That(t, !strings.Contains(said, "everything is stopped"), "it says %q", said)
		if strings.Contains(said, "samples are applied") {
			theirs.mu.Lock()
			defer theirs.mu.Unlock()
			theirs.keeps = true
			cancel()
		}
	})
	expect.Fails(t, l.run(ctx), "delete Namespace paddock-sample-shop: ")
}

// TestEndOfAProcessEndsTheStart: a process that ends while another one starts is reported at once.
func TestEndOfAProcessEndsTheStart(t *testing.T) {
	var cluster *localcluster.Cluster
	l, _ := existing(t, func(said string) {
		if strings.Contains(said, "samples are applied") {
			expect.Holds(t, syscall.Kill(cluster.Process("other").PID(), syscall.SIGKILL))
		}
	})
	cluster = expect.Get(l.start(t.Context()))(t)
	defer func() { expect.Holds(t, cluster.Stop()) }()
	expect.Get(cluster.StartScheduler(t.Context(), localcluster.SchedulerOptions{Name: "other", Binary: l.binary("scheduler")}))(t)
	expect.OK(t, os.Remove(l.binary("scheduler")))
	expect.OK(t, os.WriteFile(l.binary("scheduler"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	applier := expect.Get(demo.NewApplier(cluster.AdminConfig()))(t)
	expect.Fails(t, l.untilEnd(t.Context(), cluster, applier), "other ended by itself (signal: killed)")
}
