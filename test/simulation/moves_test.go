package simulation_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/informer"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

type move struct {
	kind    string
	a, b, n int // below 100, 100 and 10
}

// hostileKinds has each kind as often as its weight, moveKinds those without a hostile tenant.
var hostileKinds = func() (all []string) {
	for _, k := range []struct {
		kind   string
		weight int
	}{
		{"create", 14}, {"crowd", 1}, {"plain", 3}, {"settled", 8}, {"daemon", 4}, {"steal", 1}, {"wait", 16},
		{"gang", 3}, {"group", 1},
		{"finish", 5}, {"delete", 5}, {"reap", 4}, {"resize", 3}, {"ungate", 2}, {"opt out", 1}, {"relabel", 1},
		{"class", 1}, {"budget", 2}, {"evict", 1}, {"node", 2}, {"cordon", 2}, {"taint", 1}, {"lose node", 1}, {"configure", 2}, {"misconfigure", 1}, {"turn", 2},
		{"trouble", 3}, {"late", 3}, {"on time", 4}, {"again", 2}, {"cut", 1}, {"gap", 2},
		{"crash", 1}, {"kill", 1}, {"stand by", 1}, {"isolate", 1}, {"rejoin", 2},
		{"evil pod", 6}, {"evil owner", 8}, {"evil types", 3}, {"evil delete", 6}, {"evil disguise", 3}, {"evil set", 2},
		{"evil queue", 4}, {"evil label", 3}, {"evil finalizer", 4}, {"evil fat", 4},
	} {
		all = append(all, slices.Repeat([]string{k.kind}, k.weight)...)
	}
	return all
}()

var moveKinds = slices.DeleteFunc(slices.Clone(hostileKinds), isEvil)

func (s *simulation) draw() move {
	kinds := moveKinds
	if s.settings.hostile {
		kinds = hostileKinds
	}
	return move{kind: kinds[s.chance.IntN(len(kinds))], a: s.chance.IntN(100), b: s.chance.IntN(100), n: s.chance.IntN(10)}
}

func (s *simulation) move(m move) {
	if m.kind == "wait" {
		s.breathe(time.Duration(m.n*m.n) * 100 * time.Millisecond)
		return
	}
	if s.moveProcess(m) {
		return
	}
	defer holding(&s.api.mu)()
	switch {
	case s.moveTenant(m):
	case s.moveGroup(m):
	case s.movePod(m):
	case s.moveStream(m):
	default:
		s.moveRest(m)
	}
}

// some returns one of the pods that can be chosen; nil for none.
func (s *simulation) some(n int, can func(p *corev1.Pod) bool) *corev1.Pod {
	pods := slices.DeleteFunc(s.api.allPods(), func(p *corev1.Pod) bool { return !can(p) })
	if len(pods) == 0 {
		return nil
	}
	return pods[n%len(pods)]
}

func pending(p *corev1.Pod) bool {
	return p.Spec.NodeName == "" && p.DeletionTimestamp == nil && !ended(p)
}

func runs(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil
}

const mostPods = 45

func (s *simulation) movePod(m move) bool {
	full := len(s.api.pods.objects) >= mostPods
	switch m.kind {
	case "crowd": // several pods that may ask at once
		for range 3 {
			if len(s.api.pods.objects) < mostPods {
				s.create(s.newPod(managed, m))
			}
		}
	case "create", "plain":
		profile := map[string]string{"create": managed, "plain": plain}[m.kind]
		if !full {
			s.create(s.newPod(profile, m))
		}
	case "daemon":
		s.createDaemon(nodeName(m.b), m)
	case "settled": // another scheduler bound it
		profile := []string{managed, managed, managed, alien, plain}[m.b%5]
		pod := s.newPod(profile, m)
		if node := s.nodeWithRoom(pod); node != "" && !full {
			pod.Spec.NodeName, pod.Spec.SchedulingGates = node, nil
			s.create(pod)
		}
	default:
		return s.changePod(m)
	}
	return true
}

// nodeWithRoom returns the name of a node that can take a pod; empty for none.
func (s *simulation) nodeWithRoom(pod *corev1.Pod) string {
	for _, n := range s.api.allNodes() {
		if selects(pod, n) && informer.Allocatable(n).Sub(s.api.usedOn(n.Name)).Covers(request(pod)) {
			return n.Name
		}
	}
	return ""
}

func (s *simulation) changePod(m move) bool {
	edit := func(change func(p *corev1.Pod)) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { s.api.editPod(pod, change) }
	}
	change, known := map[string]struct {
		can func(p *corev1.Pod) bool
		do  func(pod *corev1.Pod)
	}{
		"steal": {func(p *corev1.Pod) bool {
			return pending(p) && !(s.settings.dynamic && p.Namespace == evil) && len(p.Spec.SchedulingGates) == 0 && s.nodeWithRoom(p) != "" && p.Spec.Affinity == nil
		}, func(pod *corev1.Pod) {
			node := s.nodeWithRoom(pod)
			s.api.editPod(pod, func(p *corev1.Pod) { p.Spec.NodeName = node })
			s.api.touch(nil, usedBy(s.api.pod(nameOf(pod)))...)
		}},
		"finish": {runs, edit(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })},
		"delete": {
			func(p *corev1.Pod) bool { return p.DeletionTimestamp == nil },
			func(pod *corev1.Pod) { s.api.deleteWithin(pod, graceOf(pod)) },
		},
		"reap": {func(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }, s.api.stop},
		"resize": {func(p *corev1.Pod) bool { // see docs/survival.md: room that becomes free without an event
			return p.DeletionTimestamp == nil && !ended(p) && !s.astray[p.UID] && (p.Spec.SchedulerName != plain || p.Spec.NodeName != "")
		}, func(pod *corev1.Pod) { s.resize(pod, m) }},
		"ungate": {
			func(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 },
			edit(func(p *corev1.Pod) { p.Spec.SchedulingGates = nil }),
		},
		"opt out": {runs, edit(func(p *corev1.Pod) {
			if p.Annotations == nil {
				p.Annotations = map[string]string{}
			}
			p.Annotations[informer.AllowPreemption] = []string{"true", "false", ""}[m.b%3]
		})},
		"evict": {runs, func(pod *corev1.Pod) { s.evict(pod, m) }},
		"relabel": {func(p *corev1.Pod) bool { return !ended(p) }, func(pod *corev1.Pod) {
			if !s.settings.sickly || m.n >= 7 {
				s.api.editPod(pod, func(p *corev1.Pod) { p.Labels["tier"] = []string{"front", "back"}[m.b%2] })
			} else if sick := s.some(m.a, runs); sick != nil {
				s.api.editPod(sick, turnReady)
			}
		}},
	}[m.kind]
	if !known {
		return false
	}
	if pod := s.some(m.a, change.can); pod != nil {
		s.logf("%s %s", m.kind, pod.Name)
		change.do(pod)
	}
	return true
}

// resize gives a pod other requests, if its node has room for them.
func (s *simulation) resize(pod *corev1.Pod, m move) {
	to := pod.DeepCopy()
	to.Spec.Containers[0].Resources.Requests = requestOf(m)
	if node := pod.Spec.NodeName; node != "" {
		n := s.api.node(node)
		if n == nil || !informer.Allocatable(n).Covers(s.api.usedOn(node).Sub(request(pod)).Add(request(to))) {
			return
		}
	}
	s.logf("%s requests %v and did %v", to.Name, request(to), request(pod))
	s.api.put(s.api.pods, to)
	s.api.touch(nil, append(usedBy(to), to.Name)...)
}

// moveStream disturbs a watch, or repairs all.
func (s *simulation) moveStream(m move) bool {
	switch m.kind {
	case "late", "again", "cut", "gap":
	case "on time":
		s.onTime()
		return true
	default:
		return false
	}
	if len(s.api.streams) == 0 {
		return true
	}
	slices.SortStableFunc(s.api.streams, func(a, b *stream) int {
		return strings.Compare(a.of.name+a.kind.resource.Resource+a.fieldSelector, b.of.name+b.kind.resource.Resource+b.fieldSelector)
	})
	st := s.api.streams[m.a%len(s.api.streams)]
	if m.b < 60 { // mostly that of pods
		if i := slices.IndexFunc(s.api.streams, func(st *stream) bool { return st.kind == s.api.pods }); i >= 0 {
			st = s.api.streams[i]
		}
	}
	s.logf("the watch of %s by %s: %s", st.kind.resource.Resource, st.of.name, m.kind)
	switch m.kind {
	case "late":
		st.late, st.of.deaf[st.kind] = true, true
	case "again":
		st.again = true
	case "cut":
		st.cut = true
	case "gap": // later changes are seen only in the next list
		st.cut = true
		st.kind.compacted = s.api.rv
		if st.kind == s.api.pods {
			st.of.gaps++
		}
	}
	s.api.wake()
	return true
}

// onTime ends all delays of events.
func (s *simulation) onTime() {
	for _, in := range s.instances {
		clear(in.deaf)
	}
	for _, st := range s.api.streams {
		st.late = false
	}
	s.api.wake()
}

func (s *simulation) moveRest(m move) {
	name := nodeName(m.a)
	n := s.api.node(name)
	switch m.kind {
	case "node":
		if s.putNode(name, m); n == nil {
			s.rollOut(name, m)
		}
		s.logf("node %s has %v", name, informer.Allocatable(s.api.node(name)))
	case "cordon", "taint":
		if n == nil {
			return
		}
		n = n.DeepCopy()
		switch {
		case s.settings.labels && m.b%4 > 0: // takes the label from a node, or brings it back
			if n.Labels[diskLabel] == fastDisk {
				n.Labels[diskLabel] = "slow"
			} else {
				n.Labels[diskLabel] = fastDisk
			}
		case m.kind == "cordon":
			n.Spec.Unschedulable = !n.Spec.Unschedulable
		case dirty(n):
			n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isDirt)
		default:
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "dirty", Effect: corev1.TaintEffectNoSchedule})
		}
		s.logf("%s node %s: %v, %v, %s", m.kind, name, n.Spec.Unschedulable, n.Spec.Taints, n.Labels[diskLabel])
		s.api.put(s.api.nodes, n)
		s.api.touch(nil, name)
	case "lose node":
		if n != nil && len(s.api.nodes.objects) > 1 {
			s.logf("node %s is gone", name)
			s.api.drop(s.api.nodes, n)
			s.api.touch(nil, name)
		}
	case "class":
		class := objectsOf[*schedulingv1.PriorityClass](s.api.classes)[m.a%2].DeepCopy()
		class.Annotations = map[string]string{informer.AllowPreemption: []string{"true", "false"}[m.b%2]}
		s.api.put(s.api.classes, class)
	case "budget":
		s.putBudget(m)
	case "configure":
		s.logf("a new configuration")
		s.unturned = document{}
		s.configure(s.limit(newChance(s.seed + uint64(s.step.Load())*1_000_003).valid()))
	case "turn":
		s.turn()
	case "misconfigure":
		s.logf("a configuration that cannot be used")
		s.configure(newChance(s.seed + uint64(s.step.Load())).invalid())
	case "trouble":
		s.trouble.Store([]int64{0, 0, 5, 20, 60}[m.a%5])
	}
}

// dirty tells whether a taint of an administrator keeps pods off a node.
func dirty(n *corev1.Node) bool { return slices.ContainsFunc(n.Spec.Taints, isDirt) }

func isDirt(t corev1.Taint) bool { return t.Key == "dirty" }

func (s *simulation) moveProcess(m move) bool {
	in := s.instances[m.a%len(s.instances)]
	switch m.kind {
	case "crash":
		s.api.locked(func() { in.crashIn, in.crashAfter = 1+m.n, m.b%2 == 0 })
	case "kill":
		in.die()
	case "stand by":
		if s.elects && len(s.instances) < 2 {
			s.launch()
		}
	case "isolate":
		s.logf("%s is cut off from the lease", in.name)
		in.isolated.Store(true)
	case "rejoin":
		for _, in := range s.instances {
			in.isolated.Store(false)
		}
	default:
		return false
	}
	return true
}

// The cluster around the schedulers: objects, their creation, and kubelets.

var namespaces = []string{"east", "west"}

// build makes the objects that exist before the first scheduler starts.
func (s *simulation) build() {
	defer holding(&s.api.mu)()
	for _, name := range append([]string{configNamespace}, namespaces...) {
		s.api.put(s.api.namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}})
	}
	if s.settings.hostile {
		s.api.put(s.api.namespaces, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: evil, UID: evil}})
		for _, name := range namespaces {
			s.putSet(name, "d")
		}
	}
	s.configure(s.limit(s.chance.valid()))
	for i := range 2 + s.chance.IntN(3) {
		s.putNode(nodeName(i), move{a: s.chance.IntN(100), b: s.chance.IntN(100)})
	}
	for _, class := range []string{"low", "high"} {
		s.api.put(s.api.classes, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class, UID: types.UID(class)}})
	}
}

func nodeName(i int) string { return fmt.Sprintf("n%d", i%5) }

// configure writes the configuration of queues. The caller holds the lock.
func (s *simulation) configure(d document) {
	d = s.suited(d)
	for _, in := range s.instances {
		in.missed = d.spec == nil && (in.missed || s.api.knows(in, s.api.configs) < s.validAt)
	}
	s.document = d
	if d.spec != nil {
		s.lastValid, s.validAt = d, s.api.rv+1
		for _, leaf := range leaves {
			if q := queueOf(d.spec, leaf); q == nil || !q.Leaf {
				s.removed[leaf], s.removed[queues.RecoveryPath] = true, true
			}
		}
	}
	s.api.put(s.api.configs, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: configNamespace, Name: config.QueuesConfigMap, UID: "configs"},
		Data:       map[string]string{"queues.yaml": s.configureWrongly(d)},
	})
	s.api.touch(nil, touchedConfig)
}

const touchedConfig = "the configuration"

// putNode makes a node, or changes it. The caller holds the lock.
func (s *simulation) putNode(name string, m move) {
	n := s.api.node(name)
	if n == nil {
		n = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprint(name, "-", s.api.rv)), CreationTimestamp: metav1.Now(), Labels: map[string]string{corev1.LabelHostname: name, diskLabel: fastDisk}}}
	}
	n = n.DeepCopy()
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewQuantity(int64(4+m.a%5), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(6+m.b%7)<<30, resource.BinarySI),
		corev1.ResourcePods:   *resource.NewQuantity(int64(4+m.b/10%5), resource.DecimalSI),
	}
	n.Status.Capacity = n.Status.Allocatable
	s.api.put(s.api.nodes, n)
	s.api.touch(nil, name)
	delete(s.lostNodes, name)
}

// newName returns a name and a UID for a pod: on request the name of the pod that was removed last, if
// the name is still free, otherwise a new one. All watchers must have seen the removal: if a gap of a
// watch hides it, upstream's scheduler takes the two pods for one and exits, or continues with the wrong
// one (kubernetes#141255). The caller holds the lock.
func (s *simulation) newName(namespace string, again bool) (string, types.UID) {
	s.serial++
	var last happened // the last removal there
	for _, h := range s.api.pods.events {
		if h.new == nil && h.old.GetNamespace() == namespace {
			last = h
		}
	}
	missed := func(in *instance) bool { return s.api.knows(in, s.api.pods) < last.rv }
	if again && last.old != nil && s.api.pod(nameOf(last.old)) == nil && !slices.ContainsFunc(s.instances, missed) {
		return last.old.GetName(), types.UID(fmt.Sprintf("%s-%d", last.old.GetName(), s.serial))
	}
	unused := fmt.Sprintf("p%04d", s.serial)
	return unused, types.UID(unused)
}

// newPod makes a pod as the API server stores it, without an event. The caller holds the lock.
func (s *simulation) newPod(profile string, m move) *corev1.Pod {
	namespace := namespaceOf(m)
	name, uid := s.newName(namespace, m.b%3 == 0)
	queue := leaves[[]int{0, 0, 0, 1, 2, 3, 3, 4}[m.a%8]]
	if m.kind == "settled" {
		queue = leaves[[]int{1, 2, 3, 3, 4, 3, 2, 1}[m.a%8]]
	}
	grace, priority := int64(m.b%4*m.n), int32(0)
	if m.b%6 == 0 || profile == plain { // upstream's preemption needs some of these
		priority = int32(m.n % 3)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: uid, CreationTimestamp: metav1.Now(),
			Labels: map[string]string{"tier": []string{"front", "back"}[m.b/2%2]},
		},
		Spec: corev1.PodSpec{
			SchedulerName: profile, Priority: &priority, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "main", Image: "pause", Resources: corev1.ResourceRequirements{Requests: requestOf(m)}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	// Three of four pods of our schedulers require the label.
	if s.settings.labels && profile != alien && m.a%4 > 0 {
		s.choosy.Store(pod.UID, true)
		pod.Spec.NodeSelector = map[string]string{diskLabel: fastDisk}
	}
	if profile == managed {
		pod.Labels[placement.KeyQueue], pod.Labels[placement.KeyApplicationID] = queue, fmt.Sprintf("%s-%s-%d", pod.Namespace, queue, m.b/8%3)
		pod.Annotations = map[string]string{}
		if user, group := userOf(claimantPod(pod).app); s.settings.limited && user != "" {
			pod.Annotations[placement.KeyUserInfo] = fmt.Sprintf(`{"user":%q,"groups":[%q]}`, user, cmp.Or(group, "none"))
		}
		switch m.b % 16 {
		case 1:
			pod.Annotations[informer.AllowPreemption] = "false"
		case 2:
			pod.Spec.PriorityClassName = "low"
		case 3:
			never := corev1.PreemptNever
			pod.Spec.PreemptionPolicy = &never
		case 4:
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "later"}}
		}
		if s.settings.groups && namespace != evil && (m.a/8+m.b/8)%4 == 0 {
			pod.Labels[objects.PodGroupLabel] = groupName(m)
		}
	}
	return pod
}

func requestOf(m move) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(int64([]int{500, 1000, 1000, 2000, 3000}[m.n%5]), resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(int64(m.a/8%3)<<30+512<<20, resource.BinarySI),
	}
}

// daemonize makes a pod one of a DaemonSet for a random node.
func daemonize(pod *corev1.Pod, node string, m move) {
	priority := int32(m.n % 3)
	delete(pod.Labels, objects.PodGroupLabel)
	pod.Spec.Priority = &priority
	pod.Spec.SchedulingGates = nil
	plugintest.Daemon(pod, node)
	pod.Spec.Tolerations = []corev1.Toleration{{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}}
}

// create adds a pod. The caller holds the lock.
func (s *simulation) create(pod *corev1.Pod) {
	s.tie(pod)
	s.api.put(s.api.pods, pod)
	if pod.Spec.NodeName != "" {
		s.api.touch(nil, usedBy(pod)...)
	}
	s.logf("there is pod %s %s %s on %q %s", pod.Name, pod.Spec.SchedulerName, pod.Labels[placement.KeyQueue], pod.Spec.NodeName, pod.Labels[objects.PodGroupLabel])
}

// usedBy returns the names of the things that a pod on a node uses.
func usedBy(pod *corev1.Pod) []string {
	out := []string{pod.Spec.NodeName}
	if pod.Spec.SchedulerName == managed {
		out = append(out, ancestors(pod.Labels[placement.KeyQueue])...)
	}
	return out
}

// ancestors returns a queue and its ancestors without root, the lowest first.
func ancestors(path string) []string {
	var out []string
	for strings.Contains(path, ".") {
		out = append(out, path)
		path = path[:strings.LastIndexByte(path, '.')]
	}
	return out
}

var requests = informer.RequestOptions{}

func request(pod *corev1.Pod) resources.Vector { return informer.Requests(pod, requests) }

// used returns what some pods request that have not ended. The caller holds the lock.
func (a *apiServer) used(by func(p *corev1.Pod) bool) (sum resources.Vector) {
	for _, o := range a.pods.objects {
		if p := o.(*corev1.Pod); !ended(p) && by(p) {
			sum = sum.Add(request(p))
		}
	}
	return sum
}

// usedOn returns what pods use of a node. The caller holds the lock.
func (a *apiServer) usedOn(node string) resources.Vector {
	return a.used(func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
}

// usedBelow returns what pods use of a queue. The caller holds the lock.
func (in *instance) usedBelow(queue string) resources.Vector {
	return in.api.used(func(p *corev1.Pod) bool {
		return p.Spec.SchedulerName == managed && p.Spec.NodeName != "" &&
			slices.Contains(ancestors(in.claimant(p).queue), queue)
	})
}

// queueOf returns a queue; nil for one that is not configured.
func queueOf(spec *config.Spec, path string) *config.Queue {
	q := spec.Root
	for _, name := range strings.Split(path, ".")[1:] {
		i := slices.IndexFunc(q.Children, func(c *config.Queue) bool { return c.Name == name })
		if i < 0 {
			return nil
		}
		q = q.Children[i]
	}
	return q
}

// turn makes a leaf with pods a parent, or a leaf again. The caller holds the lock.
func (s *simulation) turn() {
	switch {
	case !s.settings.turns:
	case s.unturned.spec != nil:
		s.logf("queue c is a leaf again")
		back := s.unturned
		s.unturned = document{}
		s.configure(back)
	default:
		s.logf("queue c is a parent now")
		s.unturned = s.lastValid
		s.configure(s.unturned.turned())
	}
}

// kubelets start pods, reject pods that do not fit, and let deleted pods end.
func (s *simulation) kubelets() {
	defer holding(&s.api.mu)()
	now := time.Now()
	pods := s.api.allPods()
	// A kubelet sees pods in the order in which they were bound.
	slices.SortStableFunc(pods, func(a, b *corev1.Pod) int { return cmp.Compare(s.api.boundAt[a.UID], s.api.boundAt[b.UID]) })
	for _, pod := range pods {
		node := pod.Spec.NodeName
		switch {
		case node == "" || ended(pod) && len(pod.Finalizers) > 0:
		case s.api.node(node) == nil: // garbage collection of pods after nodes is slow
			if since, lost := s.lostNodes[node]; !lost {
				s.lostNodes[node] = now
			} else if now.Sub(since) > 5*time.Second {
				s.end1(pod)
			}
		case pod.DeletionTimestamp != nil && s.settings.stuck && stuck(pod):
		case pod.DeletionTimestamp != nil && !now.Before(pod.DeletionTimestamp.Time):
			s.end1(pod)
		case pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil:
			s.admit(pod)
		}
	}
}

// stuck tells whether a pod does not end once it is deleted, while its node is there.
func stuck(p *corev1.Pod) bool { return strings.HasSuffix(p.Name, "7") && p.Name[len(p.Name)-2]%2 == 0 }

func (s *simulation) end1(pod *corev1.Pod) {
	s.api.stop(pod)
	s.logf("pod %s is gone", pod.Name)
}

// admit starts a pod if it fits beside the pods that were started before.
func (s *simulation) admit(pod *corev1.Pod) {
	used := s.api.used(func(p *corev1.Pod) bool {
		return p.Spec.NodeName == pod.Spec.NodeName && (p.Name == pod.Name || p.Status.Phase == corev1.PodRunning)
	})
	phase := corev1.PodRunning
	if !informer.Allocatable(s.api.node(pod.Spec.NodeName)).Covers(used) {
		phase = corev1.PodFailed
		s.logf("the kubelet of %s refuses %s", pod.Spec.NodeName, pod.Name)
	}
	s.api.editPod(pod, func(p *corev1.Pod) {
		if p.Status.Phase = phase; phase == corev1.PodRunning {
			ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
			if s.settings.sickly && p.Name[len(p.Name)-1]%2 == 0 {
				ready.Status = corev1.ConditionFalse
			}
			p.Status.Conditions = append(p.Status.Conditions, ready)
		}
	})
}

// In a seventh of the histories most pods require a label of their node, which moves take away and
// bring back.

const diskLabel, fastDisk = "disk", "fast"

// selects tells whether a node has the label that a pod requires, if it does.
func selects(pod *corev1.Pod, n *corev1.Node) bool {
	want, requires := pod.Spec.NodeSelector[diskLabel]
	return !requires || n.Labels[diskLabel] == want
}

// countRefused counts a hold that ended because a taint or a label of the node refuses its pod.
func (w *interceptor) countRefused(item *output.Work) {
	switch why := item.Reason.Text; {
	case item.Ended != reservations.NodeUnschedulable:
	case strings.Contains(why, "untolerated taint"):
		w.in.sim.count(heldTainted)
	case strings.Contains(why, "affinity/selector"):
		w.in.sim.count(heldRelabelled)
	}
}

// refuses tells whether a taint of an administrator, or its labels, keep a pod off a node.
func refuses(n *corev1.Node, pod *corev1.Pod) bool { return dirty(n) || !selects(pod, n) }
