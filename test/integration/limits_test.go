package integration

import (
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/rest"
)

const limitQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: apps
      maxapplications: 1
    - name: users
      limits:
      - limit: one user
        users: [alice]
        maxresources: {vcore: 2}
      - limit: everybody else
        users: ["*"]
        maxresources: {vcore: 1}
        maxapplications: 1
    - name: groups
      limits:
      - limit: a group
        groups: [dev]
        maxresources: {vcore: 3}
      - limit: other groups
        groups: ["*"]
        maxresources: {vcore: 1}
`

// TestMaxApplications checks that the second application waits until the first one has no
// pods any more.
func TestMaxApplications(t *testing.T) {
	e := setup(t, limitQueues)
	first := e.create("first", 2, inQueue("root.apps"))
	e.expect("first", 2, 0, "")
	e.create("second", 2, inQueue("root.apps"))
	e.expectStill("second", 0, 2, reasons.MaxApplications)
	e.awaitRunning(e.createPod(e.pod("first-late", "first", inQueue("root.apps")))) // the first one may grow
	e.delete(first[0])
	e.delete(first[1])
	e.expectStill("second", 0, 2, reasons.MaxApplications)
	e.awaitQueue("root.apps", "runs one application", func(q *rest.Queue) bool { return q.RunningApps == 1 })
	running, _ := e.podsOf("first")
	e.delete(running[0])
	e.expect("second", 2, 0, "")
}

// TestUserLimits checks limits of users by name and by wildcard.
func TestUserLimits(t *testing.T) {
	e := setup(t, limitQueues)
	alice := e.create("alice", 4, inQueue("root.users"), ofUser("alice"))
	e.create("bob", 2, inQueue("root.users"), ofUser("bob", "dev"))
	e.create("nobody", 2, inQueue("root.users")) // also a user
	e.create("elsewhere", 5, inQueue("root.groups"), ofUser("alice", "dev"))
	e.expectStill("alice", 2, 2, reasons.OverUserLimit)
	e.expectStill("bob", 1, 1, reasons.OverUserLimit)
	e.expectStill("nobody", 1, 1, reasons.OverUserLimit)
	_, waiting := e.podsOf("alice")
	if message := admitted(waiting[0]).Message; !strings.Contains(message, "alice") || !strings.Contains(message, "root.users") {
		t.Errorf("the pod is told %q, which does not name user and queue", message)
	}
	second := e.createPod(e.pod("bob-app", "bob-app", inQueue("root.users"), ofUser("bob"), requests()))
	e.awaitRefused(second, reasons.UserMaxApplications)

	running, _ := e.podsOf("alice")
	e.delete(running[0])
	e.expectStill("alice", 2, 1, reasons.OverUserLimit)
	e.delete(alice[3])
	running, _ = e.podsOf("bob")
	e.delete(running[0])
	e.expect("bob", 1, 0, "")
}

// TestGroupLimits checks that a limit of a group counts for its users together.
func TestGroupLimits(t *testing.T) {
	e := setup(t, limitQueues)
	e.create("ann", 2, inQueue("root.groups"), ofUser("ann", "dev"))
	e.expect("ann", 2, 0, "")
	e.create("ben", 2, inQueue("root.groups"), ofUser("ben", "dev", "ops"))
	e.expectStill("ben", 1, 1, reasons.OverGroupLimit)
	e.create("eve", 2, inQueue("root.groups"), ofUser("eve", "ops"))
	e.expectStill("eve", 1, 1, reasons.OverGroupLimit)
	_, waiting := e.podsOf("ben")
	if message := admitted(waiting[0]).Message; !strings.Contains(message, "dev") || !strings.Contains(message, "root.groups") {
		t.Errorf("the pod is told %q, which does not name group and queue", message)
	}
	running, _ := e.podsOf("ann")
	e.delete(running[0])
	e.expect("ben", 2, 0, "")
}
