package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// User is the user ID of the program: an unprivileged one, not root.
const User = "65532:65532"

// Meta says what an image is of.
type Meta struct {
	// Name is the file name of the program in the image, at its root.
	Name string
	// Version and Revision are those of the source; they go into annotations.
	Version, Revision string
	// Created is the time of the source, never that of the build.
	Created time.Time
}

func (m Meta) annotations() map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    "paddock " + m.Name,
		"org.opencontainers.image.version":  m.Version,
		"org.opencontainers.image.revision": m.Revision,
		"org.opencontainers.image.source":   "https://github.com/paddock-scheduler/paddock",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.created":  m.Created.UTC().Format(time.RFC3339),
	}
}

// Index makes an image of each binary and an index of all, in the order given.
// Two binaries for one architecture are an error, and so is none.
func Index(m Meta, binaries ...Binary) (v1.ImageIndex, error) {
	if len(binaries) == 0 {
		return nil, errors.New("image: there is no binary")
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	seen := map[string]bool{}
	for _, b := range binaries {
		if seen[b.Arch] {
			return nil, fmt.Errorf("image: two binaries are for %s", b.Arch)
		}
		seen[b.Arch] = true
		image, err := imageOf(m, b)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: b.Arch}},
		})
	}
	return mutate.Annotations(index, m.annotations()).(v1.ImageIndex), nil
}

func imageOf(m Meta, b Binary) (v1.Image, error) {
	layer, err := layerOf(m, b)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: m.Created.UTC()}, CreatedBy: "make image", Comment: m.Name + " " + m.Version},
	})
	if err != nil {
		return nil, fmt.Errorf("image for %s: %w", b.Arch, err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("image for %s: %w", b.Arch, err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = "linux", b.Arch, v1.Time{Time: m.Created.UTC()}
	config.Config = v1.Config{
		User: User, WorkingDir: "/", Entrypoint: []string{"/" + m.Name}, Env: []string{"PATH=/"}, Labels: m.annotations(),
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, fmt.Errorf("image for %s: %w", b.Arch, err)
	}
	return mutate.Annotations(image, m.annotations()).(v1.Image), nil
}

// layerOf makes a layer with the program as its only file.
func layerOf(m Meta, b Binary) (v1.Layer, error) {
	program, err := os.ReadFile(b.Path)
	if err != nil {
		return nil, fmt.Errorf("image for %s: %w", b.Arch, err)
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	err = w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: m.Name, Size: int64(len(program)), Mode: 0o555, ModTime: m.Created.UTC(), Format: tar.FormatPAX,
	})
	if err == nil {
		_, err = w.Write(program)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, fmt.Errorf("layer for %s: %w", b.Arch, err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, fmt.Errorf("layer for %s: %w", b.Arch, err)
	}
	return layer, nil
}
