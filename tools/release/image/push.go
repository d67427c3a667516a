package image

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Push sends the image of an archive that WriteArchive has written to a registry, under
// the name and tag of reference, and returns its digest. Credentials are read from where
// "docker login" and "podman login" write them. A registry on this machine is asked
// without TLS.
func Push(ctx context.Context, path, reference string) (v1.Hash, error) {
	var none v1.Hash
	if reference == "" {
		return none, errors.New("push: the image has no name: give registry/name:tag, to make push as IMAGE=registry/name:tag")
	}
	to, err := name.NewTag(reference, name.StrictValidation)
	if err != nil {
		return none, fmt.Errorf("push: %w", err)
	}
	dir, err := os.MkdirTemp("", "layout-")
	if err != nil {
		return none, fmt.Errorf("push %s: %w", path, err)
	}
	digest, err := push(ctx, path, dir, to)
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		return none, fmt.Errorf("push %s: %w", path, err)
	}
	return digest, nil
}

// push unpacks the archive into dir and sends what is there.
func push(ctx context.Context, path, dir string, to name.Tag) (v1.Hash, error) {
	var none v1.Hash
	if err := unpack(path, dir); err != nil {
		return none, err
	}
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return none, err
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return none, err
	}
	if n := len(manifest.Manifests); n != 1 {
		return none, fmt.Errorf("it has %d images, want one", n)
	}
	digest := manifest.Manifests[0].Digest
	image, err := all.ImageIndex(digest)
	if err != nil {
		return none, err
	}
	return digest, remote.WriteIndex(to, image, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
}

// unpack unpacks a tar file into a directory, out of which no name in it leads.
func unpack(path, dir string) error {
	in, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf(`there is no such archive: run "make image" first: %w`, err)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("file %q is outside of the layout", h.Name)
		}
		if err := unpackEntry(r, h, filepath.Join(dir, h.Name)); err != nil {
			return err
		}
	}
}

// unpackEntry writes a directory or a file; a layout has nothing else.
func unpackEntry(r io.Reader, h *tar.Header, to string) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return os.MkdirAll(to, 0o755)
	case tar.TypeReg:
		out, err := os.Create(to)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, r)
		return errors.Join(err, out.Close())
	}
	return fmt.Errorf("%s is neither a directory nor a file", h.Name)
}
