package framework_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	_ "github.com/paddock-scheduler/paddock/apis/config/scheme" // arguments of our plugins
	"github.com/paddock-scheduler/paddock/internal/expect"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/plugins/conditions"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// managed is the profile for pods in queues, other the profile for all other pods.
const (
	managed = "yunikorn"
	other   = corev1.DefaultSchedulerName
)

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{}) // upstream logs every pod that fits no node
	metrics.Register()
	// A bubble of synctest has its own clock and its own goroutines. The goroutine behind
	// the signal that upstream listens for belongs to the whole program and must not
	// start in a bubble. The handler that delays error reports since the last report must
	// be removed, because the last report may be of another clock.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR2)
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1] //nolint:reassign // there is no other way
	os.Exit(m.Run())
}

// options say how the scheduler of a test is set up.
type options struct {
	queues string // queues.yaml
	window int    // of the store; 0 is the default

	largest  int                       // the size to which the window may grow; 0 is window
	backoff  int                       // the first one, in seconds; the longest is ten times that
	registry frameworkruntime.Registry // replaces some of our plugins, to plant a bug
	before   func(c *cluster)          // if set, fills the cluster before the scheduler starts
	stock    bool                      // leaves out all our plugins
	rest     string                    // the address of REST; empty for none
}

// cluster is a running scheduler and its API server in memory.
type cluster struct {
	t         testing.TB
	client    *fake.Clientset
	api       *podAPI
	probe     *probe
	process   *app.Process
	store     *store.Store
	scheduler *scheduler.Scheduler
	nodes     int    // added so far
	stop      func() // stops all goroutines and waits for them
}

// theDaemonSet is the owner of all DaemonSet pods of these tests.
var theDaemonSet = &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "d", UID: "d"}}

// start runs a scheduler with both profiles until the end of the test.
func start(t testing.TB, o options) *cluster {
	t.Helper()
	client := fake.NewSimpleClientset(theDaemonSet)
	c := &cluster{t: t, client: client, api: newPodAPI(client), probe: newProbe()}
	cfg := configuration(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	factory := scheduler.NewInformerFactory(client, 0)
	sched, err := scheduler.New(ctx, client, factory, nil, func(string) events.EventRecorder { return c.probe },
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithPodInitialBackoffSeconds(int64(o.backoff)), // 0 is no value for users, but is exact
		scheduler.WithPodMaxBackoffSeconds(int64(10*o.backoff)),
		scheduler.WithFrameworkOutOfTreeRegistry(c.registry(o)))
	expect.OK(t, err)
	c.scheduler, c.store = sched, c.process.Store()
	if !o.stock {
		sched.FailureHandler = conditions.Correct(sched.FailureHandler, client, c.store.BeyondQuota)
	}
	if o.before != nil {
		o.before(c)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	expect.OK(t, sched.WaitForHandlersSync(ctx))
	done := make(chan struct{})
	c.stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(c.stop)
	go func() {
		sched.Run(ctx)
		factory.Shutdown()
		close(done)
	}()
	if !o.stock {
		c.eventually("the store starts", c.store.Ready)
	}
	return c
}

// registry is our plugins, those of the test, and the probe.
func (c *cluster) registry(o options) frameworkruntime.Registry {
	r := frameworkruntime.Registry{
		queuesort.Name:   queuesort.New,
		preemption.Name:  preemption.New,
		reservation.Name: reservation.New,
		probeName: func(ctx context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			c.process = app.For(ctx, h)
			return c.probe, nil
		},
	}
	for name, factory := range o.registry {
		r[name] = factory
	}
	return r
}

// configuration is the shipped one with two profiles, or upstream's, and the probe.
func configuration(t testing.TB, o options) *schedconfig.KubeSchedulerConfiguration {
	t.Helper()
	cfg := expect.Get(latest.Default())(t)
	if !o.stock {
		cfg = shipped(t, o)
	}
	probe := schedconfig.Plugin{Name: probeName}
	for _, profile := range cfg.Profiles {
		p := profile.Plugins
		p.PreFilter.Enabled = slices.Insert(p.PreFilter.Enabled, 0, probe)
		p.Reserve.Enabled = append(p.Reserve.Enabled, probe)
	}
	expect.OK(t, validation.ValidateKubeSchedulerConfiguration(cfg))
	return cfg
}

func shipped(t testing.TB, o options) *schedconfig.KubeSchedulerConfiguration {
	t.Helper()
	file := filepath.Join(t.TempDir(), "queues.yaml")
	expect.OK(t, os.WriteFile(file, []byte(o.queues), 0o600))
	if o.window == 0 {
		o.window, o.largest = 64, max(o.largest, 1024)
	}
	const args = "      managedProfiles: [yunikorn]\n"
	document := bytes.ReplaceAll(manifests.TwoProfiles, []byte(args), fmt.Appendf([]byte(args), `
      configFile: %s
      restAddress: %q
      podInitialBackoff: %ds
      podMaxBackoff: %ds
      window: %d
      maxWindow: %d
`, file, o.rest, o.backoff, 10*o.backoff, o.window, max(o.largest, o.window)))
	obj, _, err := scheme.Codecs.UniversalDecoder().Decode(document, nil, nil)
	expect.OK(t, err)
	return obj.(*schedconfig.KubeSchedulerConfiguration)
}

// patience is how long a test waits for something that should happen at once.
const patience = 30 * time.Second

// eventually waits until the condition holds.
func (c *cluster) eventually(what string, holds func() bool) {
	c.t.Helper()
	err := wait.PollUntilContextTimeout(context.Background(), 2*time.Millisecond, patience, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		root := c.store.Snapshot().Root()
		c.t.Fatalf("waited %v in vain: %s\nroot: allocated %v, admitted %v, pending %v; %d cycles; check: %v", patience, what,
			root.Allocated, root.Admitted, root.Pending, c.probe.allCycles(), c.store.Check())
	}
}

// addNodes adds equal nodes: cpu in cores, and twice as many pods.
func (c *cluster) addNodes(n int, cores int64) {
	c.t.Helper()
	for range n {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%03d", c.nodes)},
			Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:    *resource.NewQuantity(cores, resource.DecimalSI),
				corev1.ResourceMemory: *resource.NewQuantity(cores<<30, resource.BinarySI),
				corev1.ResourcePods:   *resource.NewQuantity(2*cores, resource.DecimalSI),
			}},
		}
		expect.Get(c.client.CoreV1().Nodes().Create(context.Background(), node, metav1.CreateOptions{}))(c.t)
		c.nodes++
	}
}

// epoch is the creation time of the first pod of a test.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// pod is a pending pod of the profile: one core, created so many seconds after epoch.
func pod(profile, name string, second int) *corev1.Pod {
	p := plugintest.Pod(name, 1000)
	p.Namespace, p.UID, p.Labels = "default", types.UID(name), map[string]string{}
	p.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(second) * time.Second))
	p.Spec.SchedulerName, p.Spec.Priority = profile, new(int32)
	return p
}

// inQueue puts a pod into a queue and an application.
func inQueue(p *corev1.Pod, queue, app string) *corev1.Pod {
	p.Labels["queue"], p.Labels["applicationId"] = queue, app
	return p
}

// onNode makes a pod a running one.
func onNode(p *corev1.Pod, node string) *corev1.Pod {
	p.Spec.NodeName, p.Status.Phase = node, corev1.PodRunning
	return p
}

// inBubble runs a test with a clock that advances only when all goroutines wait for it.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	// The scheduler waits on channels of the gate, which have to belong to the bubble.
	defer app.SetLeader(leader.Always())
	synctest.Test(t, func(t *testing.T) {
		app.SetLeader(leader.Always())
		f(t)
	})
}

// holding takes a lock: defer holding(&a.mu)() holds it until the end of a function.
func holding(mu *sync.Mutex) (release func()) {
	mu.Lock()
	return mu.Unlock
}

// end stops the scheduler of a bubble.
func (c *cluster) end() {
	c.stop()
	time.Sleep(2 * time.Second) // upstream's metrics check once a second whether they may end
}
