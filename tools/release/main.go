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

// imageOptions are the flags of "release image".
type imageOptions struct {
	root, out, version, revision, reference, ldflags string
	arch                                             []string
	created                                          int64
}

func runImage(ctx context.Context, args []string, out io.Writer) error {
	var o imageOptions
	flags := pflag.NewFlagSet("image", pflag.ContinueOnError)
	flags.StringVar(&o.root, "root", ".", "the directory of the source")
	flags.StringVar(&o.out, "out", "", "the directory for what is made; required")
	flags.StringSliceVar(&o.arch, "arch", []string{"amd64"}, "architectures, as GOARCH names them")
	flags.StringVar(&o.version, "version", "unknown", "version of the source")
	flags.StringVar(&o.revision, "revision", "unknown", "commit of the source")
	flags.StringVar(&o.reference, "reference", "ghcr.io/paddock-scheduler/scheduler:dev", "name and tag of the image")
	flags.StringVar(&o.ldflags, "ldflags", "", "flags for the linker")
	flags.Int64Var(&o.created, "created", 0, "time of the source, in seconds since 1970")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.out == "" {
		return errors.New("image: --out is missing: give a directory")
	}
	return makeImage(ctx, o, out)
}

func makeImage(ctx context.Context, o imageOptions, out io.Writer) error {
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return fmt.Errorf("image: %w", err)
	}
	meta := image.Meta{
		Name: "scheduler", Version: o.version, Revision: o.revision, Reference: o.reference, Created: time.Unix(o.created, 0),
	}
	var binaries []image.Binary
	for _, arch := range o.arch {
		path := filepath.Join(o.out, "scheduler-linux-"+arch)
		fmt.Fprintln(out, "compiling for", arch)
		err := image.Build(ctx, image.Source{Dir: o.root, Package: "./cmd/scheduler", LDFlags: o.ldflags, Arch: arch}, path)
		if err != nil {
			return err
		}
		b, err := image.ReadBinary(path)
		if err != nil {
			return err
		}
		text, err := image.SBOM(meta, b)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path+".spdx.json", text, 0o644); err != nil {
			return fmt.Errorf("image: %w", err)
		}
		binaries = append(binaries, b)
	}
	index, err := image.Index(meta, binaries...)
	if err != nil {
		return err
	}
	archive := filepath.Join(o.out, "scheduler-oci.tar")
	if err := image.WriteArchive(archive, index, o.reference); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	fmt.Fprintf(out, "%s has %s for %s, digest %s\n", archive, o.reference, strings.Join(o.arch, ", "), digest)
	return nil
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
