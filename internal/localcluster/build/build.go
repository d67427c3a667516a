package build

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// Module is the path of the module that holds the programs.
const Module = "github.com/paddock-scheduler/paddock"

// Options configure a build.
type Options struct {
	// Root is the directory of go.mod; see FindRoot.
	Root string
	// Packages are the main packages, "./cmd/scheduler" for example. The binary is in Root/bin
	// and has the name of the last element.
	Packages []string
	// LDFlags is passed on to the linker. The same flags should be used everywhere, or binaries are linked again and again.
	LDFlags string
	// Report, if set, is called after every compiled package, and once per second.
	Report func(Progress)
}

// Progress is the progress of a build.
type Progress struct {
	// Done and Total count packages to compile. Total is 0 when only linking, or nothing
	// at all, is left.
	Done, Total int
	// Package was started last; empty before the first.
	Package string
}

// Build compiles and links. The error contains the compiler's messages. When the context
// ends, so does the go command.
func Build(ctx context.Context, o Options) error {
	if o.Report == nil {
		o.Report = func(Progress) {}
	}
	if _, err := exec.LookPath("go"); err != nil {
		return fmt.Errorf("build: the go command is needed to compile %s: %w", strings.Join(o.Packages, ", "), err)
	}
	c := &counter{report: o.Report}
	stale, err := o.staleCount(ctx)
	if err != nil {
		return err
	}
	c.begin(stale)
	stop := c.tick(time.Second)
	defer stop()
	out := filepath.Join(o.Root, "bin")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	args := []string{"build", "-v", "-ldflags", o.LDFlags, "-o", out + string(filepath.Separator)}
	if messages, err := o.run(ctx, append(args, o.Packages...), c.line); err != nil {
		return fmt.Errorf("build %s: %w\n%s", strings.Join(o.Packages, ", "), err, strings.Join(messages, "\n"))
	}
	return nil
}

// cached is the reason the go command gives for a package that needs no compiling.
const cached = "not installed but available in build cache"

// staleCount returns the number of packages that have to be compiled.
func (o Options) staleCount(ctx context.Context) (int, error) {
	count := 0
	args := []string{"list", "-deps", "-ldflags", o.LDFlags, "-f", "{{if .Stale}}stale {{.StaleReason}}{{end}}"}
	messages, err := o.run(ctx, append(args, o.Packages...), func(line string) bool {
		reason, ok := strings.CutPrefix(line, "stale ")
		if ok && reason != cached {
			count++
		}
		return ok
	})
	if err != nil {
		return 0, fmt.Errorf("list the packages of %s: %w\n%s", strings.Join(o.Packages, ", "), err, strings.Join(messages, "\n"))
	}
	return count, nil
}

// run runs the go command and passes every line of its output to take; the lines that
// take refuses are returned.
func (o Options) run(ctx context.Context, args []string, take func(string) bool) (rest []string, err error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = o.Root
	// One set of flags everywhere, because they are part of the key of the compile cache.
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start go: %w", err)
	}
	defer read.Close()
	cmd.Stdout, cmd.Stderr = write, write
	err = localcluster.Spawn(cmd)
	if closeErr := write.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return nil, fmt.Errorf("start go: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		// Compilers are children of the go command, so the whole group is ended. The read
		// below then ends.
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	})
	defer stop()
	rest = eachLine(read, take)
	if err := cmd.Wait(); ctx.Err() != nil {
		return rest, context.Cause(ctx)
	} else if err != nil {
		return rest, err
	}
	return rest, nil
}

// eachLine reads to the end and returns the lines that take refuses, the last hundred of them.
func eachLine(r io.Reader, take func(string) bool) (rest []string) {
	for b := bufio.NewReader(r); ; {
		line, err := b.ReadString('\n')
		if line = strings.TrimRight(line, "\r\n"); line != "" && !take(line) {
			rest = append(rest, line)
			rest = rest[max(0, len(rest)-100):]
		}
		if err != nil {
			return rest
		}
	}
}

// FindRoot returns the directory of this module's go.mod, looking from dir upwards.
func FindRoot(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for at := dir; ; at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+Module+"\n") {
			return at, nil
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("find the module: %w", err)
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.mod of %s in %s or above: run this inside a clone of the repository", Module, dir)
		}
	}
}
