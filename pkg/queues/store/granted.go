package store

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// The scheduler has a pod judged when its cycle begins and when it has a node, and
// mostly nothing happened in between that the second verdict could come from. So the
// store remembers what the first one was of.

// granted is the latest verdict on what is allocated that was in favour: of a request
// of an application, after so many changes of what is allocated, and of the tree.
type granted struct {
	app           *app
	request       resources.Vector
	changes, tree uint64
}

// grant remembers that a pod of an application may run by what is allocated now. It
// tells nothing of maxapplications.
func (s *Store) grant(a *app, request resources.Vector) {
	s.granted = granted{app: a, request: request, changes: s.allocatedChanges, tree: s.draft.TreeGeneration()}
}

// stillGranted tells whether judging the pod again would give what is remembered. An
// application that counts already is not refused by maxapplications.
func (s *Store) stillGranted(p *pod) bool {
	g := &s.granted
	return g.app == p.app && p.app.counted && g.changes == s.allocatedChanges && g.tree == s.draft.TreeGeneration() &&
		g.request.Equal(p.Request)
}

// checkGranted verifies that what is remembered is so.
func (s *Store) checkGranted() []error {
	for _, p := range s.pods {
		if p.app == nil || !s.stillGranted(p) {
			continue
		}
		if v := s.judge(p.app, p.Request, queues.OnAllocated); !v.OK() {
			return []error{fmt.Errorf("pod %s/%s: remembered as granted: %s", p.Namespace, p.Name, v.Reason)}
		}
	}
	return nil
}
