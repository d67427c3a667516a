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

// longestOwner leaves room for a dot and a UID: the value of a taint is OWNER.ASKER, and the
// API server allows 63 characters.
const longestOwner = 26

// TaintOwner returns the name of the scheduler that holds nodes, as used in taint values.
// It is derived from the managed profiles: it is the same after a restart and in all
// replicas, and differs from that of a second scheduler in the same cluster. It is a hash
// where no taint can have the name.
func TaintOwner(profiles []string) string {
	name := slices.Min(profiles)
	if len(name) <= longestOwner && len(validation.IsValidLabelValue(name)) == 0 {
		return name
	}
	h := fnv.New64a()
	h.Write([]byte(name)) // a hash never fails to write
	return fmt.Sprintf("%016x", h.Sum64())
}

// TaintValue returns the value of the taint of a node that is held for an asker. UIDs are
// made by the API server, and have 36 characters and no dot.
func TaintValue(owner string, asker types.UID) string { return owner + "." + string(asker) }

// OwnsTaint reports whether the owner wrote a value.
func OwnsTaint(owner, value string) bool {
	at := strings.LastIndexByte(value, '.')
	return at >= 0 && value[:at] == owner
}
