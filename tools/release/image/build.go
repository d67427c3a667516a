package image

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Source says what to compile.
type Source struct {
	// Dir is the directory of the module, Package the main package in it, as in "./cmd/scheduler".
	Dir, Package string
	// LDFlags are passed to the linker, after ours.
	LDFlags string
	// Arch is the GOARCH to compile for.
	Arch string
}

// Build compiles the source for Linux to a static binary at path. With -trimpath
// neither the directory of the source nor that of the module cache is in it, so
// that the same source gives the same bytes; the price is that Kubernetes is
// compiled once more than for "make build".
func Build(ctx context.Context, s Source, path string) error {
	return build(ctx, s, path, "-trimpath")
}

func build(ctx context.Context, s Source, path string, flags ...string) error {
	out, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("build %s: %w", s.Package, err)
	}
	args := append([]string{"build"}, flags...)
	args = append(args, "-buildvcs=false", "-ldflags=-s -w -buildid= "+s.LDFlags, "-o", out, s.Package)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = s.Dir
	// The settings that a user's GOFLAGS, GOAMD64 and the like would leave in the binary.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+s.Arch, "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s for %s: %w\n%s", s.Package, s.Arch, err, strings.TrimSpace(string(text)))
	}
	return nil
}

// Binary is a compiled program.
type Binary struct {
	// Path is where it is.
	Path string
	// Arch is the GOARCH it is for.
	Arch string
	info *buildinfo.BuildInfo
}

// ReadBinary looks at a compiled program. One that is not static, or not for
// Linux, is an error: there is nothing else in the image.
func ReadBinary(path string) (Binary, error) {
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		return Binary{}, fmt.Errorf("binary %s: %w", path, err)
	}
	b := Binary{Path: path, info: info}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	b.Arch = settings["GOARCH"]
	if err := check(settings); err != nil {
		return Binary{}, fmt.Errorf("binary %s: %w", path, err)
	}
	return b, nil
}

// check returns an error if a binary that was compiled with these settings could
// not run in an image that has nothing else.
func check(settings map[string]string) error {
	var errs []error
	if system := settings["GOOS"]; system != "linux" {
		errs = append(errs, fmt.Errorf("it is for %q, must be for linux", system))
	}
	if cgo := settings["CGO_ENABLED"]; cgo != "0" {
		errs = append(errs, fmt.Errorf("CGO_ENABLED was %q, must be 0: the image has no C library", cgo))
	}
	if settings["GOARCH"] == "" {
		errs = append(errs, errors.New("it does not say for what GOARCH it is"))
	}
	return errors.Join(errs...)
}
