package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/rest"
)

const takesBack = `
partitions:
- name: default
  placementrules: [{name: provided}]
  queues:
  - name: root
    submitacl: '*'
    queues:
    - {name: a, resources: {guaranteed: {vcore: 4}}, properties: {preemption.delay: 1s}}
    - {name: b, resources: {guaranteed: {vcore: 1}}}
`

// TestAFindingOfTheAuditors: after the store loses a pod, the health check reports it.
func TestAFindingOfTheAuditors(t *testing.T) {
	h := plugintest.New(t, plugintest.Queues(takesBack), nodeOf("n1", "4"))
	args := plugintest.Args()
	*args.RESTAddress = expect.Get(localcluster.FreeAddress())(t)
	p := configured(t, h, args)
	runs := plugintest.On(podOf("v1", "root.b"), "n1")
	h.Create(t, runs)
	start(t, h, p)
	wantFinding(t, *args.RESTAddress, "")
	p.Store().Delete(runs.UID, p.Clock.Now()) // the API server still has the pod
	wantFinding(t, *args.RESTAddress, "Pods: pod ns/v1: the store does not know it")
}

func nodeOf(name, cpu string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("9"),
		}},
	}
}

func podOf(name, queue string) *corev1.Pod {
	p := plugintest.Pod(name, 2000)
	p.Labels = map[string]string{"queue": queue, "applicationId": queue}
	p.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
	return p
}

// wantFinding waits until the health check has one finding that begins with a text, or none
// at all for an empty text. The next check or the one after it says so.
func wantFinding(t *testing.T, address, want string) {
	t.Helper()
	plugintest.Eventually(t, func() error {
		answer, err := http.Get("http://" + address + "/ws/v1/scheduler/healthcheck")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		var got rest.Health
		if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
			return err
		}
		var wrong []string
		for _, c := range got.HealthChecks {
			if !c.Succeeded {
				wrong = append(wrong, c.Name+": "+c.DiagnosisMessage)
			}
		}
		all, none := strings.Join(wrong, "\n"), want == ""
		found := len(wrong) < 2 && strings.HasPrefix(all, want) && (all == "") == none
		if !found || got.Healthy != none || len(got.HealthChecks) != 4 {
			return fmt.Errorf("healthy %v with %d checks: %s", got.Healthy, len(got.HealthChecks), all)
		}
		return nil
	})
}
