package docs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

var rewrite = flag.Bool("rewrite", false, "write the outputs in the pages anew")

// suite is the state that all tests share.
var suite struct {
	root    string // of the repository
	cluster *localcluster.Cluster
	rest    string // URL of the scheduler
	secure  string // URL of a scheduler that requires a certificate and a token
	work    string // where commands are run
	env     []string
}

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(runSuite(m))
}

// runSuite returns the exit code. The state directory stays if a test failed.
func runSuite(m *testing.M) int {
	dir, err := os.MkdirTemp("", "docs-")
	if err == nil {
		err = start(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "docs: cannot start:", err)
		var died *localcluster.DiedError
		if errors.As(err, &died) {
			fmt.Fprintln(os.Stderr, died.Tail)
		}
		return 1
	}
	code := m.Run()
	if err := suite.cluster.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
		code = 1
	}
	if code != 0 {
		fmt.Fprintln(os.Stderr, "docs: logs are in", filepath.Join(dir, "logs"))
		return code
	}
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, "docs:", err)
	}
	return code
}

func start(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute) // a first build takes long
	defer cancel()
	var err error
	if suite.root, err = filepath.Abs("../../.."); err != nil {
		return err
	}
	began := time.Now()
	if err := compile(ctx); err != nil {
		return err
	}
	fmt.Printf("docs: built for %.1f s\n", time.Since(began).Seconds())
	bin := filepath.Join(suite.root, "bin")
	suite.cluster, err = localcluster.Start(ctx, localcluster.Options{
		Dir: dir, Binary: filepath.Join(bin, "localplane"), Nodes: 1,
		NodeSpec: localcluster.NodeSpec{NamePrefix: "node", CPU: "6", Memory: "16Gi"},
		Progress: func(s string) { fmt.Println("docs:", s) },
		APIServerArgs: []string{
			"--feature-gates=MutatingAdmissionPolicy=true", "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
		},
	})
	if err != nil {
		return err
	}
	if err = prepareWork(filepath.Join(dir, "work"), bin); err == nil {
		err = stage(ctx, bin)
	}
	if err != nil {
		return errors.Join(err, suite.cluster.Stop())
	}
	return nil
}

// compile builds our programs, kubectl and helm as far as needed.
func compile(ctx context.Context) error {
	if text, err := exec.CommandContext(ctx, "make", "--no-print-directory", "-C", suite.root, "binaries").CombinedOutput(); err != nil {
		return fmt.Errorf("make binaries: %w\n%s", err, text)
	}
	clients := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(suite.root, "bin", "tools")+"/", "./kubectl", "helm.sh/helm/v3/cmd/helm")
	clients.Dir = filepath.Join(suite.root, "tools", "clients")
	if text, err := clients.CombinedOutput(); err != nil {
		return fmt.Errorf("build kubectl and helm: %w\n%s", err, text)
	}
	return nil
}

// plugin is what "kubectl paddock" runs. The nodes have no network, so no Service leads
// to a scheduler: requests get the scheduler's address, unless they name one.
const plugin = `#!/bin/sh
case "$1 $2 $*" in
  *" --server "*) ;;
  queues*|top*|decisions*|holds*|explain*|preview*|*" diff "*--live*) exec %[1]s "$@" --server "%[2]s" ;;
esac
exec %[1]s "$@"
`

// prepareWork makes the directory in which commands are run: the files of the root except
// bin, and the files that the pages mention.
func prepareWork(work, bin string) error {
	suite.work = work
	path := filepath.Join(work, ".path")
	errs := []error{os.MkdirAll(path, 0o755)}
	for _, name := range []string{"manifests", "docs", "README.md", "Makefile"} {
		errs = append(errs, os.Symlink(filepath.Join(suite.root, name), filepath.Join(work, name)))
	}
	for _, name := range []string{"kubectl", "helm"} {
		errs = append(errs, os.Symlink(filepath.Join(bin, "tools", name), filepath.Join(path, name)))
	}
	address, err := localcluster.FreeAddress()
	suite.rest = "http://" + address
	script := fmt.Sprintf(plugin, filepath.Join(bin, "kubectl-paddock"), suite.rest)
	errs = append(errs, err, os.WriteFile(filepath.Join(path, "kubectl-paddock"), []byte(script), 0o755),
		os.CopyFS(work, os.DirFS("testdata/work")))
	caches, err := goCaches()
	suite.env = append(append(os.Environ(), caches...),
		"PATH="+path+string(os.PathListSeparator)+os.Getenv("PATH"),
		"KUBECONFIG="+suite.cluster.KubeconfigPath(localcluster.UserAdmin),
		"HOME="+filepath.Join(work, ".home"), "CGO_ENABLED=0")
	return errors.Join(append(errs, err)...)
}

// goCaches are the settings with which the go command finds its caches for any HOME.
func goCaches() ([]string, error) {
	text, err := exec.Command("go", "env", "-json", "GOPATH", "GOCACHE", "GOMODCACHE").Output()
	values := map[string]string{}
	if err = cmp.Or(err, json.Unmarshal(text, &values)); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	var out []string
	for name, value := range values {
		out = append(out, name+"="+value)
	}
	return out, nil
}
