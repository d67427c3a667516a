package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
)

const operatorQueues = `
partitions:
- name: default
  queues:
  - name: root
    submitacl: "*"
    queues:
    - name: spark
      queues:
      - name: etl
    - name: ray
    - name: flink
`

// wantedPod is the expected queue, application and user of a pod of testdata/operators.
type wantedPod struct{ Pod, Queue, Application, User, Gang string }

// operatorPods reads a file of testdata/operators and adapts its pods to a cluster
// without the operators and their objects.
func (e *env) operatorPods(file string) map[string]*corev1.Pod {
	e.Helper()
	text, err := os.ReadFile("testdata/operators/" + file)
	e.ok(err)
	out := map[string]*corev1.Pod{}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		p := &corev1.Pod{}
		e.ok(yaml.UnmarshalStrict(document, p))
		grace := int64(0)
		p.Namespace, p.Spec.ServiceAccountName, p.Spec.TerminationGracePeriodSeconds = e.ns, "", &grace
		p.Spec.NodeSelector = map[string]string{pool: e.nodePool}
		p.OwnerReferences = nil // or the garbage collector deletes pods with an owner that it cannot find
		p.Labels[label], p.Labels[group] = e.id, file
		out[p.Name] = p
	}
	return out
}

// awaitApplication waits until REST shows an application in a queue, with a user
// and so many pods.
func (e *env) awaitApplication(w wantedPod, pods int) {
	e.Helper()
	url := fmt.Sprintf("http://%s/ws/v1/partition/default/queue/%s/applications", e.rest, w.Queue)
	eventually(e, patience, fmt.Sprintf("application %s of user %s in %s has %d pods", w.Application, w.User, w.Queue, pods), func() (bool, string) {
		body, err := fetch(e.Context(), http.DefaultClient, url)
		if err != nil {
			return false, err.Error()
		}
		var list []struct {
			ApplicationID, QueueName, User string
			Allocations                    []any
		}
		e.ok(json.Unmarshal(body, &list))
		for _, a := range list {
			if a.ApplicationID == w.Application && a.QueueName == w.Queue && a.User == w.User && len(a.Allocations) == pods {
				return true, ""
			}
		}
		return false, string(body)
	})
}

// TestOperators runs pods as operators make them for YuniKorn, unchanged: they are in the
// right queue and application and have the right user. Gangs are Soft there: their pods
// run as ordinary ones, and an event says so.
func TestOperators(t *testing.T) {
	e := setup(t, operatorQueues)
	var wanted map[string][]wantedPod
	text, err := os.ReadFile("testdata/operators/wanted.yaml")
	e.ok(err)
	e.ok(yaml.UnmarshalStrict(text, &wanted))
	for file, wants := range wanted {
		e.run(file, func(e *env) {
			pods := e.operatorPods(file)
			driver := e.createPod(pods[wants[0].Pod])
			e.awaitRunning(driver)
			for _, w := range wants[1:] {
				e.createPod(pods[w.Pod])
			}
			e.expect(file, len(wants), 0, "")
			e.awaitApplication(wants[0], len(wants))
			if wants[0].Gang == "soft" {
				e.awaitEvent(driver, string(reasons.SoftGangIgnored), wants[0].Application)
			}
		})
	}
	e.run("hard", (*env).refusesHardGang)
}

// refusesHardGang: a driver that asks for a Hard gang, and executors that do not name a
// style, wait with the reason; none of them runs until the driver asks for Soft.
func (e *env) refusesHardGang() {
	e.Helper()
	const file = "spark-operator.yaml"
	pods := e.operatorPods(file)
	create := func(name string, changes ...podOption) *corev1.Pod {
		p := pods[name].DeepCopy()
		p.Name, p.Labels[group], p.Labels[placement.KeySparkSelector] = "hard-"+name, "hard", "spark-hard"
		for _, change := range changes {
			change(p)
		}
		return e.createPod(p)
	}
	driver := create("pi-driver", annotated(placement.KeyPolicyParameters, "gangSchedulingStyle=Hard"))
	executor := create("pi-exec-1")
	for _, p := range []*corev1.Pod{driver, executor} {
		e.Log(e.awaitRefused(p, reasons.HardGangUnsupported))
		e.awaitEvent(p, string(reasons.HardGangUnsupported), "gangSchedulingStyle=Hard")
	}
	e.expectStill("hard", 0, 2, reasons.HardGangUnsupported)
	e.patch(driver, fmt.Sprintf(`{"metadata":{"annotations":{%q:"gangSchedulingStyle=Soft"}}}`, placement.KeyPolicyParameters))
	e.expect("hard", 2, 0, "")
}
