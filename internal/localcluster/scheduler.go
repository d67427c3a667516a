package localcluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// SchedulerOptions configure a scheduler.
type SchedulerOptions struct {
	// Name is that of the process and its log; empty means "scheduler". A scheduler that has ended can be started again
	// under its name.
	Name string
	// Binary is the path of the scheduler. Required.
	Binary string
	// Config is a KubeSchedulerConfiguration; empty means the binary's built-in one.
	// clientConnection.kubeconfig is added, because kube-scheduler ignores --kubeconfig
	// beside --config.
	Config []byte
	// Arguments are written to all profiles of Config, the last one of a name counts.
	Arguments []Argument
	// Kubeconfig is the path of the kubeconfig to use. Empty means that of UserScheduler.
	Kubeconfig string
	// LeaderElection enables leader election. Then the scheduler is ready when it serves,
	// leader or not.
	LeaderElection bool
	// Flags, if any, are those of a manifest, and replace the flags that are chosen here.
	// Only the files that they name are replaced (by that of Config and by Kubeconfig),
	// and --secure-port is added.
	Flags []string
	// Args are appended to the flags, Env to the environment ("NAME=value").
	Args, Env []string
}

// Argument is an argument of a plugin.
type Argument struct {
	Plugin, Name string
	Value        any
}

// StartScheduler starts a scheduler and waits until its /readyz answers: its caches are in sync, its first cycles may run.
func (c *Cluster) StartScheduler(ctx context.Context, o SchedulerOptions) (*Process, error) {
	if o.Kubeconfig == "" {
		o.Kubeconfig = c.KubeconfigPath(UserScheduler)
	}
	run, err := prepareScheduler(c.options.Dir, o)
	if err != nil {
		return nil, err
	}
	return c.start(ctx, run)
}

// prepareScheduler chooses a port and writes the configuration below dir.
func prepareScheduler(dir string, o SchedulerOptions) (program, error) {
	name := cmp.Or(o.Name, "scheduler")
	run := program{name: name, binary: o.Binary, ready: "/readyz", readyIn: time.Minute}
	port, err := freePort()
	if err != nil {
		return run, err
	}
	run.url = "https://" + address(port)
	run.env = append([]string{"KUBECONFIG=" + o.Kubeconfig}, o.Env...)
	work := filepath.Join(dir, run.name)
	if err := os.MkdirAll(work, 0o755); err != nil {
		return run, fmt.Errorf("prepare %s: %w", run.name, err)
	}
	config := ""
	if len(o.Config) > 0 {
		config = filepath.Join(work, "config.yaml")
		if err := writeSchedulerConfig(config, o); err != nil {
			return run, err
		}
	}
	if len(o.Flags) > 0 {
		run.args, err = shippedFlags(o.Flags, config, o.Kubeconfig)
	} else {
		run.args = chosenFlags(o, config, filepath.Join(work, "certificates"))
	}
	run.args = append(append(run.args, fmt.Sprintf("--secure-port=%d", port)), o.Args...)
	return run, err
}

// chosenFlags are the default flags of a scheduler; config is empty for the binary's own.
func chosenFlags(o SchedulerOptions, config, certificates string) []string {
	var out []string
	if config != "" {
		out = append(out, "--config="+config)
	}
	return append(out,
		"--kubeconfig="+o.Kubeconfig, "--authentication-kubeconfig="+o.Kubeconfig, "--authorization-kubeconfig="+o.Kubeconfig,
		fmt.Sprintf("--leader-elect=%t", o.LeaderElection), "--bind-address=127.0.0.1", "--cert-dir="+certificates)
}

// shippedFlags are those of a manifest with the files of this machine. It is an error if
// they name no configuration, or if there is none (config is empty).
func shippedFlags(flags []string, config, kubeconfig string) ([]string, error) {
	out, configured := slices.Clone(flags), false
	for i, flag := range out {
		switch name, _, _ := strings.Cut(flag, "="); name {
		case "--config":
			out[i], configured = name+"="+config, true
		case "--kubeconfig", "--authentication-kubeconfig", "--authorization-kubeconfig":
			out[i] = name + "=" + kubeconfig
		}
	}
	if !configured || config == "" {
		return nil, fmt.Errorf("scheduler options: Flags need a Config and --config=: there is %q in %q", config, flags)
	}
	return out, nil
}

// writeSchedulerConfig writes a configuration with its kubeconfig and arguments.
func writeSchedulerConfig(to string, o SchedulerOptions) error {
	var config map[string]any
	if err := yaml.UnmarshalStrict(o.Config, &config); err != nil {
		return fmt.Errorf("scheduler configuration: %w", err)
	}
	if config == nil {
		return errors.New("scheduler configuration: it has only comments")
	}
	connection, ok := config["clientConnection"].(map[string]any)
	if !ok {
		connection = map[string]any{}
	}
	connection["kubeconfig"] = o.Kubeconfig
	config["clientConnection"] = connection
	for _, a := range o.Arguments {
		if setArgument(config, a) == 0 {
			return fmt.Errorf("scheduler configuration: there is no profile, where %s of %s belongs", a.Name, a.Plugin)
		}
	}
	data, err := yaml.Marshal(config)
	if err == nil {
		err = os.WriteFile(to, data, 0o644)
	}
	if err != nil {
		return fmt.Errorf("scheduler configuration: %w", err)
	}
	return nil
}

// setArgument sets an argument in all profiles and returns how many there are.
func setArgument(config map[string]any, a Argument) (count int) {
	profiles, _ := config["profiles"].([]any)
	for _, p := range profiles {
		if profile, ok := p.(map[string]any); ok { // the scheduler refuses an entry of another form
			argsOf(profile, a.Plugin)[a.Name] = a.Value
			count++
		}
	}
	return count
}

// argsOf returns the arguments of a plugin in a profile, which may be new.
func argsOf(profile map[string]any, plugin string) map[string]any {
	plugins, _ := profile["pluginConfig"].([]any)
	for _, p := range plugins {
		if config, _ := p.(map[string]any); config["name"] == plugin {
			if config["args"] == nil {
				config["args"] = map[string]any{}
			}
			if args, ok := config["args"].(map[string]any); ok {
				return args
			}
		}
	}
	args := map[string]any{}
	profile["pluginConfig"] = append(plugins, map[string]any{"name": plugin, "args": args})
	return args
}
