package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/localcluster/demo"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
	"github.com/paddock-scheduler/paddock/manifests/samples"
)

const (
	// usualREST is where the REST API is unless the port is in use.
	usualREST = "127.0.0.1:9080"
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

// run does everything. An end of the context is no error, but what could not be removed then is one.
// Everything that was started has ended on return.
func (l *launcher) run(ctx context.Context) error {
	err := l.session(ctx)
	if err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return err
	}
	l.screen.say("everything is stopped")
	return nil
}

func (l *launcher) session(ctx context.Context) error {
	if err := l.takeREST(); err != nil {
		return err
	}
	cluster, err := l.start(ctx)
	if err != nil {
		return err
	}
	applier, err := demo.NewApplier(cluster.AdminConfig())
	if err != nil {
		return errors.Join(err, cluster.Stop())
	}
	err = l.untilEnd(ctx, cluster, applier)
	l.screen.say("stopping")
	return errors.Join(err, removeRecord(l.dir), l.remove(applier), cluster.Stop())
}

// untilEnd demonstrates until the context ends, which is no error, or a process does, which is a DiedError.
func (l *launcher) untilEnd(ctx context.Context, cluster *localcluster.Cluster, applier *demo.Applier) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { cancel(cluster.Wait(ctx)) }()
	err := l.demonstrate(ctx, cluster, applier)
	if err == nil {
		<-ctx.Done()
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (l *launcher) demonstrate(ctx context.Context, cluster *localcluster.Cluster, applier *demo.Applier) error {
	if err := l.apply(ctx, applier); err != nil {
		return err
	}
	if err := l.startScheduler(ctx, cluster); err != nil {
		return err
	}
	if err := writeRecord(l.dir, cluster.KubeconfigPath(localcluster.UserAdmin)); err != nil {
		return err
	}
	return l.show(ctx, cluster)
}

// takeREST decides on the REST address, and says so when it is not the usual one.
func (l *launcher) takeREST() error {
	if listener, err := net.Listen("tcp", usualREST); err == nil {
		l.restAddress = usualREST
		return listener.Close()
	}
	address, err := localcluster.FreeAddress()
	if err != nil {
		return err
	}
	l.restAddress = address
	l.screen.say("%s is in use: the scheduler's REST API will be at %s", usualREST, l.restURL())
	return nil
}

func (l *launcher) restURL() string { return "http://" + l.restAddress }

func (l *launcher) binary(name string) string { return filepath.Join(l.bin, name) }

// start starts the control plane, or connects to one that exists.
func (l *launcher) start(ctx context.Context) (*localcluster.Cluster, error) {
	if l.kubeconfig != "" {
		l.screen.say("using the existing cluster of %s: only our scheduler is started, for pods with schedulerName yunikorn", l.kubeconfig)
	} else {
		l.screen.say("starting a control plane with %d simulated nodes in %s", l.nodes, l.dir)
	}
	return localcluster.Start(ctx, localcluster.Options{
		Dir: l.dir, Kubeconfig: l.kubeconfig, Binary: l.binary("localplane"), Nodes: l.nodes,
		Progress: func(s string) { l.screen.say("%s", s) },
	})
}

// startScheduler starts our scheduler. On a cluster that exists it has only our profile:
// default-scheduler is the cluster's own.
func (l *launcher) startScheduler(ctx context.Context, cluster *localcluster.Cluster) error {
	o := localcluster.SchedulerOptions{
		Binary: l.binary("scheduler"), Config: manifests.TwoProfiles,
		Arguments: []localcluster.Argument{{Plugin: "QueueSort", Name: "restAddress", Value: l.restAddress}},
	}
	if l.kubeconfig != "" {
		o.Config, o.LeaderElection = manifests.SecondScheduler, true
	}
	_, err := cluster.StartScheduler(ctx, o)
	return err
}

// apply creates the samples.
func (l *launcher) apply(ctx context.Context, applier *demo.Applier) error {
	objects, err := demo.Read(samples.Files)
	if err != nil {
		return err
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

// remove removes the samples from a cluster that goes on.
func (l *launcher) remove(applier *demo.Applier) error {
	if l.kubeconfig == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), removePatience)
	defer cancel()
	l.screen.say("removing the samples from the cluster")
	return applier.Remove(ctx)
}

// show waits for the samples, prints queues and help, and returns.
func (l *launcher) show(ctx context.Context, cluster *localcluster.Cluster) error {
	pods, placed, err := demo.AwaitPlaced(ctx, cluster.Client(), samples.Placed, placePatience)
	if err != nil && !errors.Is(err, demo.ErrNotPlaced) {
		return err
	}
	l.screen.say("%d sample pods are placed, of %d that the queues allow", placed, samples.Placed)
	for i := range pods {
		if p := &pods[i]; p.Spec.NodeName == "" {
			l.screen.say("%s/%s waits: %s", p.Namespace, p.Name, cmp.Or(demo.Waits(p), "why is not known yet"))
		}
	}
	if err != nil && l.kubeconfig == "" { // another cluster may have no room for them
		return err
	}
	l.table(ctx)
	l.screen.plain(l.help(cluster.KubeconfigPath(localcluster.UserAdmin)))
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
