package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is a running control plane, or schedulers on one that is not ours. Its methods may be
// called from several goroutines.
type Cluster struct {
	options Options
	ports   ports
	pki     *pki
	lock    *os.File // of the directory
	admin   *rest.Config
	client  kubernetes.Interface
	died    chan *Process

	mu        sync.Mutex
	processes []*Process // all, in the order they were started
	nextNode  map[string]int
	stopped   bool
}

// Start starts a fresh cluster and returns when pods can be created on it. On failure it stops what it has started;
// a component that ends by itself gives a *DiedError with the end of its log. The context bounds the start only.
// With Options.Kubeconfig it starts nothing.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	lock, err := takeDir(o.Dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{options: o, lock: lock, died: make(chan *Process, 64), nextNode: map[string]int{}}
	if err := c.up(ctx); err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	return c, nil
}

func (c *Cluster) up(ctx context.Context) error {
	if c.options.Kubeconfig != "" {
		return c.connect()
	}
	began := time.Now()
	if err := c.prepare(); err != nil {
		return err
	}
	for _, g := range []program{c.etcd(), c.apiServer()} {
		if _, err := c.start(ctx, g); err != nil {
			return err
		}
	}
	// The other two need only the API server, so they start in parallel.
	var others errgroup.Group
	for _, g := range []program{c.controllerManager(), c.nodeAgent()} {
		others.Go(func() error {
			_, err := c.start(ctx, g)
			return err
		})
	}
	if err := others.Wait(); err != nil {
		return err
	}
	if err := c.grantScheduler(ctx); err != nil {
		return err
	}
	if err := c.awaitServiceAccount(ctx); err != nil {
		return err
	}
	if c.options.Nodes > 0 {
		if _, err := c.AddNodes(ctx, c.options.NodeSpec, c.options.Nodes); err != nil {
			return err
		}
	}
	c.options.Progress(fmt.Sprintf("cluster with %d nodes is up after %.1f s", c.options.Nodes, time.Since(began).Seconds()))
	return nil
}

// prepare chooses ports and writes certificates and kubeconfigs.
func (c *Cluster) prepare() (err error) {
	if c.ports, err = newPorts(); err != nil {
		return err
	}
	if c.pki, err = newPKI(filepath.Join(c.options.Dir, "pki")); err != nil {
		return err
	}
	if err := c.writeKubeconfigs(); err != nil {
		return err
	}
	return c.connect()
}

// connect makes the client of the administrator.
func (c *Cluster) connect() (err error) {
	if c.admin, err = clientcmd.BuildConfigFromFlags("", c.KubeconfigPath(UserAdmin)); err != nil {
		return fmt.Errorf("kubeconfig of the administrator: %w", err)
	}
	c.admin.QPS, c.admin.Burst = -1, -1
	if c.client, err = kubernetes.NewForConfig(c.admin); err != nil {
		return fmt.Errorf("client of the admin: %w", err)
	}
	return nil
}

// awaitServiceAccount waits for the default service account, without which no pod can be created.
func (c *Cluster) awaitServiceAccount(ctx context.Context) error {
	return awaitProcess(ctx, c.Process(ControllerManager), time.Minute, func(ctx context.Context) (bool, error) {
		_, err := c.client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			return err == nil, nil
		}
		return false, fmt.Errorf("look for the default service account: %w", err)
	})
}

// AdminConfig returns a client configuration that may do everything, without a client-side rate limit. The caller may change it.
func (c *Cluster) AdminConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Client returns the cluster's own admin client.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// launch starts a child under a name that no running child has.
func (c *Cluster) launch(g program) (*Process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return nil, fmt.Errorf("start %s: the cluster is stopped", g.name)
	}
	if before := c.latest(g.name); before != nil && before.Running() {
		return nil, fmt.Errorf("start %s: it runs already (pid %d)", g.name, before.PID())
	}
	p, err := launch(g, c.options.Dir, c.ended)
	if err != nil {
		return nil, err
	}
	c.processes = append(c.processes, p)
	return p, nil
}

// start launches a program and waits until it is ready.
func (c *Cluster) start(ctx context.Context, g program) (*Process, error) {
	began := time.Now()
	p, err := c.launch(g)
	if err != nil {
		return nil, err
	}
	if err := p.awaitReady(ctx); err != nil {
		return nil, err
	}
	c.options.Progress(fmt.Sprintf("%s is ready after %.1f s", g.name, time.Since(began).Seconds()))
	return p, nil
}

// ended is called at every child's end.
func (c *Cluster) ended(p *Process) {
	if p.intended.Load() {
		return
	}
	select {
	case c.died <- p:
	default: // there may be no receiver, and 64 are waiting
	}
}

// Process returns the latest process of a component (Etcd, APIServer, ...) or scheduler, or nil.
func (c *Cluster) Process(name string) *Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest(name)
}

func (c *Cluster) latest(name string) *Process {
	for _, p := range slices.Backward(c.processes) {
		if p.name == name {
			return p
		}
	}
	return nil
}

// Wait waits until a process of the cluster ends that was not stopped or killed through
// this package; it returns a *DiedError then. It returns nil when the context ends.
func (c *Cluster) Wait(ctx context.Context) error {
	select {
	case p := <-c.died:
		return died(p)
	case <-ctx.Done():
		return nil
	}
}

// Stop ends all processes, the latest started first, and frees the directory; its files
// stay. Stopping twice is allowed. The error lists the processes that did not end by
// themselves and were killed.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	if c.stopped {
		c.mu.Unlock()
		return nil
	}
	c.stopped = true // no process is started any more
	c.mu.Unlock()
	var errs []error
	for _, p := range slices.Backward(c.processes) {
		errs = append(errs, p.Stop())
	}
	return errors.Join(append(errs, c.lock.Close())...)
}
