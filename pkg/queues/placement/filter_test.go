package placement_test

import (
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

// TestFilterWithoutNames: a list of which nothing is left lists no user. It does not turn
// into a filter that allows all of them.
func TestFilterWithoutNames(t *testing.T) {
	queues := tree{"root": {submit: config.ACL{Everybody: true}}, "root.a": {QueueInfo: placement.QueueInfo{Leaf: true}}}
	for _, deny := range []bool{false, true} {
		rules := []config.Rule{{Kind: config.RuleFixed, Value: "a", Filter: config.Filter{Deny: deny, NoNames: true}}}
		result, reason := placement.Place(rules, placement.Request{Identity: placement.Identity{User: placement.User{Name: "bob"}}}, queues)
		if placed := reason.None(); placed != deny {
			t.Errorf("deny %v: placed %v in %q: %v", deny, placed, result.Path, reason)
		}
	}
}
