package reservations

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// HeldTaint is the key of the taint of a node that is held. Schedulers outside this
// process do not know holds, but they know taints. Cluster-autoscaler leaves out
// taints with this prefix when it makes the template of new nodes from existing
// ones, and goes on to count the node as ready.
const HeldTaint = "status-taint.cluster-autoscaler.kubernetes.io/paddock-held"

// The value of the taint is OWNER.ASKER, and the API server takes 63 characters.
const (
	longestOwner = 26
	longestAsker = 36 // a UID
)

// TaintOwner names the scheduler that holds nodes, given its managed profiles, in
// the values of taints. It is the same after a restart and in all replicas, and
// another one for a second scheduler in the same cluster.
func TaintOwner(profiles []string) string {
	if len(profiles) == 0 {
		return labelPart("", longestOwner)
	}
	return labelPart(slices.Min(profiles), longestOwner)
}

// TaintValue is the value of the taint of a node that is held for an asker.
func TaintValue(owner string, asker types.UID) string {
	uid := string(asker)
	if strings.Contains(uid, ".") {
		uid = shortened(uid)
	}
	return owner + "." + labelPart(uid, longestAsker)
}

// OwnsTaint tells whether a value is one that the owner writes.
func OwnsTaint(owner, value string) bool {
	at := strings.LastIndexByte(value, '.')
	return at >= 0 && value[:at] == owner
}

// labelPart returns a text as it is where it can be the beginning or the end of the
// value of a label and is not too long, else a hash of it.
func labelPart(text string, longest int) string {
	if text == "" || len(text) > longest || !alphanumeric(text[0]) || !alphanumeric(text[len(text)-1]) {
		return shortened(text)
	}
	for i := range len(text) {
		if c := text[i]; !alphanumeric(c) && c != '-' && c != '_' && c != '.' {
			return shortened(text)
		}
	}
	return text
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

func shortened(text string) string {
	h := fnv.New64a()
	h.Write([]byte(text)) // a hash takes everything
	return fmt.Sprintf("%016x", h.Sum64())
}
