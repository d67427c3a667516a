package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	clientevents "k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/clock"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/pkg/events"
	"github.com/paddock-scheduler/paddock/pkg/evict"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/metrics"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	queuesconfig "github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/record"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/rest"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
	"github.com/paddock-scheduler/paddock/pkg/store"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// configFileInterval is how often a configuration file is read.
const configFileInterval = 2 * time.Second

// leaderGate reports whether this program may write to the cluster. It is set before the
// first plugin is made.
var leaderGate = leader.Always()

// SetLeader sets how the program knows that it leads. Call it before the scheduler is
// made. Without it the program always leads.
func SetLeader(gate *leader.Gate) { leaderGate = gate }

var (
	processesMu locks.Mutex // guards processes
	processes   = map[informers.SharedInformerFactory]*Process{}
)

// Process is what the plugins of one scheduler share.
type Process struct {
	store   atomic.Pointer[store.Store]
	managed atomic.Pointer[[]string] // args.ManagedProfiles; nil before Configure
	watcher atomic.Pointer[informer.Watcher]
	// previewer makes previews of pods, once it is set.
	previewer atomic.Pointer[rest.Previewer]
	Clock     clock.WithTicker
	Leader    *leader.Gate
	taints    *evict.Taints // nil before Configure

	synced  chan struct{}             // closed once the store got everything that existed
	syncBy  atomic.Pointer[time.Time] // when cycles no longer wait for that; nil before the first wait
	keptOff keptOff
	peers   sync.Map // names of profiles that have QueuePreemption
	handles sync.Map // name of a profile -> its fwk.Handle

	// mu guards the rest, and makes Configure run once. It is taken before the lock of the store.
	mu          locks.Mutex
	args        *config.QueueSortArgs // nil before Configure
	preemption  *config.QueuePreemptionArgs
	reservation *config.NodeReservationArgs
	podGroups   podGroups
	drain       func(context.Context) // ends the executor; nil without one
}

// For returns the Process of the scheduler of the handle.
func For(ctx context.Context, h fwk.Handle) *Process {
	processesMu.Lock()
	defer processesMu.Unlock()
	factory := h.SharedInformerFactory()
	p := processes[factory]
	if p == nil {
		p = &Process{Clock: clock.RealClock{}, Leader: leaderGate, synced: make(chan struct{})}
		processes[factory] = p
		context.AfterFunc(ctx, func() {
			processesMu.Lock()
			defer processesMu.Unlock()
			delete(processes, factory)
		})
	}
	p.handles.Store(h.ProfileName(), h)
	return p
}

// recorders returns the recorder for the events of pods of a profile.
type recorders = func(profile string) clientevents.EventRecorder

// recorder returns the recorder of a profile, so that an event on a pod names its
// scheduler, or other if the profile has none.
func (p *Process) recorder(profile string, other clientevents.EventRecorder) clientevents.EventRecorder {
	if h, known := p.handles.Load(profile); known && h.(fwk.Handle).EventRecorder() != nil {
		return h.(fwk.Handle).EventRecorder()
	}
	return other
}

// ErrNoStore is the error of a plugin if no QueueSort of ours was made.
var ErrNoStore = errors.New("plugin QueueSort is not enabled: enable it in every profile, " +
	"queueSort: {enabled: [{name: QueueSort}], disabled: [{name: \"*\"}]}")

// Store returns the queue store; nil before Configure.
func (p *Process) Store() *store.Store { return p.store.Load() }

// Managed reports whether pods with the scheduler name belong to queues.
func (p *Process) Managed(schedulerName string) bool {
	m := p.managed.Load()
	return m != nil && slices.Contains(*m, schedulerName)
}

// Configure makes the store and starts the sources of its input. Every instance of QueueSort
// calls it. Only the first call has an effect; the others must pass the same arguments.
func (p *Process) Configure(ctx context.Context, h fwk.Handle, args *config.QueueSortArgs) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.args != nil {
		return keepSame("QueueSort", &p.args, args)
	}
	options := storeOptions(args)
	options.Standby = !p.Leader.Leading() // see onStartedLeading
	s := store.New(queuesconfig.Default(), options)
	logger := klog.FromContext(ctx).WithName("queues")
	announcer := newAnnouncer(h.EventRecorder(), p.Leader.Leading)
	w := interceptor(s)
	watcher, err := p.watch(h, w, p.informerOptions(h, args, announcer, logger))
	if err != nil {
		return err
	}
	follower := newFollower(s, announcer, p, logger)
	source, err := configSource(args, h, follower, logger)
	if err != nil {
		return err
	}
	decided := record.New(s.Follow(output.Decisions))
	books := inventory.New(s)
	drift, checks := p.audit(s, watcher, books, logger)
	if err := serveREST(ctx, args, h, s, p.restOptions(h, rest.Options{
		Inventory: books, Record: decided, Explainer: &s.Readers,
		Configuration: follower.configuration, Checks: append(checks, follower.check()),
	}), logger); err != nil {
		return err
	}
	p.measure(ctx, s, int(*args.MetricsQueues), decided)
	p.managed.Store(&args.ManagedProfiles)
	p.watcher.Store(watcher)
	p.store.Store(s)
	p.args = args
	p.applyPreemption() // what plugins set before there was a store
	p.applyPodGroups()
	go decided.Run(ctx)
	go drift.Run(ctx)
	go source.Run(ctx)
	go watcher.Run(ctx)
	go loop.Every(ctx, p.Clock, announceEvery, announcer.look)
	p.startLoops(ctx, h, s, logger)
	go p.awaitSync(ctx, watcher)
	go p.start(ctx, s, follower, logger)
	if h.EventRecorder() != nil { // a framework of a test has none
		recorder := func(profile string) clientevents.EventRecorder { return p.recorder(profile, h.EventRecorder()) }
		go p.reporter(h, s, recorder, logger).Run(ctx)
		p.execute(ctx, h, w, recorder, logger)
	}
	return nil
}

// informerOptions returns the options of the informers.
func (p *Process) informerOptions(h fwk.Handle, args *config.QueueSortArgs, a *announcer, logger klog.Logger) informer.Options {
	return informer.Options{
		ManagedProfiles: args.ManagedProfiles,
		Requests:        Requests(),
		Clock:           p.Clock,
		Logger:          logger,
		Namespace:       a.namespace,
		Client:          h.ClientSet(),
		Peer:            p.peer,
		ClaimedOwners:   args.DaemonSetOwner == config.DaemonSetOwnerClaimed,
	}
}

// restOptions adds to the options of REST what does not depend on the store.
func (p *Process) restOptions(h fwk.Handle, o rest.Options) rest.Options {
	o.Previewer, o.Leading, o.Taint = p.offered, p.Leader.Leading, p.taints.On
	o.Build, o.NodeLabels, o.Clock = documents.BuildInformation(), nodeLabels(h), p.Clock
	return o
}

// watch feeds the store from the informers, which hide the taint of held nodes, because the
// filters of this process use the holds. It must be called before the informers start.
func (p *Process) watch(h fwk.Handle, s informer.Store, o informer.Options) (*informer.Watcher, error) {
	nodes := h.SharedInformerFactory().Core().V1().Nodes()
	p.taints = evict.NewTaints(reservations.TaintOwner(o.ManagedProfiles), p.taintPolicy, nodes.Lister())
	if err := nodes.Informer().SetTransform(p.taints.Hide); err != nil {
		return nil, fmt.Errorf("hide the taint of held nodes: %w", err)
	}
	return informer.Watch(s, h.SharedInformerFactory(), o)
}

func storeOptions(args *config.QueueSortArgs) store.Options {
	return store.Options{
		Window:         int(*args.Window),
		MaxWindow:      int(*args.MaxWindow),
		SlotLease:      args.SlotLease.Duration,
		InitialBackoff: orNone(args.PodInitialBackoff.Duration),
		MaxBackoff:     orNone(args.PodMaxBackoff.Duration),
		DynamicQueues: queues.DynamicLimits{
			Total: int(*args.MaxDynamicQueues), PerNamespace: int(*args.MaxDynamicQueuesPerNamespace),
		},
		GenerateUniqueAppID: args.GenerateUniqueAppID,
	}
}

// orNone returns the store's value for no back-off in place of 0, which would be the
// store's default.
func orNone(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// Requests returns how requests of pods are read.
func Requests() informer.RequestOptions {
	return informer.RequestOptions{
		PodLevelResources: utilfeature.DefaultFeatureGate.Enabled(features.PodLevelResources),
		PodLevelResize:    utilfeature.DefaultFeatureGate.Enabled(features.InPlacePodLevelResourcesVerticalScaling),
	}
}

// RequiredNode returns the only node on which a pod of a DaemonSet can run. It is empty
// for every other pod, and before Configure.
func (p *Process) RequiredNode(pod *corev1.Pod) string {
	if w := p.watcher.Load(); w != nil {
		return w.RequiredNode(pod)
	}
	return ""
}

type runner interface{ Run(ctx context.Context) }

func configSource(args *config.QueueSortArgs, h fwk.Handle, f *follower, logger klog.Logger) (runner, error) {
	if args.ConfigFile != "" {
		return informer.NewConfigFile(args.ConfigFile, configFileInterval, f), nil
	}
	return informer.NewConfigMaps(h.ClientSet(), args.EffectiveConfigNamespace(os.Getenv), f, logger)
}

// measure starts the metrics on the scheduler's /metrics.
func (p *Process) measure(ctx context.Context, s *store.Store, shown int, decided *record.Record) {
	metrics.Register()
	metrics.Follow(&s.Readers, shown)
	decided.Follow(metrics.NewDecisions().Count, metrics.StepsLost)
	guarantees := &metrics.Guarantees{Store: &s.Readers, Leading: p.Leader.Leading, Clock: p.Clock}
	go guarantees.Run(ctx)
}

// reporter reports why pods wait.
func (p *Process) reporter(h fwk.Handle, s *store.Store, recorder recorders, logger klog.Logger) *events.Reporter {
	return &events.Reporter{
		Reports: s, Client: h.ClientSet(), Pods: h.SharedInformerFactory().Core().V1().Pods().Lister(),
		Recorder: recorder, Leading: p.Leader.Leading, Clock: p.Clock, Logger: logger,
	}
}
