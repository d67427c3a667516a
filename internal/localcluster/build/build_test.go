package build

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// module writes a module with a program and a package it uses, and returns its directory.
func module(t *testing.T, source string) string {
	t.Helper()
	root := t.TempDir()
	lib := "package lib\n\n// " + t.TempDir() + " makes this package new to the compile cache.\n\nvar Text = \"none\"\n"
	expect.OK(t, os.CopyFS(root, fstest.MapFS{
		"go.mod":            {Data: []byte("module example.com/m\n\ngo 1.26.0\n")},
		"lib/lib.go":        {Data: []byte(lib)},
		"cmd/hello/main.go": {Data: []byte(source)},
	}))
	return root
}

const program = "package main\n\nimport \"example.com/m/lib\"\n\nfunc main() { println(lib.Text) }\n"

func TestBuild(t *testing.T) {
	root := module(t, program)
	var mu sync.Mutex
	var seen []Progress
	o := Options{Root: root, Packages: []string{"./cmd/hello"}, LDFlags: "-X example.com/m/lib.Text=stamped", Report: func(p Progress) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, p)
	}}
	expect.OK(t, Build(context.Background(), o))
	out := expect.Get(exec.Command(filepath.Join(root, "bin", "hello")).CombinedOutput())(t)
	expect.Same(t, "the program says", "stamped\n", string(out))
	last := seen[len(seen)-1]
	sees := func(p Progress) bool { return p.Package == "example.com/m/lib" }
	expect.That(t, last.Total == 2 && last.Done == 2 && slices.ContainsFunc(seen, sees),
		"unexpected progress %+v", seen)
	seen = nil
	expect.OK(t, Build(context.Background(), o))
	last = seen[len(seen)-1]
	expect.That(t, last.Total == 0 && last.Done == 0, "nothing was stale, but progress is %+v", last)
}

func TestBuildShowsWhatTheCompilerSays(t *testing.T) {
	root := module(t, "package main\n\nfunc main() { missing() }\n")
	err := Build(context.Background(), Options{Root: root, Packages: []string{"./cmd/hello"}})
	expect.Fails(t, err, "undefined: missing")
	err = Build(context.Background(), Options{Root: root, Packages: []string{"./cmd/none"}})
	expect.Fails(t, err, "./cmd/none")
}

func TestBuildEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	root := module(t, program)
	err := Build(ctx, Options{Root: root, Packages: []string{"./cmd/hello"}, Report: func(Progress) { cancel() }})
	expect.That(t, errors.Is(err, context.Canceled), "got %v, want the context's error", err)
}

func TestFindRoot(t *testing.T) {
	root := expect.Get(FindRoot("."))(t)
	expect.Get(os.Stat(filepath.Join(root, "internal", "localcluster", "build")))(t)
	other := module(t, program)
	expect.Refused(FindRoot(other))(t, "clone of the repository")
}

func TestImportPathsAreToldFromMessages(t *testing.T) {
	for line, want := range map[string]bool{
		"k8s.io/kubernetes/pkg/apis/core/v1": true,
		"fmt":                                true,
		"":                                   false,
		"# example.com/m/cmd":                false,
		"cmd/main.go:3:15: undefined: x":     false,
		"go: downloading k8s.io/api v0.35.8": false,
		"/usr/lib/go/pkg/tool/link: running gcc: x": false,
		"./main.go": false,
		"warning: both GOPATH and GOROOT are the same": false,
	} {
		expect.Same(t, line, want, isImportPath(line))
	}
}

func TestOnlyTheLastMessagesAreKept(t *testing.T) {
	rest := eachLine(strings.NewReader(strings.Repeat("old\n", 500)+"\nnew\r\nlast"), func(string) bool { return false })
	if len(rest) != 100 {
		t.Fatalf("%d lines are kept, want 100", len(rest))
	}
	expect.Same(t, "the last two of a hundred lines", []string{"new", "last"}, rest[98:])
}

func TestTickReportsUntilStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reports := make(chan Progress, 1000)
		c := counter{report: func(p Progress) { reports <- p }}
		stop := c.tick(time.Millisecond)
		<-reports
		<-reports
		stop()
		said := len(reports)
		time.Sleep(10 * time.Millisecond)
		expect.Same(t, "reports, also after stop", said, len(reports))
	})
}

func TestLDFlagsOfGoMod(t *testing.T) {
	root := t.TempDir()
	for text, want := range map[string]string{
		"module m\n\nrequire k8s.io/kubernetes v1.35.8\n":                                           "v1.35.8 1 35",
		"module m\n\nrequire (\n\tk8s.io/api v0.36.1\n\tk8s.io/kubernetes v2.40.0-rc.1 // why\n)\n": "v2.40.0-rc.1 2 40",
	} {
		expect.OK(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte(text), 0o600))
		got := expect.Get(LDFlags(root))(t)
		got = strings.NewReplacer("-X k8s.io/component-base/version.", "", "gitVersion=", "", "gitMajor=", "", "gitMinor=", "").Replace(got)
		expect.Same(t, text, want, got)
	}
	expect.OK(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module m\n\nrequire k8s.io/kubernetes-x v1.2.3\n"), 0o600))
	expect.Refused(LDFlags(root))(t, "does not require k8s.io/kubernetes")
	expect.Refused(LDFlags(t.TempDir()))(t, "go.mod")
}

// The go command must read the same version from the repository's go.mod.
func TestLDFlagsOfTheRepository(t *testing.T) {
	root := expect.Get(FindRoot("."))(t)
	version := expect.Get(exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").Output())(t)
	expect.Says(t, expect.Get(LDFlags(root))(t), "gitVersion="+strings.TrimSpace(string(version))+" ")
}
