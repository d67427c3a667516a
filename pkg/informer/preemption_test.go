package informer

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// term is a node selector term on the names of nodes.
func term(requirements ...corev1.NodeSelectorRequirement) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchFields: requirements}
}

func names(operator corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorRequirement {
	return corev1.NodeSelectorRequirement{Key: "metadata.name", Operator: operator, Values: values}
}

func in(values ...string) corev1.NodeSelectorRequirement {
	return names(corev1.NodeSelectorOpIn, values...)
}

// requiring makes a DaemonSet pod that requires one of the terms.
func requiring(terms ...corev1.NodeSelectorTerm) *corev1.Pod {
	pod := podOf("cpu=1")
	pod.OwnerReferences = []metav1.OwnerReference{ownedBy("apps/v1", "DaemonSet", "d", "ds")}
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
	return pod
}

// TestRequiredNode: TestOwnersAreVerified shows which pods are those of DaemonSets.
func TestRequiredNode(t *testing.T) {
	zone := []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		want string
	}{
		{"as the DaemonSet controller writes it", requiring(term(in("n1"))), "n1"},
		{"narrowed by a label", requiring(corev1.NodeSelectorTerm{MatchFields: term(in("n1")).MatchFields, MatchExpressions: zone}), "n1"},
		{"narrowed by another field", requiring(term(corev1.NodeSelectorRequirement{Key: "metadata.uid", Operator: corev1.NodeSelectorOpIn, Values: []string{"x"}}, in("n1"))), "n1"},
		{"another node besides excluded", requiring(term(names(corev1.NodeSelectorOpNotIn, "n2"), in("n1"))), "n1"},
		{"one of several, narrowed to one", requiring(term(in("n1", "n2"), in("n1"))), "n1"},
		{"two terms, the same node", requiring(term(in("n1")), corev1.NodeSelectorTerm{MatchFields: term(in("n1")).MatchFields, MatchExpressions: zone}), "n1"},
		{"the same twice in a term", requiring(term(in("n1"), in("n1"))), "n1"},
		{"an empty term matches no node", requiring(corev1.NodeSelectorTerm{}, term(in("n1"))), "n1"},

		{"two terms, two nodes", requiring(term(in("n1")), term(in("n2"))), ""},
		{"two terms, the second on a label", requiring(term(in("n1")), corev1.NodeSelectorTerm{MatchExpressions: zone}), ""},
		{"two terms, the first on a label", requiring(corev1.NodeSelectorTerm{MatchExpressions: zone}, term(in("n1"))), ""},
		{"two nodes at once", requiring(term(in("n1"), in("n2"))), ""},
		{"one of several", requiring(term(in("n1", "n2"))), ""},
		{"none", requiring(term(in())), ""},
		{"all but one", requiring(term(names(corev1.NodeSelectorOpNotIn, "n1"))), ""},
		{"another field", requiring(term(corev1.NodeSelectorRequirement{Key: "metadata.uid", Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"}})), ""},
		{"a label of that name", requiring(corev1.NodeSelectorTerm{MatchExpressions: term(in("n1")).MatchFields}), ""},
		{"only an empty term", requiring(corev1.NodeSelectorTerm{}), ""},
		{"no terms", requiring(), ""},
		{"only preferred", with(requiring(), func(p *corev1.Pod) {
			p.Spec.Affinity.NodeAffinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: 1, Preference: term(in("n1"))},
			}}
		}), ""},
		{"no node affinity", with(requiring(), func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{} }), ""},
		{"no affinity", with(requiring(), func(p *corev1.Pod) { p.Spec.Affinity = nil }), ""},
	} {
		expect.Same(t, c.name+": required node", c.want, (&Options{ClaimedOwners: true}).Translate(c.pod).RequiredNode)
	}
}

func TestStatic(t *testing.T) {
	replicas := ownedBy("apps/v1", "ReplicaSet", "r", "rs")
	ofNode := func(version string) []metav1.OwnerReference {
		return []metav1.OwnerReference{replicas, {APIVersion: version, Kind: "Node", Name: "n1"}}
	}
	mirror := map[string]string{"kubernetes.io/config.mirror": ""}
	for _, c := range []struct {
		name        string
		scheduler   string
		node        string
		annotations map[string]string
		owners      []metav1.OwnerReference
		want        bool
	}{
		{"ordinary", "other", "n1", map[string]string{"a": "b"}, []metav1.OwnerReference{replicas}, false},
		{"mirror", "other", "n1", mirror, nil, true},
		{"another annotation of kubelets", "other", "n1", map[string]string{"kubernetes.io/config.source": "api"}, nil, false},
		{"the node's", "other", "n1", nil, ofNode("v1"), true},
		{"another node's", "other", "n2", nil, ofNode("v1"), false},
		{"of no node", "other", "", mirror, ofNode("v1"), false},
		{"another kind of that name", "other", "n1", nil, ofNode("fake.example/v1"), false},
		{"a DaemonSet's", "other", "n1", nil, []metav1.OwnerReference{ownedBy("apps/v1", "DaemonSet", "d", "ds")}, false},
		{"managed, the node's", profile, "n1", nil, ofNode("v1"), false},
		{"managed, mirror", profile, "n1", mirror, nil, false},
	} {
		pod := podOf()
		pod.Spec.SchedulerName, pod.Spec.NodeName = c.scheduler, c.node
		pod.Annotations, pod.OwnerReferences = c.annotations, c.owners
		o := Options{ManagedProfiles: []string{profile}}
		expect.Same(t, c.name+": static", c.want, o.Translate(pod).Static)
	}
}

func TestOptOut(t *testing.T) {
	const absent = "absent"
	valued := func(value string) map[string]string {
		if value == absent {
			return map[string]string{"x": "false"}
		}
		return map[string]string{"yunikorn.apache.org/allow-preemption": value}
	}
	said := func(annotation, label string, want objects.OptOut) {
		t.Helper()
		pod := podOf()
		pod.Annotations, pod.Labels = valued(annotation), valued(label)
		got := Translate(pod, RequestOptions{}).OptOut
		expect.Same(t, fmt.Sprintf("annotation %q, label %q", annotation, label), want, got)
	}
	for _, c := range []struct {
		annotation, label string
		want              objects.OptOut
	}{
		{absent, absent, objects.OptOutUnsaid}, {"", absent, objects.OptOutUnsaid}, {absent, "", objects.OptOutUnsaid},
		{"false", absent, objects.OptOutYes}, {"true", absent, objects.OptOutNo},
		{absent, "false", objects.OptOutYes}, {absent, "true", objects.OptOutNo},
		{"true", "false", objects.OptOutNo}, {"false", "true", objects.OptOutYes},
		// An invalid annotation does not hide a valid label.
		{"maybe", "false", objects.OptOutYes}, {"", "true", objects.OptOutNo},
	} {
		said(c.annotation, c.label, c.want)
	}
	// Only the two words count, as in YuniKorn.
	for _, word := range []string{"False", "FALSE", "True", "0", "1", "f", "t", "no", " false"} {
		said(word, absent, objects.OptOutUnsaid)
		said(absent, word, objects.OptOutUnsaid)
	}
}

func TestOwners(t *testing.T) {
	pod, driver := podOf(), metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", UID: "u1"}
	pod.OwnerReferences = []metav1.OwnerReference{driver, ownedBy("batch/v1", "Job", "j", "u2")}
	got := Translate(pod, RequestOptions{})
	expect.Same(t, "owners", []types.UID{"u1"}, got.Owners)
	expect.Same(t, "the controller, which creates a replacement", types.UID("u2"), got.Controller)
	pod.OwnerReferences = slices.Repeat([]metav1.OwnerReference{driver}, 1000)
	got = Translate(pod, RequestOptions{})
	expect.Same(t, "owners that count", maxOwners, len(got.Owners))
	expect.Same(t, "the controller, where no owner is one", types.UID(""), got.Controller)
}

// holding sets a condition of the pod that says it holds a node.
func holding(pod *corev1.Pod, status corev1.ConditionStatus, message string) *corev1.Pod {
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: message},
		corev1.PodCondition{Type: reservations.HeldCondition, Status: status, Message: message})
	return pod
}

func someClaim() reservations.Claim {
	return reservations.Claim{
		Node: "n1", Since: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Victims: []types.UID{"v1", "v2"}, Decision: "d1",
	}
}

func TestClaim(t *testing.T) {
	c := someClaim()
	for _, tt := range []struct {
		name string
		pod  *corev1.Pod
		want *reservations.Claim
	}{
		{"none", podOf(), nil},
		{"held", holding(podOf(), corev1.ConditionTrue, c.Message()), &c},
		{"taken back", holding(podOf(), corev1.ConditionFalse, c.Message()), nil},
		{"unknown", holding(podOf(), corev1.ConditionUnknown, c.Message()), nil},
		{"unreadable", holding(podOf(), corev1.ConditionTrue, "It holds n1."), nil},
		{"empty", holding(podOf(), corev1.ConditionTrue, ""), nil},
	} {
		expect.Same(t, tt.name, tt.want, Translate(tt.pod, RequestOptions{}).Claim)
	}
}

// TestPreemptionFieldsAreApart sets all fields at once: no field may prevent the reading of another.
func TestPreemptionFieldsAreApart(t *testing.T) {
	c := someClaim()
	pod := holding(requiring(term(in("n1"))), corev1.ConditionTrue, c.Message())
	pod.OwnerReferences = append(pod.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", UID: "driver"})
	pod.UID, pod.Annotations = "u1", map[string]string{corev1.MirrorPodAnnotationKey: "x", AllowPreemption: "false"}
	pod.Spec.PriorityClassName, pod.Spec.PreemptionPolicy = "gold", ptr.To(corev1.PreemptNever)
	pod.Spec.NodeName, pod.Spec.SchedulerName = "n1", "other"
	pod.Spec.TerminationGracePeriodSeconds = ptr.To[int64](3600)
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler, Message: "preempted for ns/a",
	})
	want := objects.Pod{
		Identity: objects.Identity{UID: "u1", Annotations: pod.Annotations, Owners: []types.UID{"driver"}, Controller: "ds"},
		Spec:     objects.Spec{Static: true, RequiredNode: "n1", Foreign: true, Scheduler: "other", Grace: time.Hour, NeverPreempts: true, Class: "gold", OptOut: objects.OptOutYes},
		Status:   objects.Status{Node: "n1", Preempted: true, Claim: &c},
		Request:  Requests(pod, RequestOptions{}),
	}
	expect.Same(t, "", want, (&Options{ClaimedOwners: true}).Translate(pod))
}

// A victim of an asker of its own, and one of upstream's preemption, has the mark of every
// victim, and is not one of the preempted pods that its queue uses no more.
func TestVictimsOfTheirOwn(t *testing.T) {
	for message, want := range map[string]bool{
		"preempted for ns/a": true, "preempted for ns/a" + reservations.OwnVictim: false,
		"default-scheduler: preempting to accommodate a higher priority pod": false, "": false,
	} {
		pod := podOf()
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler, Message: message,
		}}
		expect.Same(t, message, want, Translate(pod, RequestOptions{}).Preempted)
	}
}

func TestOriginator(t *testing.T) {
	head := map[string]string{"ray.io/node-type": "head"}
	set := map[string]string{"jobset.sigs.k8s.io/coordinator": "train-head-0-0.train"}
	for _, c := range []struct {
		name       string
		annotation string
		labels     map[string]string
		host       string
		want       objects.Originator
	}{
		{"nothing", "", nil, "", objects.OriginatorUnsaid},
		{"the annotation", "true", nil, "", objects.OriginatorYes},
		{"not by the annotation", "false", head, "", objects.OriginatorNo},
		{"an annotation without meaning", "yes", head, "", objects.OriginatorByRole},
		{"a worker of Ray", "", map[string]string{"ray.io/node-type": "worker"}, "", objects.OriginatorUnsaid},
		{"a worker of a LeaderWorkerSet", "", map[string]string{"leaderworkerset.sigs.k8s.io/worker-index": "1"}, "", objects.OriginatorUnsaid},
		{"the coordinator of a JobSet", "", set, "train-head-0-0", objects.OriginatorByRole},
		{"another pod of a JobSet", "", set, "train-head-0-1", objects.OriginatorUnsaid},
		{"a JobSet without a coordinator", "", nil, "train-head-0-0", objects.OriginatorUnsaid},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: c.labels}, Spec: corev1.PodSpec{Hostname: c.host}}
		if c.annotation != "" {
			pod.Annotations = map[string]string{OriginatorAnnotation: c.annotation}
		}
		expect.Same(t, c.name, c.want, Translate(pod, RequestOptions{}).Originator)
	}
}

// TestOriginatorByRole: that the roles are right is shown by docs/configuration.md, with
// which internal/reference compares them.
func TestOriginatorByRole(t *testing.T) {
	for _, r := range Roles {
		pod := podOf()
		pod.Labels = map[string]string{r.Label: r.Value}
		expect.Same(t, r.Of, objects.OriginatorByRole, Translate(pod, RequestOptions{}).Originator)
	}
}
