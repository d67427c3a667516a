package simulation_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/plugins/conditions"
	"github.com/paddock-scheduler/paddock/pkg/plugins/podgroups"
	"github.com/paddock-scheduler/paddock/pkg/plugins/preemption"
	"github.com/paddock-scheduler/paddock/pkg/plugins/profiles"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/plugins/reservation"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// The lease settings as shipped.
const (
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

type instance struct {
	sim         *simulation
	api         *apiServer
	name        string
	gate        *leader.Gate
	client      *client
	interceptor *interceptor
	cancel      context.CancelFunc
	janitors    []*janitor                      // upstream's goroutines that do not end by themselves
	reads       chan struct{}                   // closed when it has read PodGroups, or need not
	nominated   func(node string) []fwk.PodInfo // the pods for which the scheduler keeps room
	schedules   atomic.Bool                     // its caches are filled, and it leads
	dead        atomic.Bool                     // its calls fail, and it is about to be stopped
	isolated    atomic.Bool                     // it does not reach the lease
	buried      chan struct{}                   // closed just before it is stopped
	done        chan struct{}                   // closed when all its goroutines have ended

	// The rest is guarded by api.mu.

	// crashIn is the number of writes until a planned crash, 0 for none; crashAfter tells
	// whether the last write takes effect.
	crashIn    int
	crashAfter bool
	deaf       map[*kind]bool // kinds with late events
	// missed tells whether it may not have seen the last valid configuration, which
	// cannot be read any more once an invalid one replaced it.
	missed   bool
	known    map[*kind]int64     // versions that it had seen at the beginning of the step
	gaps     int                 // in its watches of pods
	tried    map[types.UID]cycle // the latest of each pod
	stranded map[types.UID]bool  // pods that may not be brought back: see strand
	// overtakes is the nodes that the pod in its cycle may have although another pod goes
	// first there, and that pod.
	overtakes map[string]types.UID
}

// cycle is what a process had when a scheduling cycle began.
type cycle struct {
	began    time.Time
	knew     map[*kind]int64 // versions
	held     *reservations.View
	reserved map[string][]*corev1.Pod // the nominated pods of the other profile on each node
}

func (s *simulation) launch() {
	s.launched++
	in := &instance{
		sim: s, api: s.api, name: fmt.Sprintf("scheduler-%d", s.launched), gate: leader.NewGate(), done: make(chan struct{}), buried: make(chan struct{}), reads: make(chan struct{}),
		missed: s.document.spec == nil, deaf: map[*kind]bool{}, known: map[*kind]int64{}, stranded: map[types.UID]bool{}, tried: map[types.UID]cycle{}, overtakes: map[string]types.UID{},
	}
	if !s.elects || s.bug == bugNoGate {
		in.gate.Open()
	}
	if !s.settings.groups {
		close(in.reads)
	}
	app.SetLeader(in.gate)
	app.SetInterceptor(func(st *store.Store) app.Interceptor {
		in.interceptor = newInterceptor(in, st)
		return in.interceptor
	})
	in.client = newClient(fake.NewSimpleClientset(), in)
	ctx, cancel := context.WithCancel(context.Background())
	in.cancel = cancel
	factory := scheduler.NewInformerFactory(in.client, 0)
	cfg := s.profiles
	dynamicFactory := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(in.restConfig()), 0)
	sched, err := scheduler.New(ctx, in.client, factory, dynamicFactory, func(string) events.EventRecorder { return silent{} },
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithKubeConfig(in.restConfig()),
		scheduler.WithParallelism(1), // with more than one, the order of nodes is random
		scheduler.WithPodInitialBackoffSeconds(cfg.PodInitialBackoffSeconds),
		scheduler.WithPodMaxBackoffSeconds(cfg.PodMaxBackoffSeconds),
		scheduler.WithFrameworkOutOfTreeRegistry(in.registry()))
	if err == nil {
		err = profiles.Check(cfg, profiles.Effective(sched.Profiles)) // as the command does
		sched.FailureHandler = conditions.Correct(sched.FailureHandler, in.client, in.beyondQuota)
	}
	if err != nil {
		cancel()
		s.fault("a process does not start: %v", err)
		return
	}
	go func() {
		defer close(in.done)
		factory.Start(ctx.Done())
		dynamicFactory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())
		dynamicFactory.WaitForCacheSync(ctx.Done())
		if sched.WaitForHandlersSync(ctx) == nil {
			in.runLeading(ctx, sched)
		}
		<-ctx.Done()
		factory.Shutdown()
		dynamicFactory.Shutdown()
	}()
	s.instances = append(s.instances, in)
}

// triesPods tells whether the process schedules. While upstream's Coscheduling waits for the
// list of PodGroups, a cycle of a member stops all cycles.
func (in *instance) triesPods() bool {
	select {
	case <-in.reads:
		return in.schedules.Load()
	default:
		return false
	}
}

// runLeading schedules: at once, or from when it gets the lease until it loses it.
func (in *instance) runLeading(ctx context.Context, sched *scheduler.Scheduler) {
	if !in.sim.elects {
		in.schedules.Store(true)
		sched.Run(ctx)
		return
	}
	// As in upstream's app.Run.
	var running sync.WaitGroup
	defer running.Wait()
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: leader.Watch(&leaseLock{lease: &in.api.lease, in: in}, in.gate, renewDeadline), Name: "paddock-scheduler",
		LeaseDuration: leaseDuration, RenewDeadline: renewDeadline, RetryPeriod: retryPeriod, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				running.Add(1)
				defer running.Done()
				in.sim.logf("%s leads", in.name)
				in.schedules.Store(true)
				sched.Run(ctx)
			},
			OnStoppedLeading: func() { // upstream exits here
				in.sim.logf("%s does not lead any more", in.name)
				in.die()
			},
		},
	})
	if err != nil {
		panic(err)
	}
	elector.Run(ctx)
}

// stop ends a process for good, and waits until all its goroutines have ended.
func (in *instance) stop() {
	in.die()
	close(in.buried)
	<-in.reads
	in.cancel()
	<-in.done
	for _, j := range in.janitors {
		j.stop <- true
	}
}

// die makes all further calls of a process fail, as after a crash.
func (in *instance) die() {
	in.dead.Store(true)
	in.api.locked(in.api.wake)
}

// crashes tells whether the process dies at this write.
func (in *instance) crashes(after bool) bool {
	defer holding(&in.api.mu)()
	if in.crashIn == 0 || in.crashAfter != after {
		return false
	}
	if in.crashIn--; in.crashIn > 0 {
		return false
	}
	in.dead.Store(true)
	in.api.wake()
	return true
}

// mayWrite finds a write outside of a scheduling cycle by a process that does not lead.
// Writes of a dead process do not count, because its goroutines are only leftovers.
func (in *instance) mayWrite(ours bool, what, name string) {
	if ours && in.sim.elects && !in.leads() && !in.dead.Load() {
		in.sim.fault("%s does not lead, and tries to %s %s", in.name, what, name)
	}
}

// leads tells whether the process leads by the lease: other processes wait for its duration after they
// have seen the write. The time in the lease is that before the first attempt. At the moment in which a
// process gives the lease away, a write that it sent before may be on its way.
func (in *instance) leads() bool {
	l := &in.api.lease
	defer holding(&l.mu)()
	if l.record != nil && l.record.HolderIdentity == "" {
		return time.Since(l.written) == 0
	}
	return l.record != nil && l.record.HolderIdentity == in.name && time.Since(l.written) < leaseDuration
}

func (in *instance) registry() frameworkruntime.Registry {
	return frameworkruntime.Registry{
		queuesort.Name: watching(queuesort.New, func(p *queuesort.Plugin) fwk.Plugin {
			if in.sim.bug == bugDeaf || in.sim.bug == bugUnasked {
				return deafQueueSort{p, in}
			}
			return p
		}),
		preemption.Name: func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			in.nominated = h.NominatedPodsForNode
			if in.sim.bug == bugBlindFilters {
				h = blindHandle{h}
			}
			watch := func(p *preemption.Plugin) fwk.Plugin { return &watchedPreemption{p, in} }
			return watching(preemption.New, watch)(ctx, args, h)
		},
		reservation.Name: watching(reservation.New, func(p *reservation.Plugin) fwk.Plugin {
			return &watchedReservation{p, in}
		}),
		podgroups.Name: watching(podgroups.New, in.watchPodGroups),
		probeName:      func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return &probe{in}, nil },
	}
}

// watching makes a plugin, with an observer in its place.
func watching[P fwk.Plugin](made frameworkruntime.PluginFactory, by func(P) fwk.Plugin) frameworkruntime.PluginFactory {
	return func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		p, err := made(ctx, args, h)
		if err != nil {
			return nil, err
		}
		return by(p.(P)), nil
	}
}

const probeName = "Probe"

// probe sees the beginning of every cycle and, in the profile without our plugins, the
// reservation of a node.
type probe struct{ in *instance }

var (
	_ fwk.PreFilterPlugin   = &probe{}
	_ fwk.ReservePlugin     = &probe{}
	_ fwk.EnqueueExtensions = &probe{}
)

func (*probe) Name() string { return probeName }

func (*probe) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) { return nil, nil }

func (*probe) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

func (p *probe) PreFilter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ []fwk.NodeInfo) (*fwk.PreFilterResult, *fwk.Status) {
	holds := p.in.store().Holds()
	reserved := p.in.reserved(p.in.nodeNames(), *pod.Spec.Priority)
	p.in.interceptor.tries(pod.UID)
	p.in.api.locked(func() {
		p.in.tried[pod.UID] = cycle{began: time.Now(), knew: p.in.known, held: holds, reserved: reserved}
		delete(p.in.stranded, pod.UID)
		clear(p.in.overtakes)
	})
	p.in.sim.count(cycles)
	return nil, nil
}

// Reserve finds a node that is held for others, unless the pod held a node when its cycle
// began: that hold may have ended meanwhile. Nor does it count if the other hold came since:
// a new leader takes holds over while it tries pods.
func (p *probe) Reserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	var then *reservations.View
	p.in.api.locked(func() { then = p.in.tried[pod.UID].held })
	if _, held := then.Of(pod.UID); !held && !p.in.interceptor.mayUse(then, pod, node).OK {
		p.in.interceptor.checkReserve(p.in.store().Holds(), pod, node)
	}
	p.in.checkFirst(pod, node)
	// Placements by cycles of the other profile are noted, too.
	w := p.in.interceptor
	defer holding(&w.mu)()
	w.told++
	if known := w.pods[pod.UID]; known.Node == "" {
		w.lodged[pod.UID] = lodging{node, request(pod)}
	}
	return nil
}

// Unreserve notes that such a cycle has failed.
func (p *probe) Unreserve(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ string) {
	w := p.in.interceptor
	defer holding(&w.mu)()
	w.told++
	delete(w.lodged, pod.UID)
}

// watchedReservation is the plugin that charges pods; it also calls the interceptor.
type watchedReservation struct {
	*reservation.Plugin
	in *instance
}

func (w *watchedReservation) Filter(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	switch {
	case w.in.sim.bug == bugHeldNodes:
		return nil
	case w.in.sim.shut(pod):
		return fwk.NewStatus(fwk.Unschedulable, "no")
	}
	ask := func() *fwk.Status { return w.Plugin.Filter(ctx, state, pod, node) }
	if _, err := state.Read(reservation.PlanningKey); err == nil {
		return w.filter(ask, pod, node)
	}
	switch w.in.sim.bug {
	case bugClosed, bugCrowded:
		ask = w.in.keepForOwnWrongly(ask, pod, node)
	}
	status := w.filter(ask, pod, node)
	w.in.checkAnswer(status, ask, func(s *fwk.Status) string { return w.in.misjudges(s, pod, node) })
	return status
}

func (w *watchedReservation) Reserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	status := w.reserve(ctx, state, pod, node)
	if status.IsSuccess() {
		w.in.checkFirst(pod, node) // the lock of the API server comes before that of the interceptor
	}
	return status
}

func (w *watchedReservation) reserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	defer holding(&w.in.interceptor.mu)()
	holds, spec := w.in.interceptor.Holds(), w.in.interceptor.Spec()
	waited := w.in.interceptor.waitForRoom(pod.UID, node)
	remember := w.in.interceptor.forgetWrongly(waited)
	var status *fwk.Status
	if w.in.sim.bug == bugHeldNodes {
		w.in.interceptor.Assume(pod.UID, node, store.NoSnapshot, time.Now())
	} else {
		status = w.Plugin.Reserve(ctx, state, pod, node)
	}
	if strings.Contains(status.Message(), "pods that are before it may run again") {
		w.in.interceptor.gaveWay[pod.UID]++
	}
	if status.IsSuccess() {
		w.in.interceptor.checkReserve(holds, pod, node)
		w.in.interceptor.checkQuota(pod.UID, spec)
		w.in.interceptor.assumed(pod, node)
		w.in.interceptor.checkRoom(pod.UID, node, spec, waited)
		w.in.interceptor.lodged[pod.UID] = lodging{node, request(pod)}
	}
	remember()
	return status
}

func (w *watchedReservation) Unreserve(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) {
	defer holding(&w.in.interceptor.mu)()
	w.in.interceptor.unreserved(pod)
	w.in.sim.logf("%s takes the place of %s back", w.in.name, pod.Name)
	if w.in.sim.bug == bugNoUnreserve {
		return
	}
	w.Plugin.Unreserve(ctx, state, pod, node)
}

// silent is an event recorder that writes nothing.
type silent struct{}

func (silent) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {}
