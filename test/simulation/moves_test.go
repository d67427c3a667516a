package simulation_test

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/paddock-scheduler/paddock/pkg/informer"
)

// move is one random event: a kind, and three numbers for further choices.
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
	s.api.mu.Lock()
	defer s.api.mu.Unlock()
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

// mostPods bounds the number of pods.
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
		profile := managed
		if m.kind == "plain" {
			profile = plain
		}
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
				s.turnReady(sick)
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

// moveRest changes nodes, classes, budgets, or the configuration.
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
		case s.settings.labels && m.b%4 > 0:
			relabel(n)
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
