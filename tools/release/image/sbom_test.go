package image

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// TestSBOM looks at the bill of materials of a program of three modules, one of
// them replaced, and the standard library.
func TestSBOM(t *testing.T) {
	path := filepath.Join(t.TempDir(), "program")
	expect.OK(t, os.WriteFile(path, []byte("program"), 0o600))
	b := Binary{Path: path, Arch: "arm64", info: &buildinfo.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "example.com/us"}, Deps: []*debug.Module{
			{Path: "github.com/Azure/x", Version: "v1.0.0+incompatible", Sum: "h1:aaa"},
			{Path: "k8s.io/api", Version: "v0.0.0", Replace: &debug.Module{Path: "k8s.io/api", Version: "v0.35.8", Sum: "h1:bbb"}},
			{Path: "example.com/local", Replace: &debug.Module{Path: "../local"}},
		},
	}}
	text := expect.Get(SBOM(meta, b))(t)
	var doc spdxDocument
	expect.OK(t, json.Unmarshal(text, &doc))
	var got []string
	ids := map[string]bool{documentID: true}
	for _, p := range doc.Packages {
		got = append(got, strings.Join([]string{p.Name, p.Version, p.SourceInfo, p.References[0].Locator, p.Download}, " | "))
		ids[p.ID] = true
	}
	want := []string{
		"example.com/us | 1.2.3 |  | pkg:golang/example.com/us@1.2.3 | NOASSERTION",
		"std | 1.26.8 |  | pkg:golang/std@1.26.8 | NOASSERTION",
		"github.com/Azure/x | v1.0.0+incompatible | go.sum h1:aaa | pkg:golang/github.com/Azure/x@v1.0.0%2Bincompatible | " +
			"https://proxy.golang.org/github.com/!azure/x/@v/v1.0.0+incompatible.zip",
		"k8s.io/api | v0.35.8 | go.sum h1:bbb | pkg:golang/k8s.io/api@v0.35.8 | https://proxy.golang.org/k8s.io/api/@v/v0.35.8.zip",
		"example.com/local |  |  | pkg:golang/example.com/local | NOASSERTION",
	}
	expect.Same(t, "packages", want, got)
	sum := fmt.Sprintf("%x", sha256.Sum256([]byte("program")))
	expect.Same(t, "checksums", []spdxChecksum{{"SHA256", sum}}, doc.Packages[0].Checksums)
	expect.Same(t, "identifiers, relationships", []int{len(want) + 1, len(want)}, []int{len(ids), len(doc.Relationships)})
	for _, r := range doc.Relationships {
		expect.That(t, ids[r.From] && ids[r.To], "relationship %+v names what is not there", r)
	}
}

// linked are the modules in a binary, as "PATH VERSION", in order, as the go command
// reads them: itself, the standard library and what each other one was replaced by.
func linked(t *testing.T, path string) []string {
	t.Helper()
	text := expect.Get(exec.CommandContext(t.Context(), "go", "version", "-m", path).Output())(t)
	var out []string
	for line := range strings.Lines(string(text)) {
		switch fields := strings.Fields(line); {
		case !strings.HasPrefix(line, "\t"):
			out = append(out, "std "+strings.TrimPrefix(fields[len(fields)-1], "go"))
		case fields[0] == "dep":
			out = append(out, fields[1]+" "+fields[2])
		case fields[0] == "=>":
			out[len(out)-1] = fields[1] + " " + fields[2]
		}
	}
	slices.Sort(out)
	return out
}

// named are the modules that a bill of materials says the program depends on, as
// linked has them. Each has to be named in the same way by its two names, and once.
func named(t *testing.T, text []byte) []string {
	t.Helper()
	var doc spdxDocument
	expect.OK(t, json.Unmarshal(text, &doc))
	packages := map[string]spdxPackage{}
	for _, p := range doc.Packages {
		packages[p.ID] = p
	}
	var out []string
	for _, r := range doc.Relationships {
		if r.From != programID || r.Type != dependsOn {
			continue
		}
		p := packages[r.To]
		expect.Same(t, p.Name+" "+p.Version+" references", purl(p.Name, p.Version), p.References)
		out = append(out, p.Name+" "+p.Version)
	}
	expect.Same(t, "packages but the program itself", len(doc.Packages)-1, len(out))
	slices.Sort(out)
	return out
}

// TestSBOMHasWhatIsLinked compares the bill of materials of a real program, the one that makes images,
// with what the go command reads out of it. It plants modules that are left out, another version, and
// one module too many. The image's own program is looked at in the same way by hack/check-image.sh.
func TestSBOMHasWhatIsLinked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "release")
	// Not as Build does it: this takes what is compiled for other tests.
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "..")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	info := expect.Get(buildinfo.ReadFile(path))(t)
	want := linked(t, path)
	small := filepath.Join(t.TempDir(), "small") // the modules do not come from its text
	expect.OK(t, os.WriteFile(small, []byte("program"), 0o600))
	said := func(deps []*debug.Module) []string {
		changed := *info
		changed.Deps = deps
		text := expect.Get(SBOM(meta, Binary{Path: small, Arch: "arm64", info: &changed}))(t)
		return named(t, text)
	}
	expect.Same(t, "modules that are named, against those linked", want, said(info.Deps))
	if len(want) < 10 {
		t.Fatalf("only %q are linked", want)
	}
	for i, left := range info.Deps {
		expect.That(t, !slices.Equal(want, said(slices.Delete(slices.Clone(info.Deps), i, i+1))),
			"it is not noticed that %s is missing", left.Path)
	}
	other := *info.Deps[0]
	other.Version = "v99.0.0"
	expect.That(t, !slices.Equal(want, said(append(slices.Clone(info.Deps[1:]), &other))),
		"another version is not noticed")
	unlinked := &debug.Module{Path: "example.com/unlinked", Version: "v1.0.0"}
	expect.That(t, !slices.Equal(want, said(append(slices.Clone(info.Deps), unlinked))),
		"a module that is not linked is not noticed")
}
