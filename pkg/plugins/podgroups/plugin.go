package podgroups

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeutil "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"
	"sigs.k8s.io/scheduler-plugins/apis/config"
	"sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"
	"sigs.k8s.io/scheduler-plugins/pkg/coscheduling"
	"sigs.k8s.io/scheduler-plugins/pkg/generated/clientset/versioned"
	informers "sigs.k8s.io/scheduler-plugins/pkg/generated/informers/externalversions/scheduling/v1alpha1"
	"sigs.k8s.io/scheduler-plugins/pkg/util"

	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

// Name is the name of the plugin in a scheduler configuration.
const Name = coscheduling.Name

// Plugin is upstream's plugin. The store counts how many members of a PodGroup have a
// place.
type Plugin struct {
	upstream
	process     *app.Process
	handle      fwk.Handle
	wait        time.Duration // at Permit, for a pod that upstream lets go and the store does not
	postFilters *app.PostFilters
}

// upstream has the extension points that the upstream plugin implements.
type upstream interface {
	fwk.QueueSortPlugin
	fwk.PreFilterPlugin
	fwk.PostFilterPlugin
	fwk.ReservePlugin
	fwk.PermitPlugin
	fwk.EnqueueExtensions
}

// New makes the plugin and, in a managed profile, has the store follow PodGroups. It
// fails where their definition is not installed.
func New(ctx context.Context, obj runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	client, err := versioned.NewForConfig(h.KubeConfig())
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	pl, err := wrap(ctx, func(h fwk.Handle) (fwk.Plugin, error) { return coscheduling.New(ctx, obj, h) }, client, h)
	if err != nil {
		return nil, fmt.Errorf("plugin %s: %w", Name, err)
	}
	args := obj.(*config.CoschedulingArgs) // upstream's New refuses others
	pl.wait = time.Duration(args.PermitWaitingTimeSeconds) * time.Second
	return pl, nil
}

// guarded is the handle that upstream's plugin has: pods that wait at Permit are let go
// only if the store agrees.
type guarded struct {
	fwk.Handle
	may func(pod *corev1.Pod) bool
}

// IterateOverWaitingPods calls back with each pod that waits at Permit.
func (g *guarded) IterateOverWaitingPods(do func(fwk.WaitingPod)) {
	g.Handle.IterateOverWaitingPods(func(w fwk.WaitingPod) { do(guardedPod{w, g.may}) })
}

type guardedPod struct {
	fwk.WaitingPod
	may func(pod *corev1.Pod) bool
}

// Allow lets the pod go, or does nothing.
func (g guardedPod) Allow(plugin string) {
	if g.may(g.GetPod()) {
		g.WaitingPod.Allow(plugin)
	}
}

// Reject takes the place of a pod back. Upstream's reason names an extension point; this
// one says what happened.
func (g guardedPod) Reject(plugin, why string) {
	what := "found no node"
	if !strings.Contains(why, "PostFilter") {
		what = "lost its place"
	}
	g.WaitingPod.Reject(plugin, fmt.Sprintf(
		"PodGroup %s: the pod gave back its place, because another pod of it %s", groupOf(g.GetPod()), what))
}

// wrap builds the upstream plugin with a guarded handle, and, in a managed profile, has
// the store follow PodGroups, which the client reads.
func wrap(ctx context.Context, build func(fwk.Handle) (fwk.Plugin, error), client versioned.Interface, h fwk.Handle) (*Plugin, error) {
	p := app.For(ctx, h)
	pl := &Plugin{process: p, handle: h, postFilters: app.PostFiltersOf(h, Name)}
	theirs, err := build(&guarded{h, pl.mayGo})
	if err != nil {
		return nil, err
	}
	var ok bool
	if pl.upstream, ok = theirs.(upstream); !ok {
		return nil, fmt.Errorf("%T lacks an extension point that it had", theirs)
	}
	p.FollowPodGroups(h.ProfileName(), func(s *store.Store) {
		go run(ctx, client, s, p.Clock)
	})
	return pl, nil
}

// Permit does what upstream's does, with two corrections by the store. If enough members
// have a place, the pod and all waiting members of its PodGroup go on: upstream does not
// count members bound while this process was a standby. If too few have a place, the pod
// waits, although upstream would let it go: upstream still counts pods that were rejected
// because their PodGroup was deleted.
func (pl *Plugin) Permit(ctx context.Context, state fwk.CycleState, pod *corev1.Pod, node string) (*fwk.Status, time.Duration) {
	status, wait := pl.upstream.Permit(ctx, state, pod, node)
	switch {
	case status.IsSuccess() && !pl.mayGo(pod):
		return fwk.NewStatus(fwk.Wait), pl.wait
	case !status.IsWait() || !pl.gathered(pod):
		return status, wait
	}
	group := groupOf(pod)
	pl.handle.IterateOverWaitingPods(func(w fwk.WaitingPod) {
		if groupOf(w.GetPod()) == group {
			w.Allow(Name)
		}
	})
	return nil, 0
}

// PostFilter takes back the places of a PodGroup of which a pod finds none, as upstream
// does, but not when enough others have one.
func (pl *Plugin) PostFilter(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	if pl.gathered(pod) {
		return nil, pl.postFilters.End(state, pod, fwk.NewStatus(fwk.Unschedulable))
	}
	result, status := pl.upstream.PostFilter(ctx, state, pod, nodes)
	return result, pl.postFilters.End(state, pod, status)
}

// gathered tells whether the store knows of enough pods of a PodGroup that have a place.
func (pl *Plugin) gathered(pod *corev1.Pod) bool {
	s := pl.process.Store()
	return s != nil && s.Gathered(pod.UID)
}

// mayGo tells whether a pod need not wait for others, as far as the store knows: it is of
// no PodGroup, or enough of it have a place. Without a store upstream's plugin decides.
func (pl *Plugin) mayGo(pod *corev1.Pod) bool {
	if groupOf(pod) == "" || pl.process.Store() == nil || !pl.process.Managed(pod.Spec.SchedulerName) {
		return true
	}
	return pl.gathered(pod)
}

func groupOf(pod *corev1.Pod) string { return util.GetPodGroupFullName(pod) }

// run tells the store of PodGroups until the context ends.
func run(ctx context.Context, client versioned.Interface, s groupStore, c clock.PassiveClock) {
	groups := informers.NewPodGroupInformer(client, metav1.NamespaceAll, 0, cache.Indexers{})
	if _, err := groups.AddEventHandler(handler(s, c)); err != nil {
		runtimeutil.HandleErrorWithContext(ctx, err, "PodGroups cannot be followed, so their pods will not start; restart the scheduler")
		return
	}
	groups.RunWithContext(ctx)
}

// groupStore is what is told of PodGroups: a [store.Store].
type groupStore interface {
	SetPodGroup(namespace, name string, minMember int, now time.Time)
}

// handler tells a store of PodGroups.
func handler(s groupStore, c clock.PassiveClock) cache.ResourceEventHandler {
	return informer.Handler(
		func(_, g *v1alpha1.PodGroup) {
			s.SetPodGroup(g.Namespace, g.Name, max(int(g.Spec.MinMember), 1), c.Now())
		},
		func(g *v1alpha1.PodGroup) { s.SetPodGroup(g.Namespace, g.Name, 0, c.Now()) })
}
