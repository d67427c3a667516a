package reservations

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// HeldTaint is the key of the taint of a held node. Schedulers outside this process do
// not know holds, but they respect taints. Cluster-autoscaler ignores taints with this
// prefix when it makes a node template from existing nodes, and still counts the node as
// ready.
const HeldTaint = "status-taint.cluster-autoscaler.kubernetes.io/paddock-held"

// The value of the taint is OWNER.ASKER. The API server allows 63 characters.
const (
	longestOwner = 26
	longestAsker = 36 // a UID
)

// TaintOwner returns the name of the scheduler that holds nodes, as used in taint values.
// It is derived from the managed profiles: it is the same after a restart and in all
// replicas, and differs from that of a second scheduler in the same cluster.
func TaintOwner(profiles []string) string {
	if len(profiles) == 0 {
		return labelPart("", longestOwner)
	}
	return labelPart(slices.Min(profiles), longestOwner)
}

// TaintValue returns the value of the taint of a node that is held for an asker.
func TaintValue(owner string, asker types.UID) string {
	uid := string(asker)
	if strings.Contains(uid, ".") {
		uid = shortened(uid)
	}
	return owner + "." + labelPart(uid, longestAsker)
}

// OwnsTaint reports whether the owner wrote a value.
func OwnsTaint(owner, value string) bool {
	at := strings.LastIndexByte(value, '.')
	return at >= 0 && value[:at] == owner
}

// labelPart returns a text unchanged if it is valid as the beginning or end of a label
// value and not too long, and otherwise a hash of it.
func labelPart(text string, longest int) string {
	if text == "" || len(text) > longest || len(validation.IsValidLabelValue(text)) > 0 {
		return shortened(text)
	}
	return text
}

func shortened(text string) string {
	h := fnv.New64a()
	h.Write([]byte(text)) // a hash never fails to write
	return fmt.Sprintf("%016x", h.Sum64())
}
