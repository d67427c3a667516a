package build

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

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
