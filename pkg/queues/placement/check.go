package placement

import (
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// location is how far a path leads into the tree.
type location struct {
	nearest  *queues.Queue // the last queue of the path that exists
	leaf     string        // a leaf above the end of the path; empty when there is none
	draining string        // the first draining queue of the path; empty when there is none
}

// locate follows a path, which begins with root.
func locate(tree *queues.Draft, path string) location {
	var at location
	for end := len(path); at.nearest == nil; end = strings.LastIndexByte(path[:end], '.') {
		at.nearest, _ = tree.Find(path[:end])
	}
	for q := range tree.Ancestors(at.nearest.ID) {
		if q.Leaf && q.Path != path {
			at.leaf = q.Path
		}
		if q.State == queues.Draining {
			at.draining = q.Path
		}
	}
	return at
}

// checkQueue tells whether a queue may be used, and whether it has to be made first.
func (a *attempt) checkQueue(path string) (create bool, why reasons.Reason) {
	at := locate(a.tree, path)
	create = at.nearest.Path != path
	switch {
	case at.leaf != "":
		return false, reasons.New(reasons.PlacementRuleFailed, "queue %s cannot be made, because %s is a leaf queue", shown(path), shown(at.leaf))
	case !create && !at.nearest.Leaf:
		return false, reasons.New(reasons.QueueNotLeaf, "queue %s is a parent; only leaf queues hold pods", shown(path))
	case at.draining != "" && at.draining != path:
		return false, reasons.New(reasons.QueueDraining, "queue %s, above %s, was removed from queues.yaml and takes nothing new", shown(at.draining), shown(path))
	case at.draining != "":
		return false, reasons.New(reasons.QueueDraining, "queue %s was removed from queues.yaml and takes nothing new", shown(path))
	}
	made, levels := strings.Count(path[len(at.nearest.Path):], "."), strings.Count(path, ".")+1
	if create && made > 1 && levels > maxMade {
		return false, reasons.New(reasons.InvalidQueueName, "queue %s would be made with %d levels, more than %d; "+
			"name one with fewer, or write its parents into queues.yaml", shown(path), levels, maxMade)
	}
	user := a.req.Identity.User
	switch {
	case a.req.Running || queues.MaySubmit(a.tree, at.nearest.ID, user.Name, user.Groups):
		return create, reasons.Reason{}
	case create:
		return false, reasons.New(reasons.SubmitDenied, "%s may not submit to queue %s, below which %s would be made",
			userText(user), shown(at.nearest.Path), shown(path))
	}
	return false, reasons.New(reasons.SubmitDenied, "%s may not submit to queue %s", userText(user), shown(path))
}

// checkDefault tells whether the default queue may be used; it is never made.
func (a *attempt) checkDefault() reasons.Reason {
	if _, exists := a.tree.Find(DefaultQueue); !exists {
		return reasons.New(reasons.QueueNotFound, "queue %s does not exist", DefaultQueue)
	}
	_, why := a.checkQueue(DefaultQueue)
	return why
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
