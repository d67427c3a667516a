package preemption

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

// transientCodes are the codes of texts that are outdated a moment later. Explain reports
// the current state in addition.
var transientCodes = map[reasons.Code]bool{reasons.PreemptionDelayed: true, reasons.PreemptionPaced: true}

// nodeCount returns the number of nodes that the cycle knows.
func (pl *Plugin) nodeCount() int {
	infos, _ := pl.handle.SnapshotSharedLister().NodeInfos().List() // a snapshot never fails to list them
	return len(infos)
}

// noNode says why no node took a pod, and why no victims are chosen for it.
func noNode(statuses fwk.NodeToStatusReader, nodes int, why reasons.Reason) reasons.Reason {
	text := "no node could take the pod"
	if all, ok := statuses.(*framework.NodeToStatus); ok {
		nodes = max(nodes, all.Len())
	}
	if refused := refusals(statuses, nodes); refused != "" {
		text = fmt.Sprintf("none of %d nodes could take the pod: %s", nodes, refused)
	}
	if why.Text == "" || transientCodes[why.Code] {
		return reasons.New(reasons.NoNodeFits, "%s", text)
	}
	return reasons.New(reasons.NoNodeFits, "%s; %s", text, why.Text)
}

// refusals counts the nodes by the reason for which they rejected the pod, ordered by
// text. It is empty if the reasons are not known.
func refusals(statuses fwk.NodeToStatusReader, nodes int) string {
	all, ok := statuses.(*framework.NodeToStatus)
	if !ok || all == nil {
		return ""
	}
	counts := map[string]int{}
	count := func(s *fwk.Status, n int) {
		for _, text := range s.Reasons() {
			counts[text] += n
		}
	}
	all.ForEachExplicitNode(func(_ string, s *fwk.Status) { count(s, 1) })
	if absent := nodes - all.Len(); absent > 0 { // no filter ran for these
		count(all.AbsentNodesStatus(), absent)
	}
	texts := slices.Sorted(maps.Keys(counts))
	for i, text := range texts {
		texts[i] = fmt.Sprintf("%d %s", counts[text], text)
	}
	return strings.Join(texts, ", ")
}
