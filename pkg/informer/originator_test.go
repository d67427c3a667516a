package informer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/pkg/store"
)

func TestOriginator(t *testing.T) {
	head := map[string]string{"ray.io/node-type": "head"}
	set := map[string]string{"jobset.sigs.k8s.io/coordinator": "train-head-0-0.train"}
	for _, c := range []struct {
		name       string
		annotation string
		labels     map[string]string
		host       string
		want       store.Originator
	}{
		{"nothing", "", nil, "", store.OriginatorUnsaid},
		{"the annotation", "true", nil, "", store.OriginatorYes},
		{"not by the annotation", "false", head, "", store.OriginatorNo},
		{"an annotation without meaning", "yes", head, "", store.OriginatorByRole},
		{"a head of Ray", "", head, "", store.OriginatorByRole},
		{"a worker of Ray", "", map[string]string{"ray.io/node-type": "worker"}, "", store.OriginatorUnsaid},
		{"a driver of Spark", "", map[string]string{"spark-role": "driver"}, "", store.OriginatorByRole},
		{"a launcher of MPI", "", map[string]string{"training.kubeflow.org/job-role": "launcher"}, "", store.OriginatorByRole},
		{"the chief of a TFJob", "", map[string]string{"training.kubeflow.org/replica-type": "chief"}, "", store.OriginatorByRole},
		{"a leader of a LeaderWorkerSet", "", map[string]string{"leaderworkerset.sigs.k8s.io/worker-index": "0"}, "", store.OriginatorByRole},
		{"a worker of a LeaderWorkerSet", "", map[string]string{"leaderworkerset.sigs.k8s.io/worker-index": "1"}, "", store.OriginatorUnsaid},
		{"the coordinator of a JobSet", "", set, "train-head-0-0", store.OriginatorByRole},
		{"another pod of a JobSet", "", set, "train-head-0-1", store.OriginatorUnsaid},
		{"a JobSet without a coordinator", "", nil, "train-head-0-0", store.OriginatorUnsaid},
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
