package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

var meta = Meta{
	Name: "scheduler", Version: "1.2.3", Revision: "abcdef", Reference: "example.com/scheduler:1.2.3",
	Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
}

// source writes a small program into a new directory.
func source(t *testing.T) Source {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":           "module example.com/tiny\n\ngo 1.26.0\n",
		"cmd/tiny/main.go": "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
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
	if err != nil {
		t.Fatal(err)
	}
	b, err := ReadBinary(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func index(t *testing.T, m Meta, binaries ...Binary) v1.ImageIndex {
	t.Helper()
	out, err := Index(m, binaries...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// products are all that is made of one binary: the archive and the bill of
// materials, byte by byte.
func products(t *testing.T, b Binary) (archive, sbom []byte) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := WriteArchive(path, index(t, meta, b), meta.Reference); err != nil {
		t.Fatal(err)
	}
	archive, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if sbom, err = SBOM(meta, b); err != nil {
		t.Fatal(err)
	}
	return archive, sbom
}

// TestReproducible shows that a source in two directories gives the same bytes,
// and that it does so because of how it is compiled.
func TestReproducible(t *testing.T) {
	t.Setenv("GOFLAGS", "-ldflags=-X=main.version=other") // what users have in their environment does not matter
	first, firstSBOM := products(t, compiled(t, source(t)))
	second, secondSBOM := products(t, compiled(t, source(t)))
	if !bytes.Equal(first, second) {
		t.Error("two builds give two archives")
	}
	if !bytes.Equal(firstSBOM, secondSBOM) {
		t.Errorf("two builds give two bills of materials:\n%s", cmp.Diff(string(firstSBOM), string(secondSBOM)))
	}
	one, _ := products(t, compiled(t, source(t), "-trimpath=false"))
	other, _ := products(t, compiled(t, source(t), "-trimpath=false"))
	if bytes.Equal(one, other) {
		t.Error("without -trimpath two directories give one archive: this test sees nothing")
	}
}

// TestImage looks at what a container engine would see.
func TestImage(t *testing.T) {
	s := source(t)
	amd, arm := s, s
	amd.Arch, arm.Arch = "amd64", "arm64"
	all := index(t, meta, compiled(t, amd), compiled(t, arm))
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var platforms []string
	for _, d := range manifest.Manifests {
		platforms = append(platforms, d.Platform.String())
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Errorf("platforms (-want +got):\n%s", diff)
	}
	image, err := all.Image(manifest.Manifests[1].Digest)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if config.Architecture != "arm64" || config.OS != "linux" || !config.Created.Equal(meta.Created) {
		t.Errorf("the image is for %s/%s, created %v", config.OS, config.Architecture, config.Created)
	}
	if config.Config.User != User || !slices.Equal(config.Config.Entrypoint, []string{"/scheduler"}) {
		t.Errorf("it runs %v as %q", config.Config.Entrypoint, config.Config.User)
	}
	if config.Config.Labels["org.opencontainers.image.version"] != "1.2.3" {
		t.Errorf("labels %v", config.Config.Labels)
	}
	if diff := cmp.Diff([]string{"scheduler -r-xr-xr-x 0:0"}, listing(t, mutate.Extract(image))); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// listing lists the files of a tar file.
func listing(t *testing.T, from io.ReadCloser) []string {
	t.Helper()
	defer from.Close()
	var out []string
	for r := tar.NewReader(from); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.Join([]string{h.Name, h.FileInfo().Mode().String(), "0:0"}, " "))
		if h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s belongs to %d:%d", h.Name, h.Uid, h.Gid)
		}
	}
}

// TestArchive reads an archive back as a layout.
func TestArchive(t *testing.T) {
	all := index(t, meta, compiled(t, source(t)))
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := WriteArchive(path, all, meta.Reference); err != nil {
		t.Fatal(err)
	}
	at := layout.Path(unpacked(t, path))
	there, err := at.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(there); err != nil {
		t.Error(err)
	}
	manifest, err := there.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	want, err := all.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != want || manifest.Manifests[0].Annotations[refName] != meta.Reference {
		t.Errorf("the layout has %+v, want %s with name %s", manifest.Manifests, want, meta.Reference)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".layout-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// unpacked unpacks a tar file into a new directory.
func unpacked(t *testing.T, path string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unpack(path, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRefusedBinaries checks that what could not run in the image does not get there.
func TestRefusedBinaries(t *testing.T) {
	s := source(t)
	b := compiled(t, s)
	if _, err := Index(meta); err == nil {
		t.Error("an index of nothing")
	}
	if _, err := Index(meta, b, b); err == nil || !strings.Contains(err.Error(), "two binaries are for "+s.Arch) {
		t.Errorf("two binaries for one architecture: %v", err)
	}
	if _, err := ReadBinary(filepath.Join(s.Dir, "go.mod")); err == nil {
		t.Error("go.mod is a binary")
	}
	for name, c := range map[string]struct{ setting, value, says string }{
		"another system": {"GOOS", "darwin", "must be for linux"},
		"a C library":    {"CGO_ENABLED", "1", "must be 0"},
		"nowhere":        {"GOARCH", "", "GOARCH"},
	} {
		settings := map[string]string{"GOOS": "linux", "CGO_ENABLED": "0", "GOARCH": "amd64"}
		settings[c.setting] = c.value
		if err := check(settings); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("a binary for %s: %v", name, err)
		}
	}
	s.Package = "./cmd/none"
	if err := Build(t.Context(), s, filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), "cmd/none") {
		t.Errorf("no such package: %v", err)
	}
}
