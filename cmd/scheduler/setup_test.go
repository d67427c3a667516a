package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	schedserverconfig "k8s.io/kubernetes/cmd/kube-scheduler/app/config"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	"k8s.io/kubernetes/pkg/scheduler"

	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

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

// configFile writes a configuration to a file and returns its path.
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
