package framework_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// lentQueues are one queue with a guarantee of one core, and one that borrows the core.
const lentQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: owed
      resources: {guaranteed: {vcore: 1}}
      properties: {preemption.delay: 5s}
    - name: borrows
`

// permitStory is a cluster of one core, with a pod on it that waits at Permit, and a pod
// that has a guarantee for the core.
type permitStory struct {
	*cluster
	t             *testing.T
	victim, asker *corev1.Pod
	mayBind       chan struct{} // closed when the victim, once allowed, may be bound
}

func tellPermitStory(t *testing.T) *permitStory {
	s := &permitStory{t: t, mayBind: make(chan struct{})}
	s.cluster = start(t, options{queues: lentQueues, backoff: 1, before: func(c *cluster) {
		c.addNodes(1, 1)
		c.probe.permit = func(p *corev1.Pod) bool { return p.Name == "victim" }
		c.probe.preBind = func(p *corev1.Pod) {
			if p.Name == "victim" {
				<-s.mayBind
			}
		}
	}})
	s.victim = inQueue(pod(managed, "victim", 0), "root.borrows", "victim")
	s.victim.CreationTimestamp = metav1.Now()
	s.api.create(t, s.victim)
	s.pass(time.Second)
	if s.handle.GetWaitingPod(s.victim.UID) == nil {
		t.Fatal("the pod does not wait in Permit")
	}
	s.asker = inQueue(pod(managed, "asker", 0), "root.owed", "asker")
	s.asker.CreationTimestamp = metav1.Now()
	return s
}

// pass lets time pass, and waits until all work due by then is done.
func (s *permitStory) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// now returns the current version of a pod.
func (s *permitStory) now(p *corev1.Pod) *corev1.Pod {
	s.t.Helper()
	now := s.api.pod(p.Namespace, p.Name)
	if now == nil {
		s.t.Fatalf("pod %s was deleted", p.Name)
	}
	return now
}

func (s *permitStory) end() {
	if err := s.store.Check(); err != nil {
		s.t.Error(err)
	}
	s.stop()
	time.Sleep(2 * time.Second) // upstream's metrics check once a second whether they may end
}

// TestVictimInPermit checks that a pod that waits at Permit makes room like any other,
// and that it is not deleted for that, because it has no container yet.
func TestVictimInPermit(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := tellPermitStory(t)
		defer s.end()
		s.api.create(t, s.asker)
		s.pass(10 * time.Second)
		if node := s.now(s.asker).Spec.NodeName; node != "node-000" {
			t.Errorf("the asker is on node %q: %v", node, s.store.Explain(s.asker.UID))
		}
		if v := s.now(s.victim); v.Spec.NodeName != "" || v.DeletionTimestamp != nil {
			t.Errorf("the victim is on node %q", v.Spec.NodeName)
		}
		if s.handle.GetWaitingPod(s.victim.UID) != nil {
			t.Error("the victim waits in Permit still")
		}
	})
}

// TestVictimThatLeavesPermit checks that a victim that Permit lets go on after it was
// chosen is spared: it is not deleted while it is being bound, and the hold ends with a
// reason. Once it runs it is a pod like any other.
func TestVictimThatLeavesPermit(t *testing.T) {
	const held = corev1.PodConditionType(reservations.HeldCondition)
	inBubble(t, func(t *testing.T) {
		s := tellPermitStory(t)
		defer s.end()
		claims, claimed := 0, false
		s.api.patched = func(p *corev1.Pod) { // the claim comes before the plan is checked again
			c := condition(p, held)
			if p.Name != "asker" || c == nil || c.Status == corev1.ConditionTrue == claimed {
				return
			}
			if claimed = !claimed; !claimed {
				return
			}
			if claims++; claims == 1 {
				s.handle.GetWaitingPod(s.victim.UID).Allow(probeName)
			}
		}
		s.api.create(t, s.asker)
		s.pass(30 * time.Second)
		if claims != 1 {
			t.Errorf("the asker claimed the node %d times while the pod there was being bound, want once, before", claims)
		}
		if c := condition(s.now(s.asker), held); c == nil || c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "things changed since the plan was made") {
			t.Errorf("the asker's claim is %+v", c)
		}
		if v := s.now(s.victim); v.DeletionTimestamp != nil || condition(v, corev1.DisruptionTarget) != nil {
			t.Errorf("the pod that is being bound is to go: %+v", v.Status.Conditions)
		}
		close(s.mayBind)
		s.pass(time.Second)
		if node := s.now(s.victim).Spec.NodeName; node != "node-000" {
			t.Errorf("the pod that was spared is on node %q", node)
		}
		s.pass(30 * time.Second)
		if s.api.pod("default", "victim") != nil {
			t.Error("the pod runs, and is not a victim any more")
		}
		if node := s.now(s.asker).Spec.NodeName; node != "node-000" {
			t.Errorf("the asker is on node %q: %v", node, s.store.Explain(s.asker.UID))
		}
	})
}
