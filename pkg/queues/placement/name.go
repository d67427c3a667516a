package placement

import (
	"fmt"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
)

// maxDepth bounds the levels of a path: root, those that queues.yaml may have, and one that a
// rule makes. Labels cannot be that long; annotations can.
const maxDepth = 1 + config.MaxDepth + 1

// maxPath bounds the queue that a pod names, in bytes: no valid path is longer. It may be part of the
// name of an application, also where no rule reads it.
const maxPath = maxDepth * (64 + 1)

// maxMade is how many levels the path of a queue may have that a rule makes together with
// parents. One level below a queue that exists may be deeper.
const maxMade = 8

// maxName bounds the names of users and groups, and application IDs, in bytes. They are kept for
// each pod and shown in lists.
const maxName = 253

// maxUserInfo bounds the annotation with user and groups, in bytes. It is read whenever a pod is
// placed, under the store's lock: 250 KB with 25,000 groups took 17 ms.
const maxUserInfo = 64 << 10

// checkPath returns an error when a full path breaks the rules for queue names.
func checkPath(path string) error {
	if depth := strings.Count(path, ".") + 1; depth > maxDepth {
		return fmt.Errorf("it has %d levels, more than %d", depth, maxDepth)
	}
	for part := range strings.SplitSeq(path, ".") {
		if !config.ValidQueueName(part) {
			return fmt.Errorf("part %s must be 1 to 64 letters, digits and - _ : # / @", quote(part))
		}
	}
	return nil
}

// shown is a path in a sentence: as it is, without quotes, unless it would fill
// the sentence.
func shown(path string) string { return shorten(path, 200) }
