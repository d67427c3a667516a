package informer

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/paddock-scheduler/paddock/pkg/objects"
)

// translateBudget returns what the store needs to know of a PodDisruptionBudget. It
// covers the same pods as in upstream's preemption: none if its selector is absent, empty
// or invalid. Its status also counts pods without labels, if the selector matches them.
func translateBudget(pdb *policyv1.PodDisruptionBudget) objects.Budget {
	b := objects.Budget{
		Namespace: pdb.Namespace, Name: pdb.Name,
		Generation: pdb.Generation, Observed: pdb.Status.ObservedGeneration,
		Matches: matches(pdb.Spec.Selector),
		Allowed: int64(pdb.Status.DisruptionsAllowed), Healthy: int64(pdb.Status.CurrentHealthy), Desired: int64(pdb.Status.DesiredHealthy),
		AlwaysAllow: pdb.Spec.UnhealthyPodEvictionPolicy != nil && *pdb.Spec.UnhealthyPodEvictionPolicy == policyv1.AlwaysAllow,
	}
	if len(pdb.Status.DisruptedPods) > 0 {
		b.DisruptedPods = make(map[string]bool, len(pdb.Status.DisruptedPods))
		for name := range pdb.Status.DisruptedPods {
			b.DisruptedPods[name] = true
		}
	}
	return b
}

// matches compiles the selector; nil if it covers no pod.
func matches(selector *metav1.LabelSelector) func(map[string]string) bool {
	if selector == nil {
		return nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || compiled.Empty() {
		return nil // the disruption controller reports invalid ones
	}
	return func(pod map[string]string) bool { return compiled.Matches(labels.Set(pod)) }
}

func (w *Watcher) budget(old, pdb *policyv1.PodDisruptionBudget) {
	if old != nil && old.UID != pdb.UID {
		w.budgetGone(old) // the delete in between was missed
	}
	w.store.UpsertBudget(translateBudget(pdb), w.options.Clock.Now())
}

func (w *Watcher) budgetGone(pdb *policyv1.PodDisruptionBudget) {
	w.store.DeleteBudget(pdb.Namespace, pdb.Name, w.options.Clock.Now())
}
