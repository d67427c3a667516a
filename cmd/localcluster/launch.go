package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/localcluster/build"
	"github.com/paddock-scheduler/paddock/internal/localcluster/demo"
	"github.com/paddock-scheduler/paddock/manifests/samples"
)

const (
	// placePatience is how long the sample pods may take to be placed.
	placePatience = 2 * time.Minute
	// removePatience is how long removing the samples may take.
	removePatience = 15 * time.Second
)

// launcher runs one cluster, or one scheduler on a cluster that exists.
type launcher struct {
	settings
	screen      *screen
	restAddress string // host:port, once takeREST has decided
}

// running is what the launcher has started.
type running struct {
	kubeconfig string
	config     *rest.Config
	// wait returns nil when the context ends, and a *localcluster.DiedError when a process ends by itself.
	wait func(context.Context) error
	// stop ends everything that was started.
	stop func() error
}

// run does everything. An end of the context is no error; everything that was started has ended on return.
func (l *launcher) run(ctx context.Context) error {
	err := l.session(ctx)
	if ctx.Err() != nil && !isDied(err) {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
		l.screen.say("everything is stopped")
		return nil
	}
	return err
}

func isDied(err error) bool {
	_, died := errors.AsType[*localcluster.DiedError](err)
	return died
}

func (l *launcher) session(ctx context.Context) (err error) {
	if _, err := chooseREST(l.rest); err != nil {
		return err // before a long build
	}
	if err := l.build(ctx); err != nil {
		return err
	}
	if err := l.takeREST(); err != nil {
		return err
	}
	started, err := l.start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		l.screen.say("stopping")
		err = errors.Join(err, removeRecord(l.dir), started.stop())
	}()
	if err := writeRecord(l.dir, started.kubeconfig); err != nil {
		return err
	}
	// What follows ends early when a process dies.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan error, 1)
	go func() {
		err := started.wait(ctx)
		cancel(err)
		ended <- err
	}()
	if err := l.show(ctx, started); err != nil {
		if cause := context.Cause(ctx); isDied(cause) {
			return cause
		}
		return err
	}
	return <-ended
}

// takeREST decides on the REST address, and says so when it is not the usual one.
func (l *launcher) takeREST() (err error) {
	if l.restAddress, err = chooseREST(l.rest); err == nil && l.rest == "" && l.restAddress != usualREST {
		l.screen.say("%s is in use: the scheduler's REST API will be at %s", usualREST, l.restURL())
	}
	return err
}

func (l *launcher) restURL() string { return "http://" + l.restAddress }

// build compiles what is missing or stale.
func (l *launcher) build(ctx context.Context) error {
	programs := []string{"./cmd/localplane", "./cmd/scheduler", "./cmd/kubectl-paddock"}
	if l.kubeconfig != "" {
		programs = programs[1:]
	}
	announced := false
	l.screen.quiet()
	began := time.Now()
	err := build.Build(ctx, build.Options{Root: l.root, Packages: programs, LDFlags: l.ldflags, Report: func(p build.Progress) {
		if !announced && p.Total > 0 {
			announced = true
			l.screen.say("building %s: %s to compile", strings.Join(programs, " and "), packages(p.Total))
			if p.Total > 1000 {
				l.screen.say("this compiles Kubernetes from source: 5 to 10 minutes the first time, seconds from then on")
			}
		}
		l.screen.progress(buildLine(p))
	}})
	if err != nil {
		return err
	}
	l.screen.say("binaries in %s are up to date (%.1f s)", filepath.Join(l.root, "bin"), time.Since(began).Seconds())
	return nil
}

func (l *launcher) binary(name string) string { return filepath.Join(l.root, "bin", name) }
func (l *launcher) profile(name string) string {
	return filepath.Join(l.root, "manifests", "config", name)
}

// start starts the cluster and the scheduler, or only the scheduler.
func (l *launcher) start(ctx context.Context) (*running, error) {
	if l.kubeconfig != "" {
		return l.startBeside(ctx)
	}
	l.screen.say("starting a control plane with %d simulated nodes in %s", l.nodes, l.dir)
	cluster, err := localcluster.Start(ctx, localcluster.Options{
		Dir: l.dir, Binary: l.binary("localplane"), Nodes: l.nodes, Progress: func(s string) { l.screen.say("%s", s) },
	})
	if err != nil {
		return nil, err
	}
	r := &running{
		kubeconfig: cluster.KubeconfigPath(localcluster.UserAdmin), config: cluster.AdminConfig(), wait: cluster.Wait, stop: cluster.Stop,
	}
	if err := l.apply(ctx, r); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	_, err = cluster.StartScheduler(ctx, localcluster.SchedulerOptions{
		Binary: l.binary("scheduler"), Config: l.profile("two-profiles.yaml"), RESTAddress: l.restAddress,
	})
	if err != nil {
		return nil, errors.Join(err, r.stop())
	}
	return r, nil
}

// startBeside starts only our scheduler, with only our profile: default-scheduler is the cluster's own.
func (l *launcher) startBeside(ctx context.Context) (*running, error) {
	l.screen.say("using the existing cluster of %s: only our scheduler is started, for pods with schedulerName yunikorn", l.kubeconfig)
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig (KUBECONFIG): %w", err)
	}
	dir, err := localcluster.OpenStateDir(l.dir)
	if err != nil {
		return nil, err
	}
	r := &running{kubeconfig: l.kubeconfig, config: config, stop: dir.Close}
	if err := l.apply(ctx, r); err != nil {
		return nil, errors.Join(err, r.stop())
	}
	scheduler, err := localcluster.RunScheduler(ctx, dir, localcluster.SchedulerOptions{
		Binary: l.binary("scheduler"), Config: l.profile("second-scheduler.yaml"), RESTAddress: l.restAddress,
		Kubeconfig: l.kubeconfig, LeaderElection: true,
	})
	if err != nil {
		return nil, errors.Join(err, r.stop())
	}
	stop := r.stop
	r.stop = func() error { return errors.Join(scheduler.Stop(), stop()) }
	r.wait = scheduler.Watch
	return r, nil
}

// apply creates the samples. On a cluster that exists they are removed by stop.
func (l *launcher) apply(ctx context.Context, r *running) error {
	objects, err := demo.Read(samples.Files)
	if err != nil {
		return err
	}
	applier, err := demo.NewApplier(r.config)
	if err != nil {
		return err
	}
	if l.kubeconfig != "" {
		stop := r.stop
		r.stop = func() error {
			ctx, cancel := context.WithTimeout(context.Background(), removePatience)
			defer cancel()
			l.screen.say("removing the samples from the cluster")
			return errors.Join(applier.Remove(ctx), stop())
		}
	}
	foreign, err := applier.Apply(ctx, objects)
	for _, name := range foreign {
		l.screen.say("%s exists and is not ours: left as it is", name)
	}
	if err != nil {
		return fmt.Errorf("samples: %w", err)
	}
	l.screen.say("samples are applied: queues in ConfigMap yunikorn/yunikorn-configs, pods in the namespaces paddock-sample-*")
	return nil
}

// show waits for the samples, prints queues and help, and returns.
func (l *launcher) show(ctx context.Context, r *running) error {
	objects, err := demo.Read(samples.Files)
	if err != nil {
		return err
	}
	workloads, err := demo.Workloads(objects)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	var latest []demo.Placement
	l.screen.quiet()
	err = demo.AwaitPlaced(ctx, client, workloads, placePatience, func(p []demo.Placement) {
		latest = p
		l.screen.progress(placementLine(p))
	})
	if _, missing := errors.AsType[*demo.NotPlacedError](err); missing && l.kubeconfig != "" {
		l.screen.say("%v", err) // another cluster may have no room for them
	} else if err != nil {
		return err
	}
	l.screen.say("%s", placementLine(latest))
	for _, line := range heldLines(latest) {
		l.screen.say("%s", line)
	}
	l.table(ctx)
	l.screen.plain(l.help(r.kubeconfig))
	return nil
}

// table prints the queues. A scheduler without REST API is worth a remark, not a failure.
func (l *launcher) table(ctx context.Context) {
	var text []byte
	var last error
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 5*time.Second, true, func(ctx context.Context) (bool, error) {
		text, last = exec.CommandContext(ctx, l.binary("kubectl-paddock"), "queues", "--server", l.restURL()).CombinedOutput()
		return last == nil, nil
	})
	if err != nil {
		l.screen.say("no table of queues: %v: %s", last, text)
		return
	}
	l.screen.plain("\n" + string(text))
}
