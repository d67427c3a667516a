package reference

import (
	"fmt"

	"github.com/paddock-scheduler/paddock/pkg/informer"
)

// Mark is a label or an annotation that is read.
type Mark struct {
	Name string
	// On is the kind of object, Form whether it is a label or an annotation.
	On, Form string
	Meaning  string
}

// Marks are all labels and annotations that the scheduler and the admission policies
// read. Of several with the same meaning the first wins.
func Marks() []Mark {
	const domain = "yunikorn.apache.org/"
	marks := []Mark{
		{domain + "queue", "Pod", "label, then annotation", "The queue, by its full path, or by its name if it is right below root. Rule `provided` reads it."},
		{"queue", "Pod", "label", "The same, in older manifests and from most operators."},
		{domain + "app-id", "Pod", "label, then annotation", "The application, a name that is unique in the namespace. The pods of an application are in one queue."},
		{"applicationId", "Pod", "label", "The same, in older manifests and from most operators."},
		{"spark-app-selector", "Pod", "label", "The same, as Spark itself writes it."},
		{domain + "user.info", "Pod", "annotation", "Whose pod it is, as JSON: `{\"user\":\"ann\",\"groups\":[\"dev\"]}`. Without it, and without the next one, the user is `nobody`."},
		{domain + "username", "Pod", "label", "The user, without groups, where the annotation is not there. Deprecated by YuniKorn; alone it is refused by the [admission policies](install.md#who-may-say-whose-pod-it-is)."},
		{domain + "allow-preemption", "Pod", "annotation, then label", "`\"false\"` asks to be preempted last, `\"true\"` takes that back where the PriorityClass says so. Not read with `podOptOut: Ignore`."},
		{domain + "allow-preemption", "PriorityClass", "annotation", "`\"false\"`: pods of this class are preempted only where no other lawful choice exists (law 1)."},
		{domain + "task-groups", "Pod", "annotation", "The groups of a gang, as JSON. See [gangs](from-elsewhere.md#gangs-by-task-groups)."},
		{domain + "task-group-name", "Pod", "annotation", "The group of the pod in a gang."},
		{domain + "schedulingPolicyParameters", "Pod", "annotation", "Words such as `gangSchedulingStyle=Soft`. The others are YuniKorn's and have no effect."},
		{domain + "namespace.quota", "Namespace", "annotation", "The max of the queue that is made for the namespace, as JSON: `{\"cpu\":\"10\",\"memory\":\"64Gi\"}`. It and the next three are not heeded by queues of queues.yaml."},
		{domain + "namespace.guaranteed", "Namespace", "annotation", "What that queue is guaranteed, as JSON."},
		{domain + "namespace.maxApps", "Namespace", "annotation", "The most applications that run in that queue."},
		{domain + "namespace.max.cpu", "Namespace", "annotation", "Cpu of the max, where `namespace.quota` is not there. Deprecated by YuniKorn."},
		{domain + "namespace.max.memory", "Namespace", "annotation", "Memory of the max, likewise."},
		{domain + "parentqueue", "Namespace", "annotation", "The queue below which that of the namespace is to be; a rule `tag` with value `namespace.parentqueue` reads it."},
		{domain + "namespace.enableYuniKorn", "Namespace", "annotation", "`\"true\"`: the admission policies of [install](install.md#scheduler-name-and-user-by-namespace) fill in scheduler name and user. The scheduler does not read it."},
		{"paddock.io/only-queue", "Namespace", "annotation", "The queue, in full, that pods of the namespace name, or one below it: [an admission policy](install.md#one-namespace-one-queue) refuses others. The scheduler does not read it."},
		{informer.OriginatorAnnotation, "Pod", "annotation", "`\"true\"`: the pod is an originator of its application, such as a driver or master, and is preempted after pods that are none; `\"false\"`: it is none, whatever its role and age. See [which plan](laws.md#which-plan)."},
	}
	for _, r := range informer.Roles {
		marks = append(marks, Mark{r.Label, "Pod", "label", fmt.Sprintf("`%s` makes the pod an originator (%s), where no pod of the application has the annotation with `\"true\"`.", r.Value, r.Of)})
	}
	return append(marks, Mark{informer.Coordinator, "Pod", "label", "Makes the pod whose `spec.hostname` it begins with an originator, likewise (JobSet: coordinator)."})
}

// Conditions are the pod conditions that the scheduler writes.
func Conditions() []Mark {
	return []Mark{
		{"paddock.io/Admitted", "Pod", "condition", "False while the pod waits for a quota, its turn, or a queue; the reason is a code of [reasons](reasons.md)."},
		{"paddock.io/NodeHeld", "Pod", "condition", "True while a node is held for the pod. Its message is how the scheduler finds its holds again after a restart: do not edit it."},
	}
}
