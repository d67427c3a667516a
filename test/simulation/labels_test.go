package simulation_test

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// In a seventh of the histories most pods require a label of their node, which moves
// take away and bring back.

const diskLabel, fastDisk = "disk", "fast"

// requireLabel makes three of four pods of our schedulers require the label.
func (s *simulation) requireLabel(pod *corev1.Pod, m move) {
	if s.settings.labels && pod.Spec.SchedulerName != alien && m.a%4 > 0 {
		s.choosy.Store(pod.UID, true)
		pod.Spec.NodeSelector = map[string]string{diskLabel: fastDisk}
	}
}

// relabel takes the label from a node, or brings it back.
func relabel(n *corev1.Node) {
	if n.Labels[diskLabel] == fastDisk {
		n.Labels[diskLabel] = "slow"
	} else {
		n.Labels[diskLabel] = fastDisk
	}
}

// selects tells whether a node has the label that a pod requires, if it does.
func selects(pod *corev1.Pod, n *corev1.Node) bool {
	want, requires := pod.Spec.NodeSelector[diskLabel]
	return !requires || n.Labels[diskLabel] == want
}

// countRefused counts a hold that ended because a taint or a label of the node refuses its pod.
func (w *interceptor) countRefused(item *output.Work) {
	switch why := item.Reason.Text; {
	case item.Ended != reservations.NodeUnschedulable:
	case strings.Contains(why, "untolerated taint"):
		w.in.sim.count(heldTainted)
	case strings.Contains(why, "affinity/selector"):
		w.in.sim.count(heldRelabelled)
	}
}

// refuses tells whether a taint of an administrator, or its labels, keep a pod off a node.
func refuses(n *corev1.Node, pod *corev1.Pod) bool { return dirty(n) || !selects(pod, n) }

func (s *simulation) isChoosy(pod types.UID) bool { _, is := s.choosy.Load(pod); return is }
