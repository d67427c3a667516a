package plugintest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/paddock-scheduler/paddock/apis/config"
	"github.com/paddock-scheduler/paddock/internal/expect"
	queuesconfig "github.com/paddock-scheduler/paddock/pkg/queues/config"
)

const (
	// Profile is the managed profile.
	Profile = "yunikorn"
	// Namespace is where the ConfigMaps are.
	Namespace = "yunikorn"
)

// Args are arguments of QueueSort without REST, for the ConfigMaps of Namespace.
func Args() *config.QueueSortArgs {
	args := &config.QueueSortArgs{
		ConfigNamespace: Namespace, Window: new(int32(64)), RESTAddress: new(""), DaemonSetOwner: config.DaemonSetOwnerClaimed,
		MaxDynamicQueues: new(int32(0)), MaxDynamicQueuesPerNamespace: new(int32(0)),
	}
	args.SetDefaults()
	return args
}

// Queues is the ConfigMap with the document.
func Queues(document string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: queuesconfig.QueuesConfigMap, UID: "queues"},
		Data:       map[string]string{"queues.yaml": document},
	}
}

// Document is a configuration with the leaf root.a and its max, such as
// "{vcore: 2}"; pods name it in label queue.
func Document(limit string) string {
	return "partitions:\n- name: default\n  placementrules: [{name: provided}]\n  queues:\n  - name: root\n    submitacl: '*'\n" +
		"    queues:\n    - {name: a, resources: {max: " + limit + "}}\n"
}

// Pod is a pod of queue root.a that requests the number of milli-CPU. Its UID
// is "uid-" and its name.
func Pod(name string, milliCPU int64) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID("uid-" + name),
			Labels: map[string]string{"queue": "root.a", "applicationId": "app"},
		},
		Spec: corev1.PodSpec{
			SchedulerName: Profile,
			Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
			}}}},
		},
	}
}

// Foreign makes a pod one of profile default-scheduler.
func Foreign(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.SchedulerName = "default-scheduler"
	return pod
}

// On puts a pod on a node.
func On(pod *corev1.Pod, node string) *corev1.Pod {
	pod.Spec.NodeName = node
	return pod
}

// Daemon makes a pod one of DaemonSet d, whose UID is d, for a node.
func Daemon(pod *corev1.Pod, node string) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: new(true)}}
	return Requiring(pod, node)
}

// Requiring gives a pod the node affinity that the DaemonSet controller writes.
func Requiring(pod *corev1.Pod, node string) *corev1.Pod {
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
		}}},
	}}
	return pod
}

// WantRefused checks that a plugin is not made: for no arguments, for an object of
// another type, and for arguments with bad fields, which are all named.
func WantRefused(
	t *testing.T, name string, factory frameworkruntime.PluginFactory, bad runtime.Object, fields ...string,
) {
	t.Helper()
	h := New(t)
	for _, c := range []struct {
		args runtime.Object
		want []string
	}{
		{nil, []string{"arguments are <nil>, want " + name + "Args"}},
		{&corev1.Pod{}, []string{"Pod, want " + name + "Args"}},
		{bad, fields},
	} {
		plugin, err := factory(h.Context(), c.args, h)
		if plugin != nil {
			t.Errorf("plugin %v is made, want %q", plugin, c.want)
		}
		for _, part := range append(c.want, "plugin "+name+": ") {
			expect.Fails(t, err, part)
		}
	}
}

// WantStatus checks a status: its code, and that its message contains the text; a message
// is an error if the text is empty.
func WantStatus(t *testing.T, what string, got *fwk.Status, code fwk.Code, text string) {
	t.Helper()
	if got.Code() != code || !strings.Contains(got.Message(), text) || (text == "" && got.Message() != "") {
		t.Errorf("%s: %s %q, want %s %q", what, got.Code(), got.Message(), code, text)
	}
}
