package simulation_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/plugins/queuesort"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// Bugs that end the program, and the beginning of the names of those against a law.
const (
	bugStandstill = "two locks are taken in different orders"
	bugPanic      = "a process panics"
	bugLaw        = "a victim is added against law "
)

// Complaints of several bugs.
const (
	notAsked = "no plan is made for pod .*: others could be preempted for it: "
	roomless = "makes pods go .*: node .* then has|which has no room there whichever pods go"
)

// The bugs that show in a history.
var (
	bugHoldLeaks    = plant("the end of a hold is not written", "it says that it holds a node")
	bugLawBroken    = plant("a DaemonSet takes a pod that is no victim", "D4: .* (has priority|may not go)")
	bugRelistDrop   = plant("a pod that appears after a gap is not noticed", "the store does not know it")
	bugNoGate       = plant("a process that does not lead writes", "does not lead, and tries to")
	bugWrongNode    = plant("pods are bound to a node that has no room", "which has no room: ")
	bugLostDeletion = plant("the end of a pod is not noticed", "has ended, and the store has it")
	bugDrift        = plant("a running pod that uses more is not noticed", "the store charges")
	bugNoUnreserve  = plant("a pod stays charged after its cycle failed", "the books say", 16)
	bugHeldNodes    = plant("nodes that are held take other pods", "places .*; that is held for")
	bugNonsense     = plant("a configuration that is invalid lifts every max", "binds .*: queue .* uses", 9)
	bugEagerDelete  = plant("pods are deleted without a decision", "there is no decision")
	bugDeaf         = plant("free room is not passed on", "it waits without a reason")
	bugByName       = plant("victims are deleted by their names", "deletes .* by its name only")
	bugShutOurs     = plant("a free node refuses pods of queues", `\(NoNodeFits.*\): node .* could take it`)
	bugShutPlain    = plant("a free node refuses other pods", `is forgotten \(\): node .* could take it`)
	bugNominated    = plant("a nomination is never taken back", "room is kept on node", 19)
	bugHalves       = plant("members of a PodGroup do not wait for each other", "place, which starts with")
	bugGroupDeaf    = plant("a PodGroup counts as larger", "could take all .* of PodGroup")
	bugGroupAlone   = plant("the PodGroup of a pod is not noticed", "PodGroup .* requests", 5)
	bugHasty        = plant("preemption for a DaemonSet starts too early", "D3: ")
	bugElsewhere    = plant("a pod on another node is deleted for a DaemonSet", "D4: victim .* is on node")
	bugNowhere      = plant("pods are bound to a node that does not exist", "binds .*, which is not there")
	bugModest       = plant("requests of pods are not noticed until they run", "gives .*: queue .* uses")
	bugVacant       = plant("no process takes over from the leader", "no process leads")
	bugRestless     = plant("the same event is sent again and again", "do not come to rest")
	bugLeftOver     = plant("the end of the last pods is not noticed", "root has")
	bugMutated      = plant("a snapshot of the queues is changed", "queue root: books say")
	_               = plant(bugLaw+"2", "makes pods go .* law 2: ")
	_               = plant(bugLaw+"3", "makes pods go .* law 3: ")
	bugShy          = plant("the usage of pods of a queue is not noticed", "law 4: ")
	_               = plant(bugLaw+"5", "makes pods go .* law 5: ")
	_               = plant(bugLaw+"6", "makes pods go .* law 6: its priority")
	_               = plant(bugLaw+"7", "makes pods go .* law 7: ", 32)
	bugBuys         = plant("a wrong condition about demand is not corrected", "wanted .*: beside it queue")
	bugUserLimit    = plant("limits of users are left out of the demand", "for .* is wanted .* it user")
	bugMaxApps      = plant("maxapplications is left out of demand", "for .* is wanted .* applications", 7)
	bugMembers      = plant("PodGroups are left out of the demand", "for .* a node is wanted .* PodGroup")
	bugNeverBack    = plant("a condition that no node is wanted stays", "for .* no node is wanted")
	bugUnlimited    = plant("limits of users and groups are forgotten", "(binds|gives) .*: (user|group) ")
	bugNever        = plant("preemptionPolicy Never is not noticed", "law 6: .* preemptionPolicy", 103)
	bugNeverThere   = plant("preemptionPolicy Never of DaemonSets is not noticed", "D2: its preemption", 53)
	bugOwnMate      = plant("a pod goes that waits at Permit for the asker", "at Permit for the asker", 82)
	bugMeek         = plant("some pods are treated as if they never preempt", notAsked, 75)
	bugHumble       = plant("pods that wait in a queue count as less urgent", "preempt it there", 100)
	bugUnasked      = plant("pods that found no node are hidden from a decision", "preempt it there", 247)
	bugUnheard      = plant("pods that back off are hidden from a decision", "preempt it there", 68)
	bugBlindFilters = plant("nominated pods are left out where room is made", "what is nominated there", 40)
	bugUntainted    = plant("the taint of a held node is not written", "no taint that keeps others off")
	bugBlind        = plant("the other scheduler ignores the taint of held nodes", "it sees no taint", 22)
	bugTaintStays   = plant("the taint of a node that was held stays", "no hold wants it")
	bugHurried      = plant("room is made again at once after a loss", "less than the retry interval", 166)
	bugIdle         = plant("a node is held for a pod that needs no victim", "no pod was chosen to go")
	bugLavish       = plant("disruption budgets count as larger", "of budget .* which allows")
	bugLast         = plant("pods of one node only do not go first there", `no room for .* \(D0\)`, 7)
	bugForged       = plant("owners of pods are taken on trust", "is taken for a pod of a DaemonSet")
	bugPatient      = plant("nodes are held without a time-out", "holds node .* for longer than", 29)
	bugOverdue      = plant("a pod that stays for too long is not noticed", notAsked+"|"+roomless, 55)
	bugLingers      = plant("a long grace period of a pod is not noticed", roomless, 8)
	bugTooLarge     = plant("the answer that a pod is too large counts as passing", "that was refused", 30)
	bugGrace        = plant("the grace period of victims is not shortened", "and victims may have")
	bugDisowned     = plant("a pod that its owner deleted counts as preempted", "law 4: ", 207)
	bugUnmarked     = plant("no mark says that a victim goes for its own", "of its own: true, and marks")
	bugInvented     = plant("invented types count as offered by nodes", "the books have")
	bugLeave        = plant("every DaemonSet may take room that is guaranteed", "makes pods go .* D2: ", 24)
	bugOwn          = plant("a node is held where a pod awaits its own", "which waits for pods of its own")
	bugUnled        = plant("originators count as other pods", "chooses originator", 71)
	bugUnhealthy    = plant("unhealthyPodEvictionPolicy is not noticed", "of which budgets guard", 11)
	bugGroupPatient = plant("PodGroups hold nodes without a time-out", "than it may .*/PodGroup", 18)
	bugGroupHasty   = plant("holds of PodGroups time out too early", "the hold of .*/PodGroup .* time", 3)
	bugOwnTime      = plant("a node is closed for too long for its own pods", "closes node .* itself")
	bugMoves        = plant("a pod with a node is charged to the queue of its new label", "the books say")
	bugEndless      = plant("rules make queues without an end", "rules have made")
	bugUndead       = plant("a deleted pod that waits is not noticed", "has ended, and the store has it")
	bugOneByOne     = plant("other members are called back when one holds a node", "calls .* back when it")
	bugMislabelled  = plant("a held node that lost its label is not noticed", "not match its label", 134)
	bugNodeStays    = plant("the end of a held node is not noticed", "still, and the node is gone", 24)
	bugClingsThere  = plant("a held node that refuses a DaemonSet is not noticed", "tolerate its taint", 33)
	bugClosed       = plant("a node is closed for the asker's namespace", "closes node .* of its own")
	bugCrowded      = plant("no room is kept for an asker that awaits its own", "no room for a holder", 58)
	bugCrowdWaits   = plant("pods that wait for the same room do not count", "of its queue have that wait")
	bugUntried      = plant("a pod that may not be tried keeps room", `keeps room on node .* \(D0\)`)
	bugMeekThere    = plant("some pods of DaemonSets are treated as if they never preempt", notAsked, 113)
)

// bugs are the bugs that show in a history.
var bugs []bug

// bug is a bug with an expression that matches the complaint. The search begins at seed 1, or at one
// that showed a bug which the first 4,000 steps do not always show.
type bug struct {
	name, complaint string
	from            []uint64
}

func plant(name, complaint string, from ...uint64) string {
	bugs = append(bugs, bug{name, complaint, from})
	return name
}

// planted is the state of planted bugs; guarded by the interceptor.
type planted struct {
	count, gaps int
	first       map[types.UID]resources.Vector // requests as first passed to the store
	hidden      map[types.UID]bool             // pods that were hidden once
}

// upsertWrongly changes an update of a pod, or drops it.
func (w *interceptor) upsertWrongly(p objects.Pod) (objects.Pod, bool) {
	first, known := w.first[p.UID]
	if !known {
		first = p.Request
		w.first[p.UID] = first
	}
	switch w.in.sim.bug {
	case bugStandstill:
		w.standStill()
	case bugPanic:
		if w.count++; w.count == 50 {
			panic("there is a bug")
		}
	case bugMutated:
		if w.count++; w.count%50 == 0 {
			root := w.Snapshot().Root()
			root.Pending = root.Pending.Add(p.Request)
		}
	case bugShy:
		if p.Node != "" && p.Labels[placement.KeyQueue] == leaves[w.in.sim.seed%uint64(len(leaves))] {
			p.Request = resources.Vector{}
		}
	case bugHumble:
		if p.Node == "" && p.Labels[placement.KeyQueue] == leaves[w.in.sim.seed%uint64(len(leaves))] {
			p.Priority -= 1000
		}
	case bugGroupAlone:
		p.Labels = maps.Clone(p.Labels)
		delete(p.Labels, objects.PodGroupLabel)
	case bugMeek, bugMeekThere:
		there := (p.RequiredNode != "") == (w.in.sim.bug == bugMeekThere)
		p.NeverPreempts = p.NeverPreempts || there && unlucky(p.Name)
	case bugNever, bugNeverThere:
		if (p.RequiredNode != "") == (w.in.sim.bug == bugNeverThere) {
			p.NeverPreempts = false
		}
	case bugLingers:
		p.DeletionGrace = 0
	case bugOverdue:
		p.GoneBy = time.Time{}
	case bugDisowned:
		p.Preempted = p.Preempted || p.Deleting
	case bugUndead:
		p.Deleting = p.Deleting && p.Node != ""
	case bugUnled:
		p.Originator, p.Owners = objects.OriginatorNo, nil
	case bugModest:
		if p.Node == "" && !p.Foreign {
			p.Request = resources.Vector{}
		}
	case bugDrift:
		if p.Node != "" {
			p.Request = first
		}
	case bugRelistDrop:
		if w.in.gaps > w.gaps && !known && p.Node == "" && !p.Foreign {
			w.gaps = w.in.gaps
			w.first[p.UID] = resources.Vector{}
			return p, false
		}
		if known && first.IsZero() {
			return p, false
		}
	}
	return p, true
}

// deleteWrongly tells whether a planted bug drops the deletion of a pod.
func (w *interceptor) deleteWrongly() bool {
	w.count++
	switch w.in.sim.bug {
	case bugLostDeletion:
		return w.count%7 == 0
	case bugLeftOver:
		return len(w.in.api.pods.objects) == 0
	}
	return false
}

// forgetWrongly hides the pods that found no node, or that back off, from the store, each
// once, until the result is called.
func (w *interceptor) forgetWrongly(waited map[types.UID]bool) (remember func()) {
	code, hides := map[string]reasons.Code{bugUnasked: reasons.NoNodeFits, bugUnheard: reasons.BackingOff}[w.in.sim.bug]
	var hidden []objects.Pod
	for uid, p := range w.pods {
		if hides && waited[uid] && !w.hidden[uid] && w.Explain(uid).Code == code {
			w.Store.Delete(uid, time.Now())
			w.hidden[uid] = true
			hidden = append(hidden, p)
		}
	}
	return func() {
		for _, p := range hidden {
			w.Store.Upsert(p, time.Now())
		}
	}
}

// commitWrongly adds a pod to the victims of a hold.
func (w *interceptor) commitWrongly(asker types.UID, going []output.Victim, hold *reservations.Hold, inPermit []types.UID) []output.Victim {
	if len(going) == 0 {
		return going
	}
	for i := range going {
		if w.in.sim.bug == bugUnmarked {
			going[i].Note = strings.TrimSuffix(going[i].Note, reservations.OwnVictim)
		}
	}
	for _, m := range w.mirror() {
		also := append(slices.Clone(going), output.Victim{Ref: objects.Ref{UID: m.UID, Namespace: m.Namespace, Name: m.Name}, Node: m.Node, Note: "why not"})
		if !m.Deleting && m.UID != going[0].UID && w.temptedBy(&m, asker, also, hold, inPermit) {
			return also
		}
	}
	return going
}

// holdWrongly holds a node for a pod that waits there for pods of its own.
func (w *interceptor) holdWrongly(pod *corev1.Pod, status *fwk.Status) {
	ask := w.pods[pod.UID]
	if w.in.sim.bug != bugOwn || ask.RequiredNode == "" || !strings.Contains(status.Message(), "once pods of its own") {
		return
	}
	_, _ = w.ApplyPlan(pod.UID, &daemonset.Decision{
		Ask:  &daemonset.Ask{Ask: &planner.Ask{UID: string(ask.UID), Namespace: ask.Namespace, Name: ask.Name}},
		Node: ask.RequiredNode, Outcome: planner.Hold, Stopped: daemonset.RuleNoVictims,
	}, time.Now())
}

// temptedBy tells whether a pod is the one that a planted bug adds to the victims.
func (w *interceptor) temptedBy(m *mirrored, asker types.UID, going []output.Victim, hold *reservations.Hold, inPermit []types.UID) bool {
	there := m.Node == hold.Node
	switch bug := w.in.sim.bug; bug {
	case bugLawBroken:
		return hold.NodeBound && there && !m.binding
	case bugElsewhere:
		return hold.NodeBound && !there && !m.binding
	case bugOwnMate:
		ask := w.pods[asker]
		return there && !hold.NodeBound && w.startsWith(&ask, m.UID)
	default:
		law, planted := strings.CutPrefix(bug, bugLaw)
		if !planted || hold.NodeBound || m.binding {
			return false
		}
		err := w.judge(asker, hold, going, inPermit, w.Spec())
		return err != nil && strings.Contains(err.Error(), "law "+law+": ")
	}
}

// bindWrongly changes the node in a bind.
func (s *simulation) bindWrongly(node string) string {
	switch s.bug {
	case bugWrongNode:
		return nodeName(0)
	case bugNowhere:
		return "nowhere"
	}
	return node
}

// undated are the bugs that show where the times of holds are judged: without leader election.
var undated = []string{bugHurried, bugPatient, bugGroupPatient, bugOwnTime, bugClingsThere, bugMislabelled}

// timeout is for how long the holds of a pod, or of a PodGroup, may last. A planted bug lets those
// of PodGroups last as long as all others.
func (s *simulation) timeout(of types.NamespacedName) time.Duration {
	if s.bug == bugGroupPatient && strings.HasPrefix(of.Name, "PodGroup ") {
		return reservationTimeout * time.Second
	}
	return time.Duration(s.settings.timeout) * time.Second
}

func (s *simulation) suit() {
	switch s.bug {
	case bugUntainted, bugTaintStays:
		s.settings.taints = true
	case bugBlind:
		s.settings.taints, s.settings.beside = true, true
	case bugPatient, bugOwnTime:
		s.settings.groups, s.settings.maxGrace = false, 0
	case bugGroupHasty:
		s.settings.groups, s.settings.maxGrace = true, 0
	case bugGroupPatient:
		s.settings.groups, s.settings.maxGrace, s.settings.timeout = true, 0, 3*reservationTimeout
	case bugLeave:
		s.settings.leave = true
	case bugGrace:
		s.settings.maxGrace = 10
	case bugHurried:
		s.settings.taints, s.settings.beside, s.settings.groups = false, true, false
	}
}

// configured returns the settings as schedulers get them.
func (s *simulation) configured() arguments {
	told := s.settings
	if s.bug == bugHasty {
		s.settings.startDelay, told.startDelay = 2, 0
	}
	told.hurried, told.claimed = s.bug == bugHurried, s.bug == bugForged
	switch s.bug {
	case bugPatient, bugOwnTime:
		told.timeout = 3600
	case bugGroupHasty:
		told.timeout /= 2
	}
	told.endless = s.bug == bugEndless
	told.leave = told.leave && s.bug != bugLeave
	return told
}

// taintWrongly tells whether a taint is not written, or not removed.
func (s *simulation) taintWrongly(before, after *corev1.Node) bool {
	if adds := slices.ContainsFunc(after.Spec.Taints, keepsOff); adds != slices.ContainsFunc(before.Spec.Taints, keepsOff) {
		return s.bug == bugUntainted && adds || s.bug == bugTaintStays && !adds
	}
	return false
}

// patchWrongly leaves a pod nominated.
func (s *simulation) patchWrongly(before, after *corev1.Pod) bool {
	if s.bug != bugNominated || after.Status.NominatedNodeName != "" {
		return false
	}
	after.Status.NominatedNodeName = before.Status.NominatedNodeName
	return true
}

// sayAgain makes the leader write a condition of a waiting pod, while all calls succeed.
func (s *simulation) sayAgain() {
	if s.bug != bugRestless || s.trouble.Load() > 0 {
		return
	}
	s.api.mu.Lock()
	leader, of := s.leader(), s.some(0, pending)
	s.api.mu.Unlock()
	if leader == nil || of == nil {
		return
	}
	again := fmt.Sprintf(`{"status":{"conditions":[{"type":"Again","status":"True","message":%q}]}}`, time.Now())
	_, _ = leader.client.CoreV1().Pods(of.Namespace).Patch(context.Background(), of.Name, types.StrategicMergePatchType, []byte(again), metav1.PatchOptions{}, "status")
}

func (w *interceptor) standStill() {
	if w.count++; w.count != 50 {
		return
	}
	var other sync.Mutex
	go func() {
		defer holding(&other)()
		defer holding(&w.mu)()
	}()
	runtime.Gosched()
	defer holding(&other)()
}

var (
	anyLimits = regexp.MustCompile(` *limits: .*\n`)
	anyMax    = regexp.MustCompile(`max: \{[^}]*\}`)
	queueB    = regexp.MustCompile(`(- name: b\n(?: *resources: .*\n)? *properties: \{)`)
)

// suited returns a configuration in which a planted bug can show. For the one against law 7 it
// makes queue b a fence: few configurations have one otherwise, and few askers are below it.
func (s *simulation) suited(d document) document {
	if s.bug != bugLaw+"7" || d.spec == nil {
		return d
	}
	text := queueB.ReplaceAllString(d.text, "${1}preemption.policy: fence, ")
	if text == d.text {
		panic("queue b is written in a way that is not known here:\n" + text)
	}
	spec, err := config.Parse([]byte(text))
	if err != nil { // b has a policy
		return d
	}
	return document{text: text, spec: spec}
}

// configureWrongly changes the configuration that processes read.
func (s *simulation) configureWrongly(d document) string {
	switch {
	case s.bug == bugUnlimited:
		return anyLimits.ReplaceAllString(d.text, "")
	case s.bug == bugNonsense && d.spec == nil:
		return anyMax.ReplaceAllString(s.lastValid.text, "max: {vcore: 1000}")
	}
	return d.text
}

// workWrongly deletes the victims of a plan at once, or leaves their deletions out.
func (w *interceptor) workWrongly(work []output.Work) {
	for i := range work {
		item := &work[i]
		if item.Kind != output.WorkDeleteVictims {
			continue
		}
		if w.in.sim.bug == bugIdle && !item.Hold.NodeBound {
			item.Hold.Chosen = nil
		}
		if w.in.sim.bug != bugEagerDelete || item.Decision == nil {
			continue
		}
		for _, v := range item.Decision.Victims {
			uid := types.UID(v.UID)
			_ = w.in.client.CoreV1().Pods(v.Namespace).Delete(context.Background(), v.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		}
	}
}

// shut tells whether a node is refused to a pod without a reason.
func (s *simulation) shut(pod *corev1.Pod) bool {
	ours := pod.Spec.SchedulerName == managed
	return (s.bug == bugShutOurs && ours || s.bug == bugShutPlain && !ours) && unlucky(pod.Name)
}

// unlucky is one pod in seven.
func unlucky(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()%7 == 0
}

// keepWrongly makes the plugin refuse a node to a pod because another one waits for that
// node, whether this may be tried or not.
func (w *interceptor) keepWrongly(ask func() *fwk.Status, pod *corev1.Pod, node string) func() *fwk.Status {
	return func() *fwk.Status {
		w.mu.Lock()
		for uid, p := range w.nodeBound {
			if p.RequiredNode == node && uid != pod.UID {
				w.mu.Unlock()
				return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, fmt.Sprintf("node %s has room for pod %s/%s first", node, p.Namespace, p.Name))
			}
		}
		w.mu.Unlock()
		return ask()
	}
}

// deafQueueSort keeps some pods out of the scheduling queue, against the store, or pods that
// found no node, without a word to the store.
type deafQueueSort struct {
	*queuesort.Plugin
	in *instance
}

func (d deafQueueSort) PreEnqueue(ctx context.Context, pod *corev1.Pod) *fwk.Status {
	unasked := d.in.sim.bug == bugUnasked
	if unasked && d.in.store().Explain(pod.UID).Code == reasons.NoNodeFits {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "no")
	}
	status := d.Plugin.PreEnqueue(ctx, pod)
	if !unasked && pod.Spec.SchedulerName == managed && unlucky(pod.Name) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "no")
	}
	return status
}
