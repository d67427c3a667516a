package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

// load reads the configuration as app.Setup does.
func load(t *testing.T, path string) *schedconfig.KubeSchedulerConfiguration {
	t.Helper()
	return expect.Get(options.LoadConfigFromFile(klog.Background(), path))(t)
}

// builtin returns what a command line without --config is given.
func builtin(t *testing.T, args ...string) *schedconfig.KubeSchedulerConfiguration {
	t.Helper()
	opts := parse(t, args...)
	done := expect.Get(useBuiltin(opts))(t)
	cfg := load(t, opts.ConfigFile)
	done()
	expect.Same(t, "--config afterwards", "", opts.ConfigFile)
	return cfg
}

func shipped(t *testing.T) *schedconfig.KubeSchedulerConfiguration {
	t.Helper()
	return load(t, configFile(t, manifests.SecondScheduler))
}

func TestBuiltinIsTheShippedFile(t *testing.T) {
	expect.Same(t, "built-in configuration", shipped(t), builtin(t))
}

func TestBuiltinHonoursFlags(t *testing.T) {
	want := shipped(t)
	want.ClientConnection.Kubeconfig = "admin.conf"
	want.ClientConnection.ContentType = "application/json"
	want.ClientConnection.QPS = 7
	want.ClientConnection.Burst = 9
	want.EnableProfiling = false
	want.EnableContentionProfiling = false
	got := builtin(t, "--kubeconfig=admin.conf", "--kube-api-content-type=application/json",
		"--kube-api-qps=7", "--kube-api-burst=9", "--profiling=false", "--contention-profiling=false")
	expect.Same(t, "built-in configuration with flags", want, got)
}

func TestBuiltinLeavesAConfigFileAlone(t *testing.T) {
	opts := parse(t, "--config=mine.yaml", "--kube-api-qps=7")
	done := expect.Get(useBuiltin(opts))(t)
	done()
	expect.Same(t, "--config", "mine.yaml", opts.ConfigFile)
}

// The flags that upstream honours with and without --config reach the elector.
func TestLeaseOfTheBuiltin(t *testing.T) {
	silenceBuiltin(t)
	for _, test := range []struct {
		name, lock string
		flags      []string
		lease      time.Duration
	}{
		{"default", "kube-system/paddock-scheduler", nil, 15 * time.Second},
		{"flags", "queues/mine", []string{
			"--leader-elect-resource-namespace=queues", "--leader-elect-resource-name=mine",
			"--leader-elect-lease-duration=1m",
		}, time.Minute},
	} {
		cc, _, err := setUp(t, parse(t, test.flags...))
		expect.OK(t, err)
		expect.Same(t, test.name+": lease", test.lock, cc.LeaderElection.Lock.Describe())
		expect.Same(t, test.name+": lease duration", test.lease, cc.LeaderElection.LeaseDuration)
	}
}

// TestMain runs the command instead of the tests if commandEnv is set, so that
// tests can run it as a process: it ends by os.Exit.
func TestMain(m *testing.M) {
	if os.Getenv(commandEnv) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

const commandEnv = "PADDOCK_TEST_RUN_COMMAND"

// parse returns the options of a command line. The API server it names does not
// exist: making a scheduler asks nothing of it.
func parse(t *testing.T, args ...string) *options.Options {
	t.Helper()
	opts := options.NewOptions()
	expect.OK(t, newCommand(opts).ParseFlags(append([]string{"--master=http://127.0.0.1:1", "--secure-port=0"}, args...)))
	return opts
}

// setUp makes the scheduler as run does.
func setUp(t *testing.T, opts *options.Options) (*schedserverconfig.CompletedConfig, *scheduler.Scheduler, error) {
	t.Helper()
	done := expect.Get(useBuiltin(opts))(t)
	defer done()
	return app.Setup(t.Context(), opts, plugins()...)
}

// withoutREST returns a shipped configuration that opens no port.
func withoutREST(t *testing.T, document []byte) []byte {
	t.Helper()
	const anchor = "      managedProfiles: [yunikorn]\n"
	expect.Says(t, string(document), anchor)
	return bytes.ReplaceAll(document, []byte(anchor), []byte(anchor+"      restAddress: \"\"\n"))
}

func configFile(t *testing.T, document []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	expect.OK(t, os.WriteFile(path, document, 0o600))
	return path
}

// silenceBuiltin makes the built-in configuration open no port during a test.
func silenceBuiltin(t *testing.T) {
	t.Helper()
	shipped := manifests.SecondScheduler
	t.Cleanup(func() { manifests.SecondScheduler = shipped })
	manifests.SecondScheduler = withoutREST(t, shipped)
}
