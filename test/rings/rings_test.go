package rings

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// root is the root of the module, as seen from this directory.
const root = "../.."

func TestImports(t *testing.T) {
	packages := list(t)
	if len(packages) < 10 {
		t.Fatalf("the go command lists %d packages: not the module", len(packages))
	}
	for _, problem := range CheckImports(packages) {
		t.Error(problem)
	}
}

// list asks the go command for all packages of the module.
func list(t *testing.T) []Package {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports,Deps", "./...")
	cmd.Dir = root
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []Package
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p Package
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func TestFiles(t *testing.T) {
	files := 0
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains([]string{".git", "bin", "testdata"}, entry.Name()) {
			return fs.SkipDir
		}
		if entry.IsDir() || filepath.Ext(name) != ".go" {
			return nil
		}
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		files++
		for _, problem := range CheckFile(name, content) {
			t.Error(problem)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 10 {
		t.Errorf("only %d files: not the module", files)
	}
}

func of(path string, imports ...string) Package {
	p := Package{ImportPath: Module + "/" + path, Imports: imports}
	p.Deps = p.Imports
	return p
}

const ours = Module + "/"

// Each planted import is found, and named.
func TestPlantedImports(t *testing.T) {
	for _, test := range []struct {
		name    string
		planted Package
		want    string
	}{
		{"outwards", of("pkg/queues", ours+"pkg/victims"), "ring 1 must not import ring 2"},
		{"to the store", of("pkg/victims", ours+"pkg/queues/store"), "ring 2 must not import ring 3"},
		{"to a plugin", of("pkg/evict", ours+"pkg/plugins/preemption"), "ring 3 must not import ring 4"},
		{"to a program", of("pkg/rest", ours+"cmd/scheduler"), "ring 4 must not import ring 5"},
		{"to a test", of("pkg/queues/store", ours+"pkg/queues/queuestest"), "only tests import it"},
		{"no ring", of("pkg/news"), "has no ring"},
		{"no ring below queues", of("pkg/queues/news"), "has no ring"},
		{"to no ring", of("cmd/scheduler", ours+"pkg/news"), "has no ring"},
		{"chance", of("pkg/victims", "math/rand/v2"), "rings 0 to 2"},
		{"lock", of("pkg/resources", "sync/atomic"), "rings 0 to 2"},
		{"log", of("pkg/reasons", "log/slog"), "rings 0 to 2"},
		{"log of kubernetes", of("pkg/queues/order", "k8s.io/klog/v2"), "rings 0 to 2"},
		{"objects", of("pkg/queues/placement", "k8s.io/api/core/v1"), "rings 0 to 2"},
		{"framework in the store", of("pkg/queues/store", "k8s.io/kube-scheduler/framework"), "only plugins and programs"},
		{"scheduler in rest", of("pkg/rest", "k8s.io/kubernetes/pkg/scheduler/framework"), "only plugins and programs"},
		{"log in the gate", of("pkg/leader", "k8s.io/klog/v2"), "it uses only"},
		{"framework in the arguments", of("apis/config/v1", "k8s.io/kube-scheduler/framework"), "of the scheduler it uses only"},
		{"scheduler behind a plugin", Package{
			ImportPath: ours + "pkg/plugins/queuesort", Deps: []string{scheduler},
		}, "depends on " + scheduler},
	} {
		t.Run(test.name, func(t *testing.T) {
			found := CheckImports([]Package{test.planted})
			if len(found) != 1 || !strings.Contains(found[0], test.want) {
				t.Errorf("got %q, want one sentence with %q", found, test.want)
			}
		})
	}
}

// What is allowed is not found.
func TestAllowedImports(t *testing.T) {
	found := CheckImports([]Package{
		of("pkg/resources", "math/big", "time", "k8s.io/apimachinery/pkg/api/resource"),
		of("pkg/queues/config", ours+"pkg/resources", "go.yaml.in/yaml/v3"),
		of("pkg/queues/order", ours+"pkg/queues/internal/ranking", "container/heap"),
		of("pkg/victims", ours+"pkg/queues/order", ours+"pkg/reasons"),
		of("pkg/queues/store", ours+"pkg/victims", "sync"),
		of("pkg/leader", "sync", "time", "k8s.io/client-go/tools/leaderelection/resourcelock"),
		of("pkg/plugins/queuesort", "k8s.io/kube-scheduler/framework", "k8s.io/kubernetes/pkg/scheduler/framework"),
		of("apis/config", schedulerConfig, schedulerTypes+"/v1"),
		of("cmd/scheduler", scheduler, ours+"manifests/config", ours+"pkg/plugins/queuesort"),
		of("pkg/queues/queuestest", ours+"pkg/queues/store", "testing"),
		of("test/integration", ours+"pkg/queues/queuestest", scheduler),
	})
	if len(found) > 0 {
		t.Errorf("found %q", found)
	}
}

func TestPlantedSource(t *testing.T) {
	const pureFile = "pkg/victims/plan.go"
	for _, test := range []struct {
		name, file, source string
		want               []string
	}{
		{"clock", pureFile, "package victims\nimport \"time\"\nvar now = time.Now()\n",
			[]string{"pkg/victims/plan.go:3:11: time.Now in rings 0 to 2"}},
		{"goroutine", pureFile, "package victims\nfunc f() { go f() }\n",
			[]string{"pkg/victims/plan.go:2:12: a goroutine in rings 0 to 2"}},
		{"channel", pureFile, "package victims\nvar c chan int\n",
			[]string{"pkg/victims/plan.go:2:7: a channel in rings 0 to 2"}},
		{"a duration is no clock", pureFile, "package victims\nimport \"time\"\nconst d = time.Second\n", nil},
		{"clock in a test", "pkg/victims/plan_test.go", "package victims\nimport \"time\"\nvar now = time.Now()\n", nil},
		{"clock in ring 3", "pkg/evict/evict.go", "package evict\nimport \"time\"\nvar now = time.Now()\n", nil},
		{"long", "cmd/scheduler/main.go", "package main\n" + strings.Repeat("\n", 500),
			[]string{"cmd/scheduler/main.go has 501 lines, the limit is 500: split it by what it is about"}},
		{"just not too long", "cmd/scheduler/main.go", "package main\n" + strings.Repeat("\n", 499), nil},
		{"long test", "cmd/scheduler/main_test.go", "package main\n" + strings.Repeat("\n", 800),
			[]string{"cmd/scheduler/main_test.go has 801 lines, the limit is 800: split it by what it is about"}},
		{"generated", "apis/config/zz_generated.deepcopy.go",
			"// Code generated by deepcopy-gen. DO NOT EDIT.\n\npackage config\n" + strings.Repeat("\n", 900), nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, CheckFile(test.file, []byte(test.source))); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
		})
	}
}
