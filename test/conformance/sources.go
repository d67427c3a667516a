package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// workshop has the rewritten suites, their binaries and logs.
type workshop struct {
	root       string // of this repository
	kubernetes string // the sources of Kubernetes in the module cache
	dir        string // the output
	overlay    string // the overlay file for the go command
}

// newWorkshop rewrites all suites and libraries into dir. Nothing is written elsewhere:
// the overlay shows the go command the files at paths that do not exist.
func newWorkshop(ctx context.Context, root, dir string) (*workshop, error) {
	kubernetes, err := sourcesOf(ctx, "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	w := &workshop{root: root, kubernetes: kubernetes, dir: dir, overlay: filepath.Join(dir, "overlay.json")}
	replace := map[string]string{}
	packages := append([]string(nil), libraries...)
	for _, s := range suites {
		packages = append(packages, s.path)
	}
	changed := 0
	for _, p := range packages {
		n, err := w.rewritePackage(p, replace)
		if err != nil {
			return nil, err
		}
		changed += n
	}
	if changed == 0 {
		return nil, errors.New("no suite of Kubernetes makes a scheduler in a way this program knows")
	}
	if err := w.copyModule(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, err
	}
	return w, os.WriteFile(w.overlay, text, 0o600)
}

// sourcesOf returns the directory of a module: the root of this repository, or the version that
// it uses in the module cache.
func sourcesOf(ctx context.Context, module string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		return "", fmt.Errorf("where the sources of %s are: %w", module, err)
	}
	return string(bytes.TrimSpace(out)), nil
}

// source returns the directory of upstream's package.
func (w *workshop) source(path string) string {
	return filepath.Join(w.kubernetes, "test", "integration", filepath.FromSlash(path))
}

// rewritePackage rewrites the Go files of a package and adds them to the overlay. It
// returns how many calls were changed.
func (w *workshop) rewritePackage(path string, replace map[string]string) (int, error) {
	files, err := filepath.Glob(filepath.Join(w.source(path), "*.go"))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("no Go files in %s: %w", w.source(path), errors.Join(err, os.ErrNotExist))
	}
	target := filepath.Join(w.dir, "src", filepath.FromSlash(path))
	if err := os.MkdirAll(target, 0o700); err != nil {
		return 0, err
	}
	changed := 0
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		text, n, err := rewrite(path+"/"+filepath.Base(file), source)
		if err != nil {
			return 0, err
		}
		changed += n
		to := filepath.Join(target, filepath.Base(file))
		if err := os.WriteFile(to, text, 0o600); err != nil {
			return 0, err
		}
		replace[filepath.Join(w.root, "test", "conformance", "upstream", filepath.FromSlash(path), filepath.Base(file))] = to
	}
	return changed, nil
}

// build compiles the tests of a suite, with our plugins or unchanged, and returns the
// binary.
func (w *workshop) build(ctx context.Context, s suite, ours bool) (string, error) {
	kind, what := "upstream", upstreamTests+s.path
	if ours {
		kind, what = "ours", ourTests+s.path
	}
	binary := filepath.Join(w.dir, "bin", strings.ReplaceAll(s.path, "/", "-")+"-"+kind)
	// Vet starts in the directory of the package, which does not exist.
	args := []string{"test", "-C", w.root, "-c", "-vet=off", "-o", binary}
	if ours {
		args = append(args, "-overlay", w.overlay, "-mod=mod", "-modfile", w.modfile())
	}
	command := exec.CommandContext(ctx, "go", append(args, what)...)
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", what, err, out)
	}
	return binary, nil
}

// modfile is the copy of go.mod with which suites are built. They may import modules that
// only upstream's modules require; the go command then adds these to the copy.
func (w *workshop) modfile() string { return filepath.Join(w.dir, "go.mod") }

func (w *workshop) copyModule() error {
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(w.root, name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(w.dir, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// buildEtcd builds the etcd of the local cluster and returns a directory in which a
// program named etcd starts it, because upstream's suites look for that.
func (w *workshop) buildEtcd(ctx context.Context) (string, error) {
	plane := filepath.Join(w.dir, "bin", "localplane")
	command := exec.CommandContext(ctx, "go", "build", "-C", w.root, "-o", plane, "./cmd/localplane")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building localplane: %w\n%s", err, out)
	}
	dir := filepath.Join(w.dir, "path")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' etcd \"$@\"\n", plane)
	return dir, os.WriteFile(filepath.Join(dir, "etcd"), []byte(script), 0o700) //nolint:gosec // it is a program
}
