package store

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// lostPods prints the lost pods, or plays the end of a cycle that checked for them.
func (s *script) lostPods(words []string) string {
	switch {
	case len(words) == 0:
	case words[0] == "gone":
		s.store.Vanished(s.store.LostPods(s.now))
	default:
		s.store.ComeBack(types.UID(words[0]), s.now)
	}
	var b strings.Builder
	for _, e := range s.store.LostPods(s.now) {
		if e.Nominated {
			fmt.Fprintf(&b, "%s, nominated to %s\n", e.UID, e.Node)
			continue
		}
		fmt.Fprintf(&b, "%s on %q, requests %v\n", e.UID, e.Node, e.Request)
	}
	return b.String()
}
