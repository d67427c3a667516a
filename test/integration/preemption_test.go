package integration

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
)

// preemptionQueues are one queue far below its guarantee, one that borrows, and one
// without a guarantee.
const preemptionQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: owed
      resources: {guaranteed: {vcore: 40}}
      properties: {preemption.delay: 1s}
    - name: borrows
      properties: {preemption.delay: 1s}
    - name: other
      properties: {preemption.delay: 1s}
`

// stopsAfter gives a pod a long grace period, of which it uses the given time.
func stopsAfter(d time.Duration) podOption {
	return func(p *corev1.Pod) {
		withGrace(int64(d/time.Second) + 30)(p)
		p.Annotations[nodeagent.AnnotationStopAfter] = d.String()
	}
}

// onNode makes a pod run on one node only. It is not a required node, which a DaemonSet
// would name in an affinity.
func onNode(name string) podOption {
	return func(p *corev1.Pod) { p.Spec.NodeSelector[corev1.LabelHostname] = name }
}

// fill makes n pods of a group in a queue and waits until they run.
func (e *env) fill(of string, n int, options ...podOption) {
	e.Helper()
	e.ok(e.createAtOnce(of, 0, n, options...))
	e.expect(of, n, 0, "")
}

// crowd is how many pods of each kind compete makes at most.
const crowd = 60

// compete makes small pods of a third queue and of the default profile until it is
// stopped: room that is made has to be kept for its asker. Their priority is above those
// for which upstream respects nominated pods.
func (e *env) compete() (stop func()) {
	e.Helper()
	e.priorityClass("crowd", 1000, neverPreempts)
	high := ofPriority(e.id + "-crowd")
	ctx, cancel := context.WithCancel(e.Context())
	done := make(chan error, 1)
	ticker := time.NewTicker(100 * time.Millisecond)
	go func() {
		defer ticker.Stop()
		var errs []error
		for i := range crowd {
			select {
			case <-ctx.Done():
			case <-ticker.C:
				errs = append(errs,
					e.createAtOnce("third", i, 1, inQueue("root.other"), requests("cpu", "100m"), high),
					e.createAtOnce("plain", i, 1, ofProfile(corev1.DefaultSchedulerName), requests("cpu", "100m"), high))
			}
		}
		done <- errors.Join(errs...)
	}()
	return func() {
		e.Helper()
		cancel()
		e.ok(<-done)
	}
}

// TestPreemption checks a whole preemption: a queue under its guarantee takes back what
// it needs and nothing more, from one node, says why on every pod involved, and gets the
// room although other pods compete for it all the time.
func TestPreemption(t *testing.T) {
	e := setup(t, preemptionQueues, twoProfiles)
	e.useNodes(2, localcluster.NodeSpec{CPU: "8"})
	c := e.keepHistory()
	e.fill("victim", 16, inQueue("root.borrows"), stopsAfter(time.Second))
	stop := e.compete()
	asker := e.createPod(e.pod("asker", "asker", inQueue("root.owed"), requests("cpu", "3")))

	victims := c.expectEvicted("victim", 3)
	placed := c.awaitPlaced(asker)
	stop()

	for _, v := range victims {
		if v.pod.Spec.NodeName != placed.Spec.NodeName {
			t.Errorf("victim %s ran on %s, the asker got %s", v.pod.Name, v.pod.Spec.NodeName, placed.Spec.NodeName)
		}
		c.checkVictim(v, asker, "root.owed", "root.borrows")
		if early := v.at.Sub(asker.CreationTimestamp.Time); early < time.Second {
			t.Errorf("victim %s was evicted %v after the asker's creation, the delay is 1s", v.pod.Name, early)
		}
	}
	claim, claimed := c.claim(asker.UID)
	if claimed.IsZero() || claimed.After(victims[0].at) {
		t.Errorf("the claim was seen at %v, the first eviction at %v", claimed, victims[0].at)
	}
	if claim.Node != placed.Spec.NodeName || len(claim.Victims) != 3 {
		t.Errorf("the claim is %+v, the asker runs on %s", claim, placed.Spec.NodeName)
	}
	told := c.statuses(asker.UID, held)
	if len(told) != 2 || told[0].Status != corev1.ConditionTrue || told[1].Status != corev1.ConditionFalse {
		t.Errorf("condition %s was %v, want True, then False", held, told)
	}
	e.awaitEvent(asker, "", placed.Spec.NodeName, "3")
	for _, of := range []string{"third", "plain"} {
		if running, waiting := e.podsOf(of); len(running) > 0 || len(waiting) < 5 {
			t.Errorf("of group %s %d pods run and %d wait, want none to run", of, len(running), len(waiting))
		}
	}
	c.expectNoMore(calm, 3, "victim")
	e.expectBooks()
}

// timeToGuarantee is how long after the delay the victim of a pod is chosen at the latest.
const timeToGuarantee = 3 * time.Second

// TestTimeToGuarantee checks how long a queue waits for its guarantee: ten of its pods
// find four full nodes, and their ten victims are chosen soon after the delay.
func TestTimeToGuarantee(t *testing.T) {
	const delay, pods = 5 * time.Second, 10
	e := setup(t, `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: owed
      resources: {guaranteed: {vcore: `+strconv.Itoa(pods)+`}}
      properties: {preemption.delay: `+delay.String()+`}
    - name: borrows
`)
	e.useNodes(4, localcluster.NodeSpec{CPU: "10"})
	c := e.keepHistory()
	e.fill("victim", 40, inQueue("root.borrows"), stopsAfter(500*time.Millisecond))
	e.ok(e.createAtOnce("asker", 0, pods, inQueue("root.owed")))
	_, askers := e.podsOf("asker")
	victims := c.expectEvicted("victim", pods)
	e.expect("asker", pods, 0, "")

	slices.SortFunc(askers, func(a, b *corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var took []time.Duration
	for i, v := range victims { // one for each asker
		after := v.at.Sub(askers[i].CreationTimestamp.Time)
		if after < delay {
			t.Errorf("%d victims were chosen %v after the creation of as many askers, the delay is %v", i+1, after, delay)
		}
		took = append(took, after-delay)
	}
	end := askers[pods-1].CreationTimestamp.Add(delay)
	first, all := victims[0].at.Sub(end), victims[pods-1].at.Sub(end)
	var bound time.Time
	for _, a := range askers {
		if _, at := c.boundAt(a.UID); at.After(bound) {
			bound = at
		}
	}
	t.Logf("after the delay: first victim chosen %v, tenth %v, last asker bound %v", first, all, bound.Sub(end))
	// A busy machine makes some victims late, but not half of them. Each time is up to a
	// second too long, because creation times are in whole seconds.
	slices.Sort(took)
	if median := took[pods/2]; median > timeToGuarantee {
		t.Errorf("half of the victims were chosen %v or more after the delay, want at most %v: %v", median, timeToGuarantee, took)
	}
	c.expectNoMore(calm, pods, "victim")
	e.expectBooks()
}
