package main

import (
	"fmt"

	"github.com/spf13/cobra"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/cli/globalflag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/component-base/version/verflag"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

const long = `The scheduler of Kubernetes with hierarchical queues: guaranteed and maximum
quotas, fair and priority order, placement rules, limits of users and groups.

Pods choose it by spec.schedulerName. Queues are read from the ConfigMaps
yunikorn-defaults and yunikorn-configs, key queues.yaml. Without --config it runs
one profile, yunikorn, under its own lease, beside the cluster's own scheduler.`

// newCommand returns the command that sets the given options by its flags and runs the
// scheduler. It is a copy of upstream's NewSchedulerCommand, because upstream has no hook
// between making the scheduler and running it.
func newCommand(opts *options.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:  "scheduler",
		Long: long,
		Args: cobra.NoArgs,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			return opts.ComponentGlobalsRegistry.Set() // feature gates, before anything asks for one
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := printVersion(cmd.OutOrStdout(), cmd.Flags()); err != nil {
				return err
			}
			verflag.PrintAndExitIfRequested()
			if err := logsapi.ValidateAndApply(opts.Logs, utilfeature.DefaultFeatureGate); err != nil {
				return fmt.Errorf("logging: %w", err)
			}
			cliflag.PrintFlags(cmd.Flags())
			return run(opts)
		},
	}
	addFlags(cmd, opts)
	return cmd
}

// addFlags adds upstream's flags, in upstream's groups.
func addFlags(cmd *cobra.Command, opts *options.Options) {
	groups := opts.Flags
	global := groups.FlagSet("global")
	verflag.AddFlags(global)
	globalflag.AddGlobalFlags(global, cmd.Name(), logs.SkipLoggingConfigurationFlags())
	for _, group := range groups.FlagSets {
		cmd.Flags().AddFlagSet(group)
	}
	columns, _, err := term.TerminalSize(cmd.OutOrStdout())
	if err != nil {
		columns = 0 // not a terminal: do not wrap
	}
	cliflag.SetUsageAndHelpFunc(cmd, *groups, columns)
}
