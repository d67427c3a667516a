package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/localcluster/build"
)

// defaultLDFlags stamp the version of Kubernetes that go.mod names; without it the servers call themselves v0.0.0.
const defaultLDFlags = "-X k8s.io/component-base/version.gitVersion=v1.35.8" +
	" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=35"

// settings are the flags.
type settings struct {
	nodes      int
	dir        string
	kubeconfig string
	rest       string
	root       string
	ldflags    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A second Ctrl-C ends this process at once, and the kernel its children.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run is main without the process: it returns the exit code.
func run(ctx context.Context, args []string, env func(string) string, stdout, stderr io.Writer) int {
	s, err := parse(args, env, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 2
	}
	l := &launcher{settings: s, screen: newScreen(stdout)}
	if err := l.run(ctx); err != nil {
		return fail(stderr, err)
	}
	return 0
}

// fail explains an error and returns the exit code.
func fail(stderr io.Writer, err error) int {
	var died *localcluster.DiedError
	if errors.As(err, &died) {
		fmt.Fprintf(stderr, "\nlast lines of %s:\n%s\n\n", died.Log, died.Tail)
	}
	fmt.Fprintln(stderr, "error:", err)
	return 1
}

// parse reads flags and environment; a flag wins.
func parse(args []string, env func(string) string, stderr io.Writer) (settings, error) {
	var s settings
	flags := flag.NewFlagSet("localcluster", flag.ContinueOnError)
	flags.SetOutput(stderr)
	nodes := orDefault(env("NODES"), "20")
	flags.StringVar(&nodes, "nodes", nodes, "number of simulated nodes (NODES)")
	flags.StringVar(&s.dir, "dir", orDefault(env("DIR"), ".cluster"), "directory for data, logs and kubeconfigs (DIR)")
	flags.StringVar(&s.kubeconfig, "kubeconfig", env("KUBECONFIG"), "use this existing cluster and start only the scheduler (KUBECONFIG)")
	flags.StringVar(&s.rest, "rest", orDefault(env("REST"), "http://127.0.0.1:9080"), "address of the scheduler's REST API (REST)")
	flags.StringVar(&s.ldflags, "ldflags", orDefault(env("LDFLAGS"), defaultLDFlags), "linker flags of all builds (LDFLAGS)")
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		return s, fmt.Errorf("unexpected argument %q: all options are flags, see --help", flags.Arg(0))
	}
	var err error
	if s.nodes, err = strconv.Atoi(nodes); err != nil || s.nodes < 1 {
		return s, fmt.Errorf("nodes (NODES) is %q, want a number from 1 on", nodes)
	}
	if s.root, err = build.FindRoot("."); err != nil {
		return s, err
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return s, fmt.Errorf("dir (DIR): %w", err)
	}
	return s, s.checkKubeconfig()
}

// checkKubeconfig makes the path absolute. A kubeconfig inside our own directory is forgotten: it is that of
// a cluster this program made, still exported in the user's shell.
func (s *settings) checkKubeconfig() error {
	if s.kubeconfig == "" {
		return nil
	}
	if strings.ContainsRune(s.kubeconfig, filepath.ListSeparator) {
		return fmt.Errorf("kubeconfig (KUBECONFIG) is a list (%s): name one file, or unset it for a local cluster", s.kubeconfig)
	}
	path, err := filepath.Abs(s.kubeconfig)
	if err != nil {
		return fmt.Errorf("kubeconfig (KUBECONFIG): %w", err)
	}
	if inside, err := filepath.Rel(s.dir, path); err == nil && filepath.IsLocal(inside) {
		s.kubeconfig = ""
		return nil
	}
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("kubeconfig (KUBECONFIG): %w: unset it for a local cluster", err)
	}
	s.kubeconfig = path
	return nil
}

func orDefault(s, d string) string {
	if s == "" {
		return d
	}
	return s
}
