package stage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// happens is an event of a pod with its name as UID.
func happens(kind watch.EventType, name string, conditions ...corev1.PodCondition) watch.Event {
	return watch.Event{Type: kind, Object: &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Status: corev1.PodStatus{Conditions: conditions},
	}}
}

func TestWhatHappenedIsRead(t *testing.T) {
	holds := func(victims ...types.UID) watch.Event {
		return happens(watch.Modified, "asker", Claim(reservations.Claim{Node: "n1", Since: time.Unix(1, 0), Victims: victims}))
	}
	disrupted := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}
	told := func(name string) watch.Event { return happens(watch.Modified, name, disrupted) }
	removed := func(name string) watch.Event { return happens(watch.Deleted, name, disrupted) }
	says := func(message string) watch.Event {
		return happens(watch.Modified, "asker", corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message})
	}
	refused := func(rule planner.Rule) scenario.Outcome {
		return scenario.Outcome{Asker: "asker", Kind: planner.Refuse, Rule: rule}
	}
	const nodes = "0/1 nodes are available: 1 Insufficient cpu. "
	for _, test := range []struct {
		name       string
		seen       []watch.Event
		want       scenario.Outcome
		complaints []string
	}{
		{"nothing", nil, refused(""), nil},
		{"no rule", []watch.Event{says(nodes + "PreemptionDelayed: (law 4)")}, refused(""), nil},
		{"a rule", []watch.Event{says(nodes + "PreemptionRefused: x (law 4); nobody has (law 5), no new claims")}, refused(planner.Law4), nil},
		{"the last rule", []watch.Event{says("PreemptionRefused: x (law 4)"), says("PreemptionRefused: x (law 2)")}, refused(planner.Law2), nil},
		{"never", []watch.Event{says("PreemptionNever: it asks nobody")}, refused(planner.RuleNeverPreempt), nil},
		{"of another pod", []watch.Event{happens(watch.Modified, "b", corev1.PodCondition{Type: corev1.PodScheduled, Message: "PreemptionRefused: x (law 4)"})}, refused(""), nil},
		{"a hold", []watch.Event{holds()}, scenario.Outcome{Asker: "asker", Kind: planner.Hold, Node: "n1"}, nil},
		{"room", []watch.Event{says(nodes + "WaitingForRoom: node n1 has room for the pod")}, scenario.Outcome{Asker: "asker", Kind: planner.Wait, Node: "n1"}, nil},
		{
			"victims", []watch.Event{holds("a", "b"), told("b"), told("a"), removed("b"), removed("a")},
			scenario.Outcome{Asker: "asker", Kind: planner.Preempt, Node: "n1", Victims: []string{"a", "b"}}, nil,
		},
		{
			"not told", []watch.Event{holds("a"), happens(watch.Deleted, "a")},
			scenario.Outcome{Asker: "asker", Kind: planner.Preempt, Node: "n1", Victims: []string{"a"}}, []string{"a was removed and not told why"},
		},
		{
			"claimed too late", []watch.Event{told("a"), holds("a"), removed("a")},
			scenario.Outcome{Asker: "asker", Kind: planner.Preempt, Node: "n1", Victims: []string{"a"}}, []string{"a was disrupted and is in no claim"},
		},
		{
			"not claimed", []watch.Event{holds("b"), removed("a")},
			scenario.Outcome{Asker: "asker", Kind: planner.Preempt, Node: "n1", Victims: []string{"a"}}, []string{"a was disrupted and is in no claim"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Outcome("asker", test.seen)); diff != "" {
				t.Errorf("outcome (-want +got)\n%s", diff)
			}
			if diff := cmp.Diff(test.complaints, Complaints("asker", test.seen)); diff != "" {
				t.Errorf("complaints (-want +got)\n%s", diff)
			}
		})
	}
}

// Every rule is recognised by the sentence that users see.
func TestRulesAreReadFromSentences(t *testing.T) {
	for _, r := range rules {
		d := planner.Decision{Ask: &planner.Ask{Name: "asker"}, Outcome: planner.Refuse, Stopped: r.rule}
		if r.rule == planner.Law6 {
			d.Higher = &planner.Victim{Pod: &planner.Pod{}, Queue: "root.a"}
		}
		message := "PreemptionRefused: " + d.Sentence()
		event := happens(watch.Modified, "asker", corev1.PodCondition{Type: corev1.PodScheduled, Message: message})
		if got := Outcome("asker", []watch.Event{event}); got.Rule != r.rule {
			t.Errorf("%q is read as %q, want %q", message, got.Rule, r.rule)
		}
	}
}
