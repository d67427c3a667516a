package informer

import (
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
		{"a head of Ray", "", head, "", objects.OriginatorByRole},
		{"a worker of Ray", "", map[string]string{"ray.io/node-type": "worker"}, "", objects.OriginatorUnsaid},
		{"a driver of Spark", "", map[string]string{"spark-role": "driver"}, "", objects.OriginatorByRole},
		{"a launcher of MPI", "", map[string]string{"training.kubeflow.org/job-role": "launcher"}, "", objects.OriginatorByRole},
		{"the chief of a TFJob", "", map[string]string{"training.kubeflow.org/replica-type": "chief"}, "", objects.OriginatorByRole},
		{"a leader of a LeaderWorkerSet", "", map[string]string{"leaderworkerset.sigs.k8s.io/worker-index": "0"}, "", objects.OriginatorByRole},
		{"a worker of a LeaderWorkerSet", "", map[string]string{"leaderworkerset.sigs.k8s.io/worker-index": "1"}, "", objects.OriginatorUnsaid},
		{"the coordinator of a JobSet", "", set, "train-head-0-0", objects.OriginatorByRole},
		{"another pod of a JobSet", "", set, "train-head-0-1", objects.OriginatorUnsaid},
		{"a JobSet without a coordinator", "", nil, "train-head-0-0", objects.OriginatorUnsaid},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: c.labels}, Spec: corev1.PodSpec{Hostname: c.host}}
		if c.annotation != "" {
			pod.Annotations = map[string]string{OriginatorAnnotation: c.annotation}
		}
		if got := Translate(pod, RequestOptions{}).Originator; got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
