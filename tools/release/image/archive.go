package image

import (
	"archive/tar"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// refName is what tools take for the name of an image in a layout.
const refName = "org.opencontainers.image.ref.name"

// WriteArchive writes an index as an OCI image layout in a tar file, which
// "skopeo copy oci-archive:", "podman load", "ctr images import" and
// "docker load" read. reference is the name that the image gets there.
func WriteArchive(path string, index v1.ImageIndex, reference string) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(path), ".layout-")
	if err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	at, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = at.AppendIndex(index, layout.WithAnnotations(map[string]string{
			refName: reference, "io.containerd.image.name": reference,
		}))
	}
	if err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	out, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	if err := errors.Join(pack(out, dir), out.Close()); err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	return nil
}

// pack writes the files of a directory by name, without anything that differs
// from one machine or time to the next.
func pack(out *os.File, dir string) error {
	w := tar.NewWriter(out)
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error { // in lexical order
		if err != nil || path == dir {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		h := &tar.Header{Name: filepath.ToSlash(name), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}
		if entry.IsDir() {
			h.Typeflag, h.Mode, h.Name = tar.TypeDir, 0o755, h.Name+"/"
			return w.WriteHeader(h)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		h.Typeflag, h.Mode, h.Size = tar.TypeReg, 0o644, int64(len(content))
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	return errors.Join(err, w.Close())
}
