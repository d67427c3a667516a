package integration

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// pool is the label that keeps the pods of a test on the nodes of that test.
const pool = "integration/pool"

// shared is the pool of tests that need no nodes of their own.
const shared = "shared"

// suite is the state that all tests share.
var suite struct {
	cluster   *localcluster.Cluster
	client    kubernetes.Interface
	scheduler string // path of the binary
	launcher  string // path of the program behind "make run"
	plugin    string // path of kubectl-paddock
	audit     string // path of the API server's audit log
}

// TestMain keeps the directory with logs and state if a test failed.
func TestMain(m *testing.M) {
	flag.Parse()
	dir, err := os.MkdirTemp("", "integration-")
	if err == nil {
		err = startSuite(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "integration: cannot start:", err)
		os.Exit(1)
	}
	code := m.Run()
	if err := suite.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "integration: logs are in", filepath.Join(dir, "cluster", "logs"))
	} else if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
	}
	os.Exit(code)
}

func startSuite(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // a first build takes long
	defer cancel()
	began := time.Now()
	if err := compile(ctx); err != nil {
		return err
	}
	fmt.Printf("integration: built for %.1f s\n", time.Since(began).Seconds())
	binaries, err := filepath.Abs(filepath.Join(root, "bin"))
	if err != nil {
		return err
	}
	suite.scheduler, suite.launcher = filepath.Join(binaries, "scheduler"), filepath.Join(binaries, "localcluster")
	suite.plugin = filepath.Join(binaries, "kubectl-paddock")
	audit, err := auditArgs(dir)
	if err != nil {
		return err
	}
	suite.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Dir: filepath.Join(dir, "cluster"), Binary: filepath.Join(binaries, "localplane"), Nodes: 3,
		NodeSpec: localcluster.NodeSpec{NamePrefix: shared, CPU: "32", Memory: "128Gi", Labels: map[string]string{pool: shared}},
		Progress: func(s string) { fmt.Println("integration:", s) },
		// A beta that is off by default; see TestSetSchedulerName.
		APIServerArgs: append(audit, "--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true"),
	})
	if err != nil {
		var died *localcluster.DiedError
		if errors.As(err, &died) {
			fmt.Fprintln(os.Stderr, died.Tail)
		}
		return err
	}
	suite.client = suite.cluster.Client()
	return nil
}

// root is the directory of the repository.
const root = "../.."

// compile has make build programs as far as needed, all of cmd unless some are named: the
// Makefile has the flags of all builds.
func compile(ctx context.Context, programs ...string) error {
	build := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", root, "binaries", "PROGRAMS="+strings.Join(programs, " "))
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("make binaries: %w\n%s", err, text)
	}
	return nil
}
