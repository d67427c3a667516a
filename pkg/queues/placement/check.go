package placement

import (
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// location is how far a path leads into the tree.
type location struct {
	nearest  string    // the last queue of the path that exists; empty without a root
	info     QueueInfo // of nearest
	leaf     string    // a leaf above the end of the path; empty when there is none
	draining string    // the first draining queue of the path; empty when there is none
}

func locate(tree Tree, path string) location {
	var at location
	for end := 0; end <= len(path); end++ {
		if end < len(path) && path[end] != '.' {
			continue
		}
		info, exists := tree.Queue(path[:end])
		if !exists {
			break
		}
		at.nearest, at.info = path[:end], info
		if info.Leaf && end < len(path) && at.leaf == "" {
			at.leaf = at.nearest
		}
		if info.Draining && at.draining == "" {
			at.draining = at.nearest
		}
	}
	return at
}

// checkQueue tells whether a queue may be used, and whether it has to be made first.
func (a *attempt) checkQueue(path string) (create bool, v verdict) {
	at := locate(a.tree, path)
	create = at.nearest != path
	switch {
	case at.nearest == "":
		return false, pass(reasons.QueueNotFound, "there is no queue at all")
	case at.leaf != "":
		return false, stop(reasons.PlacementRuleFailed, "queue %s cannot be made, because %s is a leaf queue", shown(path), shown(at.leaf))
	case !create && !at.info.Leaf:
		return false, pass(reasons.QueueNotLeaf, "queue %s is a parent; only leaf queues hold pods", shown(path))
	case at.draining != "" && at.draining != path:
		return false, pass(reasons.QueueDraining, "queue %s, above %s, was removed from queues.yaml and takes nothing new", shown(at.draining), shown(path))
	case at.draining != "":
		return false, pass(reasons.QueueDraining, "queue %s was removed from queues.yaml and takes nothing new", shown(path))
	}
	made, levels := strings.Count(path[len(at.nearest):], "."), strings.Count(path, ".")+1
	if create && made > 1 && levels > maxMade {
		return false, stop(reasons.InvalidQueueName, "queue %s would be made with %d levels, more than %d; "+
			"name one with fewer, or write its parents into queues.yaml", shown(path), levels, maxMade)
	}
	user := a.req.Identity.User
	switch {
	case a.req.Running || a.tree.MaySubmit(at.nearest, user.Name, user.Groups):
		return create, verdict{}
	case create:
		return false, pass(reasons.SubmitDenied, "%s may not submit to queue %s, below which %s would be made",
			userText(user), shown(at.nearest), shown(path))
	}
	return false, pass(reasons.SubmitDenied, "%s may not submit to queue %s", userText(user), shown(path))
}

// checkDefault tells whether the default queue may be used; it is never made.
func (a *attempt) checkDefault() verdict {
	if _, exists := a.tree.Queue(DefaultQueue); !exists {
		return pass(reasons.QueueNotFound, "queue %s does not exist", DefaultQueue)
	}
	_, v := a.checkQueue(DefaultQueue)
	return v
}

func userText(user User) string {
	text := "user " + quote(user.Name)
	switch len(user.Groups) {
	case 0:
		return text
	case 1:
		return text + " of group " + quote(user.Groups[0])
	}
	return text + " of groups " + quote(strings.Join(user.Groups, " "))
}
