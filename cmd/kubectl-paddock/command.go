package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// The exit codes.
const (
	exitFine    = 0
	exitFound   = 1 // the command did its work and found something wrong
	exitTrouble = 2 // it could not do its work: usage, files, connection
)

// errFound ends a command that has printed what it found.
var errFound = errors.New("something was found")

// streams are where a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// run executes the command line and returns the exit code.
func run(args []string, s streams) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	cmd := newCommand(s)
	cmd.SetArgs(args)
	executed, err := cmd.ExecuteContextC(ctx)
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, errFound):
		return exitFound
	}
	fmt.Fprintln(s.err, printable("error: "+err.Error()))
	if errors.As(err, new(*usageError)) {
		fmt.Fprintf(s.err, "See %q.\n", executed.CommandPath()+" --help")
	}
	return exitTrouble
}

// usageError is a command line that means nothing.
type usageError struct{ error }

func (e *usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

const long = `Shows queues and preemption as the scheduler sees them, and checks and compares
configurations. It reads and never writes.

"config" needs no cluster. The other commands ask the scheduler: through the API
server by default, with your own rights (the verb get on services/proxy and, for
preview, create), or directly at the address that --server gives.

Exit codes: 0 fine, 1 something is wrong with what was looked at, 2 the command
could not do its work.`

func newCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "kubectl-paddock",
		Short:             "Show queues; check and compare their configuration",
		Long:              long,
		Version:           cmp.Or(documents.BuildVersion, "unknown"),
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl paddock"},
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	cmd.SetIn(s.in)
	cmd.SetOut(s.out)
	cmd.SetErr(s.err)
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	group(cmd)
	conn := &connection{}
	conn.addFlags(cmd.PersistentFlags())
	config := &cobra.Command{Use: "config", Short: "Check and compare queue configurations"}
	group(config)
	config.AddCommand(newValidate(), newDiff(conn))
	cmd.AddCommand(config, newQueues(conn), newTop(conn), newDecisions(conn), newHolds(conn), newExplain(conn), newPreview(conn))
	return cmd
}

// group makes a command that only has commands below it. Alone it prints its
// help; with a word that is no command it fails, which cobra lets pass.
func group(cmd *cobra.Command) {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("%q has no command %q", cmd.CommandPath(), args[0])
		}
		return cmd.Help()
	}
}

// arguments refuses a number of arguments that a command cannot use; named says
// which it wants.
func arguments(least, most int, named string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) < least || len(args) > most {
			return usagef("wanted: %s; got %d arguments", named, len(args))
		}
		return nil
	}
}
