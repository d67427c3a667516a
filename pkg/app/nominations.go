package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/internal/loop"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

const (
	// nominationsEvery is how often nominations are compared with holds. A nomination
	// that is wrong at two successive checks is cleared.
	nominationsEvery = 5 * time.Second
	// nominationTimeout limits the call that clears it.
	nominationTimeout = 5 * time.Second
	// nominationErrorEvery is how many checks apart errors about one nomination are logged.
	nominationErrorEvery = 12
)

// nominations finds pods that are nominated to a node and do not hold it. The scheduler's
// filters count them on the node as if they ran. A pod with scheduling cycles loses its
// nomination in the next cycle. A pod of a full queue has no cycle, and would block
// capacity for other pods forever.
//
// At the end of a hold the executor clears the nomination (pkg/evict). This check covers
// the remaining cases. The scheduler stores a nomination at the end of the cycle that
// made it, and writes it only then, when the hold may already be over. Either write may
// fail. A process may end after one of them.
type nominations struct {
	process *Process
	handle  fwk.Handle
	client  kubernetes.Interface
	store   *store.Store
	pods    corelisters.PodLister
	nodes   corelisters.NodeLister
	logger  klog.Logger

	astray map[nomination]int // at the last check -> at how many checks in succession
}

// nomination is a pod that is nominated to a node.
type nomination struct {
	node string
	objects.Ref
}

// reconcileNominations starts the checks.
func (p *Process) reconcileNominations(ctx context.Context, h fwk.Handle, s *store.Store, logger klog.Logger) {
	core := h.SharedInformerFactory().Core().V1()
	n := &nominations{
		process: p, handle: h, client: h.ClientSet(), store: s,
		pods: core.Pods().Lister(), nodes: core.Nodes().Lister(), logger: logger.WithName("nominations"),
	}
	go loop.Every(ctx, p.Clock, nominationsEvery, func() { n.look(ctx) })
}

// look clears the nominations that were astray at the last check, too, while this process
// leads.
func (n *nominations) look(ctx context.Context) {
	before := n.astray
	n.astray = nil
	if !n.process.Leader.Leading() || !n.store.Ready() {
		return
	}
	n.astray = n.list(before)
	var again []nomination
	for at, checks := range n.astray {
		if checks > 1 {
			again = append(again, at)
		}
	}
	slices.SortFunc(again, func(a, b nomination) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.UID, b.UID))
	})
	needsRetry := false
	for _, at := range again {
		needsRetry = n.clear(ctx, at) || needsRetry
	}
	if needsRetry {
		n.retryAll()
	}
}

// list returns the nominations that are astray now, counted on from the last check.
func (n *nominations) list(before map[nomination]int) map[nomination]int {
	nodes, _ := n.nodes.List(labels.Everything()) // a lister of an informer never fails
	found := map[nomination]int{}
	for _, node := range nodes {
		for _, nominated := range n.handle.NominatedPodsForNode(node.Name) {
			if pod := n.current(nominated.GetPod()); n.isAstray(pod, node.Name) {
				at := nomination{node.Name, informer.RefOf(pod)}
				found[at] = before[at] + 1
			}
		}
	}
	return found
}

// current returns a nominated pod as the informer has it. The scheduler has only the name
// and UID of a nominated pod that is not in its queue, as one that is being deleted.
func (n *nominations) current(nominated *corev1.Pod) *corev1.Pod {
	return cmp.Or(informer.Find(n.pods, informer.RefOf(nominated)), nominated)
}

// isAstray reports whether a pod is nominated to a node that it does not hold, although only
// its hold can have nominated it. A pod in its scheduling cycle is not astray, because the
// cycle decides. A hold begins before the nomination, so holds are read after nominations.
func (n *nominations) isAstray(pod *corev1.Pod, node string) bool {
	profile := pod.Spec.SchedulerName
	if !n.process.Managed(profile) && !(n.process.peer(profile) && n.process.RequiredNode(pod) != "") {
		return false
	}
	h, held := n.store.Holds().Of(pod.UID)
	return !held || h.Node != node
}

// clear clears a nomination. If it is written in the status, it is removed there; the
// scheduler sees that, drops it, and retries the pods that it blocked. Otherwise it is
// removed from the scheduler's memory. That causes no retry, so clear returns true.
func (n *nominations) clear(ctx context.Context, at nomination) (needsRetry bool) {
	n.logger.V(2).Info("Room is kept for a pod that does not hold the node", "pod", klog.KRef(at.Namespace, at.Name), "node", at.node)
	if pod := informer.Find(n.pods, at.Ref); pod != nil && pod.Status.NominatedNodeName == at.node {
		if err := n.write(ctx, at); err != nil && n.astray[at]%nominationErrorEvery == 3 { // the second attempt
			n.logger.Error(err, "A nomination cannot be taken back, and blocks room on the node: let the scheduler's service account patch pods/status, "+
				"or delete the pod", "pod", klog.KRef(at.Namespace, at.Name), "node", at.node)
		}
		return false
	}
	n.handle.DeleteNominatedPodIfExists(informer.Named(at.Ref))
	return true
}

// write clears a nomination in the status.
func (n *nominations) write(ctx context.Context, at nomination) error {
	if !n.process.Leader.Leading() {
		return errors.New("this process does not lead")
	}
	ctx, cancel := context.WithTimeout(ctx, nominationTimeout)
	defer cancel()
	patch := fmt.Sprintf(`{"metadata":{"uid":%q},"status":{"nominatedNodeName":null}}`, at.UID)
	_, err := n.client.CoreV1().Pods(at.Namespace).Patch(ctx, at.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

// retryAll retries all pods without a node: no event reports the free capacity, and it
// is not known which pods the nomination blocked.
func (n *nominations) retryAll() {
	pods, _ := n.pods.List(labels.Everything()) // it never fails
	pending := map[string]*corev1.Pod{}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil {
			pending[pod.Namespace+"/"+pod.Name] = pod
		}
	}
	n.handle.Activate(n.logger, pending)
}
