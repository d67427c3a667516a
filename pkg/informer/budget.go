package informer

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/paddock-scheduler/paddock/pkg/queues/store"
)

// TranslateBudget is what the store needs to know of a PodDisruptionBudget. It
// covers whom it covers for upstream's preemption: nobody if its selector is
// absent, empty or invalid, and never a pod without labels.
func TranslateBudget(pdb *policyv1.PodDisruptionBudget) store.Budget {
	b := store.Budget{
		Namespace: pdb.Namespace, Name: pdb.Name,
		Generation: pdb.Generation,
		Matches:    matches(pdb.Spec.Selector),
		Allowed:    int64(pdb.Status.DisruptionsAllowed),
	}
	if len(pdb.Status.DisruptedPods) > 0 {
		b.Disrupted = make(map[string]bool, len(pdb.Status.DisruptedPods))
		for name := range pdb.Status.DisruptedPods {
			b.Disrupted[name] = true
		}
	}
	return b
}

// matches compiles the selector; nil if it covers nobody.
func matches(selector *metav1.LabelSelector) func(map[string]string) bool {
	if selector == nil {
		return nil
	}
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || compiled.Empty() {
		return nil // the disruption controller tells of invalid ones
	}
	return func(pod map[string]string) bool { return len(pod) > 0 && compiled.Matches(labels.Set(pod)) }
}

func (w *Watcher) budget(old, pdb *policyv1.PodDisruptionBudget) {
	if old != nil && old.UID != pdb.UID {
		w.budgetGone(old) // the delete in between was missed
	}
	w.store.UpsertBudget(TranslateBudget(pdb), w.options.Clock.Now())
}

func (w *Watcher) budgetGone(pdb *policyv1.PodDisruptionBudget) {
	w.store.DeleteBudget(pdb.Namespace, pdb.Name, w.options.Clock.Now())
}
