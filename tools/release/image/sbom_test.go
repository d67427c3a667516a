package image

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// TestSBOM looks at the bill of materials of a program of three modules, one of
// them replaced, and the standard library. hack/check-image.sh compares that of the image with
// what the go command reads out of its program.
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
