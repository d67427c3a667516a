// Command release makes what is handed to users: the manifests that come out of
// others, and the image.
//
//	release render [--manifests DIR]
//	release image --out DIR [--root DIR] [--arch amd64,arm64] [--version V] ...
//	release push --archive FILE --reference NAME:TAG
//
// It is a module of its own, because kustomize, the image library and the
// tests' helm would otherwise decide about versions of what the scheduler is built from.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/paddock-scheduler/paddock/tools/release/image"
	"github.com/paddock-scheduler/paddock/tools/release/render"
)

const usage = `usage: release render [--manifests DIR]
       release image --out DIR [--root DIR] [--arch LIST] [--version V] [--revision COMMIT]
                     [--created SECONDS] [--reference NAME:TAG] [--ldflags FLAGS]
       release push --archive FILE --reference NAME:TAG`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	switch args[0] {
	case "render":
		return runRender(args[1:], out)
	case "image":
		return runImage(ctx, args[1:], out)
	case "push":
		return runPush(ctx, args[1:], out)
	}
	return fmt.Errorf("unknown command %q\n%s", args[0], usage)
}

func runRender(args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("render", pflag.ContinueOnError)
	manifests := flags.String("manifests", "manifests", "the directory of the manifests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	changed, err := render.Write(*manifests)
	for _, path := range changed {
		fmt.Fprintln(out, "changed", path)
	}
	return err
}

func runImage(ctx context.Context, args []string, out io.Writer) error {
	source, meta := image.Source{Package: "./cmd/scheduler"}, image.Meta{Name: "scheduler"}
	flags := pflag.NewFlagSet("image", pflag.ContinueOnError)
	flags.StringVar(&source.Dir, "root", ".", "the directory of the source")
	flags.StringVar(&source.LDFlags, "ldflags", "", "flags for the linker")
	flags.StringVar(&meta.Version, "version", "unknown", "version of the source")
	flags.StringVar(&meta.Revision, "revision", "unknown", "commit of the source")
	created := flags.Int64("created", 0, "time of the source, in seconds since 1970")
	dir := flags.String("out", "", "the directory for what is made; required")
	architectures := flags.StringSlice("arch", []string{"amd64"}, "architectures, as GOARCH names them")
	reference := flags.String("reference", "ghcr.io/paddock-scheduler/scheduler:dev", "name and tag of the image")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("image: --out is missing: give a directory")
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	meta.Created = time.Unix(*created, 0)
	var binaries []image.Binary
	for _, arch := range *architectures {
		fmt.Fprintln(out, "compiling for", arch)
		source.Arch = arch
		b, err := makeBinary(ctx, source, meta, filepath.Join(*dir, "scheduler-linux-"+arch))
		if err != nil {
			return err
		}
		binaries = append(binaries, b)
	}
	index, err := image.Index(meta, binaries...)
	if err != nil {
		return err
	}
	archive := filepath.Join(*dir, "scheduler-oci.tar")
	if err := image.WriteArchive(archive, index, *reference); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	fmt.Fprintf(out, "%s has %s for %s, digest %s\n", archive, *reference, strings.Join(*architectures, ", "), digest)
	return nil
}

// makeBinary compiles the source to path, and writes the bill of materials beside it.
func makeBinary(ctx context.Context, source image.Source, meta image.Meta, path string) (image.Binary, error) {
	if err := image.Build(ctx, source, path); err != nil {
		return image.Binary{}, err
	}
	b, err := image.ReadBinary(path)
	if err != nil {
		return b, err
	}
	text, err := image.SBOM(meta, b)
	if err != nil {
		return b, err
	}
	if err := os.WriteFile(path+".spdx.json", text, 0o644); err != nil {
		return b, fmt.Errorf("image: %w", err)
	}
	return b, nil
}

func runPush(ctx context.Context, args []string, out io.Writer) error {
	flags := pflag.NewFlagSet("push", pflag.ContinueOnError)
	archive := flags.String("archive", "", "what \"release image\" has made; required")
	reference := flags.String("reference", "", "registry, name and tag of the image; required")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *archive == "" {
		return errors.New("push: --archive is missing: give the file that \"release image\" has made")
	}
	digest, err := image.Push(ctx, *archive, *reference)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s has digest %s\n", *reference, digest)
	return nil
}
