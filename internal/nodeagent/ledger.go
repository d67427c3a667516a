package nodeagent

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// ledger knows which pods every node has admitted. The watches feed it, in their order;
// it decides about waiting pods and calls nothing outside itself. All methods may be
// called from several goroutines.
type ledger struct {
	mu    sync.Mutex
	nodes map[string]*nodeBook
	pods  map[types.UID]*entry
	// rejections counts the rejected pods by reason.
	rejections map[string]int64
}

// nodeBook is the part of the ledger that belongs to one node. The information has its
// admitted pods, and no node while that is not ours or not known yet; its pods wait.
type nodeBook struct {
	info *framework.NodeInfo
	pods map[types.UID]*entry
}

// entry is one bound pod.
type entry struct {
	pod       *corev1.Pod
	where     standing
	refusal   rejection
	deletedAt time.Time
}

func newLedger() *ledger {
	return &ledger{nodes: map[string]*nodeBook{}, pods: map[types.UID]*entry{}, rejections: map[string]int64{}}
}

func (l *ledger) book(node string) *nodeBook {
	b := l.nodes[node]
	if b == nil {
		b = &nodeBook{info: framework.NewNodeInfo(), pods: map[types.UID]*entry{}}
		l.nodes[node] = b
	}
	return b
}

// observe records the current state of a pod. The time of a deletion is now: that of the API
// server is in whole seconds.
func (l *ledger) observe(pod *corev1.Pod, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.pods[pod.UID]
	if e == nil {
		e = &entry{pod: pod}
		l.pods[pod.UID] = e
		l.book(pod.Spec.NodeName).pods[pod.UID] = e
	}
	where := e.where
	l.move(e, waiting)
	e.pod = pod
	l.move(e, where) // with its requests now: it may have been resized
	if pod.DeletionTimestamp != nil && e.deletedAt.IsZero() {
		e.deletedAt = now
	}
	if podutil.IsPodTerminal(pod) {
		l.move(e, ended)
	}
}

// move changes the standing of a pod and updates the sums.
func (l *ledger) move(e *entry, to standing) {
	b := l.book(e.pod.Spec.NodeName)
	if e.where == admitted && to != admitted {
		_ = b.info.RemovePod(klog.Background(), e.pod) // it is there
	}
	if e.where != admitted && to == admitted {
		b.info.AddPod(e.pod)
	}
	e.where = to
}

// forget drops a pod that no longer exists.
func (l *ledger) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.pods[uid]
	if e == nil {
		return
	}
	l.move(e, ended)
	delete(l.pods, uid)
	b := l.book(e.pod.Spec.NodeName)
	delete(b.pods, uid)
	l.dropIfEmpty(e.pod.Spec.NodeName, b)
}

func (l *ledger) dropIfEmpty(name string, b *nodeBook) {
	if b.info.Node() == nil && len(b.pods) == 0 {
		delete(l.nodes, name)
	}
}

// setNode records a node of ours and returns the keys of the pods to check again: all of
// the node's if it is new; otherwise none.
func (l *ledger) setNode(node *corev1.Node) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.book(node.Name)
	known := b.info.Node() != nil
	b.info.SetNode(node)
	if known {
		return nil
	}
	var keys []string
	for _, e := range b.pods {
		keys = append(keys, podKey(e.pod))
	}
	return keys
}

// dropNode forgets a node that was deleted or is no longer ours.
func (l *ledger) dropNode(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.nodes[name]; b != nil {
		b.info.RemoveNode()
		l.dropIfEmpty(name, b)
	}
}

// undecided returns the pods that a node has to decide about, in the order in which a
// kubelet handles them: oldest first, then by UID.
func (b *nodeBook) undecided() (pods []*entry) {
	for _, e := range b.pods {
		if e.where == waiting && e.pod.DeletionTimestamp == nil {
			pods = append(pods, e)
		}
	}
	slices.SortFunc(pods, func(x, y *entry) int {
		return cmp.Or(x.pod.CreationTimestamp.Compare(y.pod.CreationTimestamp.Time), cmp.Compare(x.pod.UID, y.pod.UID))
	})
	return pods
}

// admitWaiting decides every waiting pod of a node, oldest first. Unless final, it stops at the
// first pod that it would have to reject and returns false: the caller then reads the
// node again and decides for good. A node that is unknown decides nothing. The second
// result lists the pods that it has just rejected.
func (l *ledger) admitWaiting(node string, final bool) (done bool, refusals []*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.nodes[node]
	if b == nil || b.info.Node() == nil {
		return true, nil
	}
	for _, e := range b.undecided() {
		r := admit(b.info, e.pod)
		if r == nil {
			l.move(e, admitted)
			continue
		}
		if !final {
			return false, nil
		}
		e.refusal = *r
		l.rejections[r.reason]++
		l.move(e, refused)
		copied := *e
		refusals = append(refusals, &copied)
	}
	return true, refusals
}

// verdict returns what the ledger knows about a pod; false if the pod is not known, or its
// node is not known or not ours.
func (l *ledger) verdict(uid types.UID) (entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.pods[uid]; e != nil && l.nodes[e.pod.Spec.NodeName].info.Node() != nil {
		return *e, true
	}
	return entry{}, false
}

// stats returns the present counts.
func (l *ledger) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Stats{Rejections: maps.Clone(l.rejections)}
	for _, b := range l.nodes {
		if b.info.Node() != nil && overcommitted(b.info) {
			s.OvercommittedNodes++
		}
	}
	return s
}
