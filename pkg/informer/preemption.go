package informer

import (
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// AllowPreemption is the annotation of PriorityClasses, and the annotation and
// label of pods, by which pods opt out of being preempted (law 1).
const AllowPreemption = placement.Domain + "allow-preemption"

// optOutOf parses a value of AllowPreemption. As in YuniKorn, only the words "false" and
// "true" count, so that a manifest has the same meaning in both.
func optOutOf(value string) objects.OptOut {
	switch value {
	case "false":
		return objects.OptOutYes
	case "true":
		return objects.OptOutNo
	default:
		return objects.OptOutUnsaid
	}
}

// podOptOut returns the value of the pod's annotation, or of its label if the annotation
// has none.
func podOptOut(pod *corev1.Pod) objects.OptOut {
	if said := optOutOf(pod.Annotations[AllowPreemption]); said != objects.OptOutUnsaid {
		return said
	}
	return optOutOf(pod.Labels[AllowPreemption])
}

// static reports whether the pod belongs to its node: a kubelet mirrors it from a file,
// or the node owns it. It is true for pods of other schedulers only, because a static pod
// never passes a scheduler, and the author of any other pod can write the same.
func (o *Options) static(pod *corev1.Pod) bool {
	node := pod.Spec.NodeName
	if node == "" || o.Managed(pod) {
		return false
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	return slices.ContainsFunc(pod.OwnerReferences, func(r metav1.OwnerReference) bool {
		return r.APIVersion == "v1" && r.Kind == "Node" && r.Name == node
	})
}

// owners lists the UIDs of the pods that own the pod, such as the driver of a Spark
// executor; nil for none.
func owners(pod *corev1.Pod) []types.UID {
	var uids []types.UID
	for _, o := range ownersRead(pod) {
		if o.Kind == "Pod" && o.APIVersion == "v1" {
			uids = append(uids, o.UID)
		}
	}
	return uids
}

// controller returns the UID of the object that controls the pod; empty for none.
func controller(pod *corev1.Pod) types.UID {
	if c := metav1.GetControllerOfNoCopy(pod); c != nil {
		return c.UID
	}
	return ""
}

// onlyNode returns the only node on which a pod can run by its node affinity; empty for
// every other pod. Terms are alternatives, so all of them must name that node, except
// empty terms, which match no node.
func onlyNode(pod *corev1.Pod) string {
	if a := pod.Spec.Affinity; a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	terms := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	node := ""
	for i := range terms {
		if len(terms[i].MatchFields) == 0 && len(terms[i].MatchExpressions) == 0 {
			continue
		}
		named := namedNode(&terms[i])
		if named == "" || node != "" && named != node {
			return ""
		}
		node = named
	}
	return node
}

// namedNode returns the one node that the term names; empty if it names none or several.
// The filters check its other requirements.
func namedNode(term *corev1.NodeSelectorTerm) string {
	node := ""
	for i := range term.MatchFields {
		f := &term.MatchFields[i]
		if f.Key != metav1.ObjectNameField || f.Operator != corev1.NodeSelectorOpIn || len(f.Values) != 1 {
			continue
		}
		if node != "" && f.Values[0] != node {
			return ""
		}
		node = f.Values[0]
	}
	return node
}

// heldCondition returns the condition by which the pod holds a node; nil for none.
func heldCondition(pod *corev1.Pod) *corev1.PodCondition {
	if c := Condition(pod, reservations.HeldCondition); c != nil && c.Status == corev1.ConditionTrue {
		return c
	}
	return nil
}

// Claim returns the node that the pod holds by its condition; nil if there is none, or
// none that can be parsed.
func Claim(pod *corev1.Pod) *reservations.Claim {
	held := heldCondition(pod)
	if held == nil {
		return nil
	}
	c, err := reservations.ParseClaim(held.Message)
	if err != nil {
		return nil // the Watcher logs it
	}
	return &c
}
