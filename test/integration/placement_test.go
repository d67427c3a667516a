package integration

import (
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest/documents"
)

// placementQueues puts a pod into the queue that it names, if that queue exists, and into
// no other. Queues may be appended.
const placementQueues = `
partitions:
- name: default
  placementrules:
  - name: provided
    create: false
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: known
    - name: private
      parent: true
      queues:
      - name: room
`

// TestUnplaceable checks that a pod without a queue waits and says what to correct, and
// that it runs as soon as the configuration has a queue for it.
func TestUnplaceable(t *testing.T) {
	e := setup(t, placementQueues)
	lost := e.create("lost", 1)[0]
	missing := e.create("missing", 2, inQueue("root.later"))
	parent := e.create("parent", 1, inQueue("root.private"))[0]
	below := e.create("below", 1, inQueue("root.known.child"))[0]
	illegal := e.create("illegal", 1, annotated(placement.KeyQueue, "root.not legal!"))[0]
	badUser := e.create("bad-user", 1, inQueue("root.known"), annotated(placement.KeyUserInfo, "alice"))[0]

	e.awaitRefused(lost, reasons.NoPlacementRuleMatched)
	for _, p := range missing {
		if message := e.awaitRefused(p, reasons.QueueNotFound); !strings.Contains(message, "root.later") {
			t.Errorf("pod %s is told %q, which does not name the queue", p.Name, message)
		}
		e.awaitEvent(p, string(reasons.QueueNotFound), "root.later")
	}
	e.awaitRefused(parent, reasons.QueueNotLeaf)
	e.awaitRefused(below, reasons.QueueNotFound)
	e.awaitRefused(illegal, reasons.InvalidQueueName)
	e.awaitRefused(badUser, reasons.InvalidUserInfo)

	e.configure(placementQueues + "    - name: later\n      resources: {max: {vcore: 1}}\n")
	e.expectStill("missing", 1, 1, reasons.OverMax)
	for _, p := range []string{"lost", "parent", "below", "illegal", "bad-user"} {
		e.expectStill(p, 0, 1, "")
	}

	// A corrected label is enough.
	e.patch(lost, `{"metadata":{"labels":{"`+placement.KeyQueue+`":"root.known"}}}`)
	e.awaitRunning(lost)
	e.delete(badUser)
	e.expectBooks()
}

// TestDrainingQueue checks that the pods of a queue removed from the configuration run to
// their end, and that it takes no new ones.
func TestDrainingQueue(t *testing.T) {
	e := setup(t, placementQueues+"    - name: old\n      resources: {max: {vcore: 2}}\n")
	e.create("before", 3, inQueue("root.old"))
	e.expect("before", 2, 1, reasons.OverMax)

	e.configure(placementQueues)
	e.awaitQueue("root.old", "is draining", func(q *documents.Queue) bool { return q.Status == "Draining" })
	refused := e.create("after", 1, inQueue("root.old"))[0]
	if message := e.awaitRefused(refused, reasons.QueueDraining); !strings.Contains(message, "root.old") {
		t.Errorf("the pod is told %q, which does not name the queue", message)
	}
	e.expectStill("before", 2, 1, reasons.OverMax)

	// Its pods run to their end; then the queue disappears.
	running, _ := e.podsOf("before")
	e.delete(running[0])
	e.expect("before", 2, 0, "")
	running, _ = e.podsOf("before")
	for _, p := range running {
		e.delete(p)
	}
	eventually(t, patience, "the queue goes", func() (bool, string) { return e.queue("root.old") == nil, "it is there" })

	e.configure(placementQueues + "    - name: old\n")
	e.awaitRunning(refused)
}

// TestTooManyQueues checks that a pod beyond the bound of queues that rules make waits, and
// runs when a queue goes.
func TestTooManyQueues(t *testing.T) {
	e := setup(t, strings.Replace(placementQueues, "create: false", "create: true", 1), func(s *settings) {
		s.args = map[string]any{"maxDynamicQueuesPerNamespace": 2}
	})
	first := e.create("first", 2, inQueue("root.made.one"))
	beyond := e.createPod(e.pod("beyond", "beyond", inQueue("root.two")))
	e.awaitExplained(beyond, reasons.TooManyQueues, asReason)
	e.expectStill("first", 2, 0, "")
	e.expectStill("beyond", 0, 1, reasons.TooManyQueues)
	for _, p := range first {
		e.delete(p)
	}
	e.expectStill("beyond", 1, 0, "")
}
