package evict

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// TaintPolicy defines whether held nodes are tainted.
type TaintPolicy uint8

const (
	// TaintNever writes no taint, and removes taints left from before.
	TaintNever TaintPolicy = iota
	// TaintIfAllowed writes the taint. If the API server refuses it, victims are deleted
	// without it.
	TaintIfAllowed
	// TaintAlways writes the taint. If the API server refuses it, no victim is deleted.
	TaintAlways
)

const (
	// afterBound is how long the taint remains after the hold of a bound asker ends. The
	// node watch of another scheduler may be ahead of its pod watch: it would see the
	// node free, and not yet the pod that now uses it.
	afterBound = time.Second
	// taintInterval is how often tainted nodes are checked.
	taintInterval = 5 * time.Second
)

var (
	// errOtherTaint means that another scheduler with these plugins holds the node.
	errOtherTaint = errors.New("another scheduler has tainted the node as held")
	// errNotTainted means that the node has not been reconciled yet.
	errNotTainted = errors.New("the node is not tainted yet")
	// errOtherHolds means that holds came or ended before the taint was written for them.
	errOtherHolds = errors.New("the holds of the node have changed")
)

// Taints writes the taint on nodes and keeps what is known of it.
//
// The scheduler's own filters must not see the taint: plugin NodeReservation keeps other
// pods off, and the asker has no toleration. Hide therefore removes it from nodes before
// the informer stores them, and remembers it here.
type Taints struct {
	owner  string
	policy func() TaintPolicy
	nodes  corelisters.NodeLister

	// refused is true once the API server has refused a taint, which is logged once.
	refused atomic.Bool
	// ending is true when this process is about to end, and no node must be tainted.
	ending atomic.Bool

	mu    locks.Mutex          // guards the rest
	known map[string]nodeTaint // by node; no entry for no taint
}

// nodeTaint is the newest that is known of the taint of a node: by the informer, or by the
// answer to a write. The value is empty for none.
type nodeTaint struct {
	value, version string // version is that of the node
	// unsure is true during a write, and after a failed one that may have taken effect.
	unsure bool
}

// taintAnswer is the result of the last reconcile of a node for the plan that waits for
// its taint; plan is nil if none waits.
type taintAnswer struct {
	plan *output.Work
	err  error
}

// NewTaints returns the taints of an owner. The policy is read at each use.
func NewTaints(owner string, policy func() TaintPolicy, nodes corelisters.NodeLister) *Taints {
	return &Taints{owner: owner, policy: policy, nodes: nodes, known: map[string]nodeTaint{}}
}

// Hide is the transform of the node informer: it returns nodes without our taint. An
// informer may pass a node again that Hide has returned.
func (t *Taints) Hide(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	at := slices.IndexFunc(node.Spec.Taints, t.owns)
	if at < 0 {
		t.observed(node, "")
		return obj, nil
	}
	t.observed(node, node.Spec.Taints[at].Value)
	shown := *node
	shown.Spec.Taints = slices.Delete(slices.Clone(node.Spec.Taints), at, at+1)
	return &shown, nil
}

// owns reports whether a taint is one of this owner.
func (t *Taints) owns(taint corev1.Taint) bool {
	return isHeld(taint) && reservations.OwnsTaint(t.owner, taint.Value)
}

// heldTaint is the taint of a held node.
func heldTaint(value string) corev1.Taint {
	return corev1.Taint{Key: reservations.HeldTaint, Value: value, Effect: corev1.TaintEffectNoSchedule}
}

// isHeld reports whether a taint is that of a held node, of any owner.
func isHeld(taint corev1.Taint) bool {
	held := heldTaint("")
	return taint.MatchTaint(&held) // key and effect
}

// observed records what the informer received about a node. That may be older than an answer to
// a write. It may also be a node that Hide has already stripped: same version, no taint. That node
// still has the taint.
func (t *Taints) observed(node *corev1.Node, value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.known[node.Name]
	stripped := value == "" && before.value != "" && before.version != "" && before.version == node.ResourceVersion
	if stripped || isOlder(node.ResourceVersion, before.version) {
		return
	}
	t.setLocked(node.Name, nodeTaint{value, node.ResourceVersion, before.unsure})
}

// setLocked records what is known of a node, unless it is that there is no taint.
func (t *Taints) setLocked(node string, taint nodeTaint) {
	if t.known[node] = taint; taint.value == "" && !taint.unsure {
		delete(t.known, node)
	}
}

// isOlder tells whether a version of an object is older than another one of it.
func isOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// begin records that the taint of a node is about to be written or removed. The function that
// it returns records that this had no effect.
func (t *Taints) begin(node string) (undo func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.known[node]
	t.setLocked(node, nodeTaint{before.value, before.version, true})
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		now := t.known[node]
		t.setLocked(node, nodeTaint{now.value, now.version, before.unsure})
	}
}

// wrote records which taint a version of a node has on the API server, unless the informer has
// seen that version or a later one. No taint is recorded, too, because older events may follow.
func (t *Taints) wrote(node *corev1.Node, value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if seen := t.known[node.Name]; seen.version != "" && !isOlder(seen.version, node.ResourceVersion) {
		t.setLocked(node.Name, nodeTaint{value: seen.value, version: seen.version})
		return
	}
	t.known[node.Name] = nodeTaint{value: value, version: node.ResourceVersion}
}

// On returns the taint of a node in the notation of kubectl; empty for none.
func (t *Taints) On(node string) string {
	value, _ := t.on(node)
	if value == "" {
		return ""
	}
	taint := heldTaint(value)
	return taint.ToString()
}

// on returns the taint of a node, and false if it is not known.
func (t *Taints) on(node string) (value string, sure bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	taint := t.known[node]
	return taint.value, !taint.unsure
}

// forget drops what is known of a node that is gone.
func (t *Taints) forget(node string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.known, node)
}

// taintedNodes lists the nodes that have the taint or may have it, in order.
func (t *Taints) taintedNodes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(maps.Keys(t.known))
}

// isTainted reports whether a node is known to have a taint, or to have none.
func (t *Taints) isTainted(node string, tainted bool) bool {
	has, sure := t.on(node)
	return sure && (has != "") == tainted
}

// awaitTaint returns nil once the victims of a plan may be deleted, because the node is
// tainted, needs no taint, or may stay without it. Otherwise it returns an error. The first
// call for a plan has the node reconciled, and that reconcile queues the asker again.
func (e *Executor) awaitTaint(a *asker, w *output.Work) error {
	if len(w.Hold.Chosen) == 0 {
		return nil
	}
	policy := e.Taints.policy()
	if policy == TaintNever {
		return nil
	}
	want, ready := e.wantedTaint(w.Hold.Node)
	asWanted := e.Taints.isTainted(w.Hold.Node, want != "")
	e.mu.Lock()
	defer e.mu.Unlock()
	switch answer := a.taint; {
	case !ready:
		return errNotLeading
	case asWanted:
	case answer.plan != w || answer.err == nil:
		a.taint = taintAnswer{w, errNotTainted}
		e.nodes.Add(w.Hold.Node)
		return errNotTainted
	case !isTaintRefused(answer.err) || policy == TaintAlways:
		return answer.err
	case e.Taints.refused.CompareAndSwap(false, true):
		e.Logger.Error(answer.err, "Cannot taint a node that is held: other schedulers do not see the hold and may take the room. "+
			"Allow the scheduler to patch nodes, or set holdTaint of NodeReservation to Never. This is logged once", "node", w.Hold.Node)
	}
	a.taint = taintAnswer{}
	return nil
}

// answer passes the result of the reconcile of a node to the askers that wait for its
// taint.
func (e *Executor) answer(node string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for uid, a := range e.open {
		if a.taint.plan != nil && a.taint.plan.Hold.Node == node {
			a.taint.err = err
			e.askers.Add(uid)
		}
	}
}

// isTaintRefused reports whether the API server refuses the taint.
func isTaintRefused(err error) bool {
	return final(err) && !errors.Is(err, errGone) && !errors.Is(err, errOtherTaint)
}

// untaint has the taint of a node removed after a delay, if no hold needs it then.
func (e *Executor) untaint(node string, after time.Duration) {
	if !e.Taints.isTainted(node, false) {
		e.nodes.AddAfter(node, after)
	}
}

// reconcileNode writes the taint of a node as the holds require. An error means that it is
// to be called again later, also without the lease: an asker may wait for the taint.
func (e *Executor) reconcileNode(ctx context.Context, node string) error {
	err := e.call(ctx, func(ctx context.Context) error { return e.taintAsWanted(ctx, node) })
	e.answer(node, err)
	switch {
	case err == nil, errors.Is(err, errGone), errors.Is(err, errOtherTaint):
		return nil
	case isTaintRefused(err):
		if value, _ := e.Taints.on(node); value != "" {
			e.Logger.Error(err, "Cannot take the taint off a node that is not held any more; trying again from time to time. "+
				"Allow the scheduler to patch nodes, or remove the taint with kubectl taint nodes", "node", node, "taint", reservations.HeldTaint)
		}
		return nil
	}
	e.Logger.V(2).Info("Cannot write the taint of a node yet", "node", node, "err", err)
	return err
}

// untaintUnheld has taints removed that outlived their hold, for instance after a crash.
// The hold may just have ended, so it leaves the same time as after a bind.
func (e *Executor) untaintUnheld() {
	for _, node := range e.Taints.taintedNodes() {
		if want, ready := e.wantedTaint(node); ready && want == "" {
			e.untaint(node, afterBound)
		}
	}
}

// RemoveTaints removes the taint from all nodes, because this process is about to end and
// another one may never start. If one does, it taints the nodes of the holds that it
// takes over. Call RemoveTaints when Run has returned.
func (e *Executor) RemoveTaints(ctx context.Context) {
	if !e.Leading() {
		return
	}
	e.Taints.ending.Store(true)
	var all sync.WaitGroup
	for _, node := range e.Taints.taintedNodes() {
		all.Go(func() {
			var err error
			tries := wait.Backoff{Duration: backoffMin, Factor: 2, Steps: 9} // about 25 s; the context of Drain ends before that
			_ = wait.ExponentialBackoffWithContext(ctx, tries, func(ctx context.Context) (bool, error) {
				err = e.call(ctx, func(ctx context.Context) error { return e.taintAsWanted(ctx, node) })
				return err == nil || final(err) || e.stopped(ctx, err), nil
			})
			if err != nil && !errors.Is(err, errGone) {
				e.Logger.Error(err, "Cannot take the taint off a node before this process ends. The next leader does; "+
					"if none will start, remove the taint with kubectl taint nodes", "node", node, "taint", reservations.HeldTaint)
			}
		})
	}
	all.Wait()
}

// wantedTaint returns the taint that a node should have; empty for none. ready is false
// while this process does not know the holds.
func (e *Executor) wantedTaint(node string) (value string, ready bool) {
	if e.Taints.ending.Load() {
		return "", true
	}
	asker, ready := e.Store.KeepsOff(node)
	if !ready || asker == "" || e.Taints.policy() == TaintNever {
		return "", ready
	}
	return reservations.TaintValue(e.Taints.owner, asker), true
}

// taintAsWanted writes the taint of a node as the holds require. An existing taint stays
// unchanged while any hold requires one: it serves all of them.
func (e *Executor) taintAsWanted(ctx context.Context, node string) error {
	want, ready := e.wantedTaint(node)
	if !ready {
		return errNotLeading
	}
	if e.Taints.isTainted(node, want != "") {
		return nil
	}
	seen, err := e.Taints.nodes.Get(node)
	if err == nil {
		err = e.writeTaint(ctx, seen, want)
	}
	if apierrors.IsConflict(err) { // the node changed since it was seen
		err = e.taintLatest(ctx, node, want)
	}
	switch {
	case apierrors.IsNotFound(err):
		e.Taints.forget(node)
		return errGone
	case err != nil:
		return fmt.Errorf("taint node %s: %w", node, err)
	}
	e.Taints.refused.Store(false)
	return nil
}

// taintLatest reads a node, and writes its taint if it is not as wanted.
func (e *Executor) taintLatest(ctx context.Context, name, want string) error {
	node, err := e.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(node.Spec.Taints, e.Taints.owns)
	switch {
	case at < 0 && want == "":
		e.Taints.wrote(node, "")
		return nil
	case at >= 0 && want != "":
		e.Taints.wrote(node, node.Spec.Taints[at].Value)
		return nil
	}
	return e.writeTaint(ctx, node, want)
}

// writeTaint writes the taint of a node, based on the node as it was seen; empty removes the taint.
// It fails with a conflict if the node changed since then: taints are one list, and a concurrent
// change of another taint must not be lost. After begin, awaitTaint no longer trusts the taint. A
// hold that trusted it before is found by the check that follows.
func (e *Executor) writeTaint(ctx context.Context, node *corev1.Node, value string) error {
	taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), e.Taints.owns)
	if value != "" {
		if slices.ContainsFunc(taints, isHeld) {
			return errOtherTaint
		}
		taints = append(taints, heldTaint(value))
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion},
		"spec":     map[string]any{"taints": taints},
	})
	if err != nil {
		return fmt.Errorf("encode taints: %w", err)
	}
	undo := e.Taints.begin(node.Name)
	if want, ready := e.wantedTaint(node.Name); !ready || (want == "") != (value == "") {
		undo()
		return errOtherHolds
	}
	written, err := e.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	switch {
	case err == nil:
		e.Taints.wrote(written, value)
	case apierrors.IsConflict(err) || final(err):
		undo()
	}
	return err
}

// cannotTaint returns why a plan is given up if its node cannot be tainted.
func cannotTaint(w *output.Work, err error) reasons.Reason {
	switch {
	case errors.Is(err, errGone):
		return reasons.New(reasons.HoldGivenUp, "node %s is gone", w.Hold.Node)
	case errors.Is(err, errOtherTaint):
		return reasons.New(reasons.HoldGivenUp, "node %s: %v; if no such scheduler runs, remove taint %s from the node",
			w.Hold.Node, errOtherTaint, reservations.HeldTaint)
	}
	advice := ""
	if isTaintRefused(err) { // only with holdTaint: Always
		advice = " (allow the scheduler to patch nodes, or set holdTaint of NodeReservation to Auto)"
	}
	return reasons.New(reasons.HoldGivenUp, "node %s: it cannot be tainted as held, so other schedulers could take the room: %v%s",
		w.Hold.Node, err, advice)
}
