package integration

import (
	"strings"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
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
