package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

const imageName = "example.com/scheduler:1.2.3"

var meta = Meta{
	Name: "scheduler", Version: "1.2.3", Revision: "abcdef", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
}

// source writes a small program into a new directory.
func source(t *testing.T) Source {
	t.Helper()
	dir := t.TempDir()
	expect.OK(t, os.CopyFS(dir, fstest.MapFS{
		"go.mod":           {Data: []byte("module example.com/tiny\n\ngo 1.26.0\n")},
		"cmd/tiny/main.go": {Data: []byte("package main\n\nvar version string\n\nfunc main() { println(version) }\n")},
	}))
	return Source{Dir: dir, Package: "./cmd/tiny", LDFlags: "-X main.version=1.2.3", Arch: runtime.GOARCH}
}

// compiled builds a source with these flags, or as Build does if there are none.
func compiled(t *testing.T, s Source, flags ...string) Binary {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny")
	err := Build(t.Context(), s, path)
	if flags != nil {
		err = build(t.Context(), s, path, flags...)
	}
	expect.OK(t, err)
	return expect.Get(ReadBinary(path))(t)
}

// products are all that is made of one binary: the archive and the bill of materials, byte by byte.
func products(t *testing.T, b Binary) (archive, sbom []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	expect.OK(t, WriteArchive(path, expect.Get(Index(meta, b))(t), imageName))
	return expect.Get(os.ReadFile(path))(t), expect.Get(SBOM(meta, b))(t)
}

// TestReproducible shows that a source in two directories gives the same bytes,
// and that it does so because of how it is compiled.
func TestReproducible(t *testing.T) {
	t.Setenv("GOFLAGS", "-ldflags=-X=main.version=other") // what users have in their environment does not matter
	first, firstSBOM := products(t, compiled(t, source(t)))
	second, secondSBOM := products(t, compiled(t, source(t)))
	expect.That(t, bytes.Equal(first, second), "two builds give two archives")
	expect.Same(t, "bills of materials", string(firstSBOM), string(secondSBOM))
	one, _ := products(t, compiled(t, source(t), "-trimpath=false"))
	other, _ := products(t, compiled(t, source(t), "-trimpath=false"))
	expect.That(t, !bytes.Equal(one, other), "this test would not see that -trimpath is missing")
}

// TestImage looks at what a container engine would see.
func TestImage(t *testing.T) {
	s := source(t)
	amd, arm := s, s
	amd.Arch, arm.Arch = "amd64", "arm64"
	all := expect.Get(Index(meta, compiled(t, amd), compiled(t, arm)))(t)
	manifest := expect.Get(all.IndexManifest())(t)
	var platforms []string
	for _, d := range manifest.Manifests {
		platforms = append(platforms, d.Platform.String())
	}
	expect.Same(t, "platforms", []string{"linux/amd64", "linux/arm64"}, platforms)
	image := expect.Get(all.Image(manifest.Manifests[1].Digest))(t)
	config := expect.Get(image.ConfigFile())(t)
	expect.Same(t, "platform", "linux/arm64", config.OS+"/"+config.Architecture)
	expect.Same(t, "created", meta.Created, config.Created.Time)
	expect.Same(t, "user", User, config.Config.User)
	expect.Same(t, "entrypoint", []string{"/scheduler"}, config.Config.Entrypoint)
	expect.Same(t, "version", "1.2.3", config.Config.Labels["org.opencontainers.image.version"])
	expect.Same(t, "files", []string{"scheduler -r-xr-xr-x 0:0"}, listing(t, mutate.Extract(image)))
}

func listing(t *testing.T, from io.ReadCloser) []string {
	t.Helper()
	defer from.Close()
	var out []string
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		expect.OK(t, err)
		out = append(out, strings.Join([]string{h.Name, h.FileInfo().Mode().String(), "0:0"}, " "))
		expect.That(t, h.Uid == 0 && h.Gid == 0, "%s belongs to %d:%d", h.Name, h.Uid, h.Gid)
	}
}

// TestArchive reads an archive back as a layout.
func TestArchive(t *testing.T) {
	path, want := archived(t)
	dir := t.TempDir()
	expect.OK(t, unpack(path, dir))
	there := expect.Get(layout.Path(dir).ImageIndex())(t)
	expect.Holds(t, validate.Index(there))
	manifest := expect.Get(there.IndexManifest())(t)
	var have []string
	for _, m := range manifest.Manifests {
		have = append(have, m.Digest.String()+" "+m.Annotations[refName])
	}
	expect.Same(t, "images of the layout", []string{want + " " + imageName}, have)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".layout-*"))
	expect.That(t, err == nil && len(left) == 0, "left behind: %v, %v", left, err)
}

// TestRefusedBinaries checks that what could not run in the image does not get there.
func TestRefusedBinaries(t *testing.T) {
	s := source(t)
	b := compiled(t, s)
	expect.Refused(Index(meta))(t, "there is no binary")
	expect.Refused(Index(meta, b, b))(t, "two binaries are for "+s.Arch)
	expect.Refused(ReadBinary(filepath.Join(s.Dir, "go.mod")))(t, "go.mod")
	for _, c := range []struct{ setting, value, says string }{
		{"GOOS", "darwin", "must be for linux"}, {"CGO_ENABLED", "1", "must be 0"}, {"GOARCH", "", "GOARCH"},
	} {
		settings := map[string]string{"GOOS": "linux", "CGO_ENABLED": "0", "GOARCH": "amd64"}
		settings[c.setting] = c.value
		expect.Fails(t, check(settings), c.says)
	}
	s.Package = "./cmd/none"
	expect.Fails(t, Build(t.Context(), s, filepath.Join(t.TempDir(), "x")), "cmd/none")
}
