package main

import (
	"cmp"
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
)

// settings are the flags.
type settings struct {
	nodes      int
	dir        string
	kubeconfig string
	bin        string   // directory of this program and of those that it starts
	command    []string // empty: launch
}

// defaultDir is where the cluster is unless DIR says otherwise.
const defaultDir = ".cluster"

const usage = `Usage: localcluster [flags]            start a cluster, with samples
       localcluster [flags] pods       show the sample pods of the cluster that runs in --dir, and why they wait
       localcluster [flags] scale NAMESPACE/DEPLOYMENT REPLICAS
Flags:`

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
	if len(s.command) > 0 {
		if err := runCommand(ctx, s.dir, s.command, stdout); err != nil {
			return fail(stderr, err)
		}
		return 0
	}
	l := &launcher{settings: s, screen: newScreen(stdout)}
	if err := l.run(ctx); err != nil {
		return fail(stderr, err)
	}
	return 0
}

// fail explains an error and returns the exit code.
func fail(stderr io.Writer, err error) int {
	if died, ok := errors.AsType[*localcluster.DiedError](err); ok {
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
	nodes := cmp.Or(env("NODES"), "20")
	flags.StringVar(&nodes, "nodes", nodes, "number of simulated nodes (NODES)")
	flags.StringVar(&s.dir, "dir", cmp.Or(env("DIR"), defaultDir), "directory for data, logs and kubeconfigs (DIR)")
	flags.StringVar(&s.kubeconfig, "kubeconfig", env("KUBECONFIG"), "use this existing cluster and start only the scheduler (KUBECONFIG)")
	flags.Usage = func() {
		fmt.Fprintln(stderr, usage)
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if s.command = flags.Args(); len(s.command) > 0 {
		if err := checkCommand(s.command); err != nil {
			return s, err
		}
	}
	return s, s.complete(nodes)
}

// complete checks the settings and fills in what depends on the machine.
func (s *settings) complete(nodes string) error {
	var err error
	if s.nodes, err = strconv.Atoi(nodes); err != nil || s.nodes < 1 {
		return fmt.Errorf("nodes (NODES) is %q, want a number from 1 on", nodes)
	}
	if s.dir, err = filepath.Abs(s.dir); err != nil {
		return fmt.Errorf("dir (DIR): %w", err)
	}
	if len(s.command) > 0 {
		return nil // all else is known from what runs in dir
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("where this program is: %w", err)
	}
	s.bin = filepath.Dir(program)
	return s.checkKubeconfig()
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
