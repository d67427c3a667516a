package integration

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	manifests "github.com/paddock-scheduler/paddock/manifests/config"
)

// raceNodes is how many races run in parallel, each on a node of its own.
const raceNodes = 10

// race is one round of races.
type race struct {
	*env
	c     *history
	round int
	nodes []string
}

// TestRaceForADaemonSetsRoom makes pods of default-scheduler, of a high priority, race for the room
// that is made for DaemonSet pods: they never win. On each node three race against one. The first racer
// exists before; of two victims one leaves at once, and from then on the racer would fit. The second
// racer is created when that room is free, and its first attempt is for it. The third racer is created
// when the other victim ends, just before, at the same time or just after. None of them is
// unschedulable or backing off at the critical moment: the first two are rejected because of the hold
// while half of the room is free, which is checked for each, and the third one is new.
func TestRaceForADaemonSetsRoom(t *testing.T) {
	const rounds = races / raceNodes
	queues := belowRoot("{name: daemons}, {name: fills}") // neither has a guarantee
	e := setup(t, queues, func(s *settings) { s.shipped = manifests.TwoProfiles })
	r := &race{env: e, nodes: e.useNodes(raceNodes, localcluster.NodeSpec{CPU: "2"})}
	e.priorityClass(e.id+"-high", 1000) // above the priorities for which upstream respects nominated pods
	r.c = e.keepHistory()
	began, lost, late := time.Now(), 0, 0
	for r.round = range rounds {
		lost += raceNodes
		late += r.run()
	}
	t.Logf("%d races took %v; %d of the %d pods that came in the last moment met the hold",
		lost, time.Since(began).Round(time.Millisecond), late, lost)
	e.expectBooks()
}

// run runs a round, and returns how many of the last racers were rejected while the node was held.
func (r *race) run() (late int) {
	r.ok(r.onAll("quick", inQueue("root.fills")))
	r.ok(r.onAll("slow", inQueue("root.fills"), stopsAfter(5*time.Minute)))
	r.expect(r.group("quick"), raceNodes, 0, "")
	r.expect(r.group("slow"), raceNodes, 0, "")
	r.ok(r.onAll("early", r.racer()...))
	set := r.group("agent")
	r.createDaemonSet(set, inQueue("root.daemons"), requests("cpu", "2"))
	r.awaitGoing()
	r.ok(r.onAll("second", r.racer()...))
	r.awaitTurnedAway("early")
	r.awaitTurnedAway("second")
	running, _ := r.podsOf(set)
	expect.That(r, len(running) == 0, "round %d: %d pods of the DaemonSet run though no node has room for one",
		r.round, len(running))
	r.finish()
	r.expect(set, raceNodes, 0, "")
	r.checkOutcome(set)
	late = r.met("third")
	r.leave(set)
	return late
}

func (r *race) group(what string) string { return fmt.Sprintf("%s-%d", what, r.round) }

func (r *race) racer() []podOption {
	ofPriority := func(p *corev1.Pod) { p.Spec.PriorityClassName = r.id + "-high" }
	return []podOption{ofProfile(corev1.DefaultSchedulerName), ofPriority, requests("cpu", "500m")}
}

// each calls f for all, some in parallel, and returns the first error.
func each[T any](list []T, f func(T) error) error {
	var group errgroup.Group
	group.SetLimit(16)
	for _, x := range list {
		group.Go(func() error { return f(x) })
	}
	return group.Wait()
}

func (r *race) onAll(what string, options ...podOption) error {
	return each(r.nodes, func(node string) error { return r.on(node, what, options...) })
}

func (r *race) on(node, what string, options ...podOption) error {
	p := r.pod(r.group(what)+"-"+node, r.group(what), append(options, onNode(node))...)
	_, err := suite.client.CoreV1().Pods(p.Namespace).Create(r.Context(), p, metav1.CreateOptions{})
	return err
}

// awaitGoing waits until one victim of each node is gone and the other is leaving.
func (r *race) awaitGoing() {
	eventually(r, patience, "half of the room is there", func() (bool, string) {
		quick, _ := r.podsOf(r.group("quick"))
		slow, _ := r.podsOf(r.group("slow"))
		leaving := 0
		for _, p := range slow {
			if p.DeletionTimestamp != nil {
				leaving++
			}
		}
		return len(quick) == 0 && leaving == raceNodes, fmt.Sprintf("%d quick ones are left, %d slow ones leave", len(quick), leaving)
	})
}

// awaitTurnedAway waits until each racer of a group was rejected only because its node is
// held for the pod of the DaemonSet.
func (r *race) awaitTurnedAway(what string) {
	r.Helper()
	eventually(r, patience, "all racers of group "+r.group(what)+" were turned away", func() (bool, string) {
		running, waiting := r.podsOf(r.group(what))
		if len(running) > 0 {
			r.Fatalf("round %d: pod %s won on node %s", r.round, running[0].Name, running[0].Spec.NodeName)
		}
		for _, p := range waiting {
			if !r.turnedAway(p) {
				return false, describe(r.Context(), p)
			}
		}
		return len(waiting) == raceNodes, fmt.Sprint(len(waiting))
	})
}

// turnedAway tells whether the last rejection of a racer was because of a hold.
func (r *race) turnedAway(p *corev1.Pod) bool {
	c := conditionOf(p, corev1.PodScheduled)
	return c != nil && c.Status == corev1.ConditionFalse &&
		strings.Contains(c.Message, "is held for pod "+r.ns+"/"+r.group("agent")) && !strings.Contains(c.Message, "Insufficient")
}

// finish ends the last victim of each node, and creates the last racer.
func (r *race) finish() {
	now := int64(0)
	end := func(node string) error {
		return suite.client.CoreV1().Pods(r.ns).Delete(r.Context(), r.group("slow")+"-"+node, metav1.DeleteOptions{GracePeriodSeconds: &now})
	}
	come := func(node string) error { return r.on(node, "third", r.racer()...) }
	r.ok(each(r.nodes, func(node string) error {
		switch (r.round + slices.Index(r.nodes, node)) % 3 {
		case 0:
			return errors.Join(come(node), end(node))
		case 1:
			return errors.Join(end(node), come(node))
		}
		came := make(chan error, 1)
		go func() { came <- come(node) }()
		return errors.Join(end(node), <-came)
	}))
}

// checkOutcome checks that no racer was bound before the pods of the DaemonSet, all of
// which are bound by now.
func (r *race) checkOutcome(set string) {
	r.c.tail.catchUp(r.Context(), r.env)
	running, _ := r.podsOf(set)
	on := map[string]int{}
	for _, p := range running {
		on[p.Spec.NodeName]++
	}
	expect.That(r, len(on) == raceNodes, "round %d: the DaemonSet runs on %d nodes, want %d",
		r.round, len(on), raceNodes)
	for _, what := range []string{"early", "second", "third"} {
		won, lost := r.podsOf(r.group(what))
		expect.That(r, len(won)+len(lost) == raceNodes, "round %d: there are %d racers of group %s, want %d",
			r.round, len(won)+len(lost), what, raceNodes)
		for _, p := range won {
			r.Errorf("round %d: pod %s won on node %s", r.round, p.Name, p.Spec.NodeName)
		}
	}
}

// met counts the racers of a group that were rejected because of a hold at any time.
func (r *race) met(what string) (n int) {
	_, waiting := r.podsOf(r.group(what))
	for _, p := range waiting {
		if r.c.first(p.UID, func(s sight) bool { return r.turnedAway(s.pod) }) != nil {
			n++
		}
	}
	return n
}

// leave ends the round: the DaemonSet is deleted, and the last racers get the room, which
// shows that they were able to run there all the time.
func (r *race) leave(set string) {
	r.ok(suite.client.AppsV1().DaemonSets(r.ns).Delete(r.Context(), set, inBackground()))
	r.expect(r.group("third"), raceNodes, 0, "")
	r.removePods(r.Context())
}
