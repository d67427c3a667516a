package process

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/paddock-scheduler/paddock/pkg/plugins/internal/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/rest"
	"github.com/paddock-scheduler/paddock/pkg/victims"
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

// TestAFindingOfTheAuditors goes the whole way, from what is wrong to the health
// check and the metrics: a pod is deleted for another one, which then starts on
// another node than the one that was made free, and the books lose a pod.
func TestAFindingOfTheAuditors(t *testing.T) {
	h := plugintest.New(t, plugintest.Queues(takesBack), nodeOf("n1", "4"), nodeOf("n2", "2"))
	args := plugintest.Args()
	args.RESTAddress = freeAddress(t)
	p := configured(t, h, args)
	v1, v2, v3 := plugintest.On(podOf("v1", "root.b"), "n1"), plugintest.On(podOf("v2", "root.b"), "n1"), plugintest.On(podOf("v3", "root.b"), "n2")
	asker := podOf("asker", "root.a")
	h.Create(t, v1, v2, v3, asker)
	h.Start(t)
	waitStarted(t, p)
	before := found(t, "hold")
	wantChecks(t, args.RESTAddress)

	held := takeBack(t, p, asker)
	other, stays := "n1", v1
	if held == "n1" {
		other, stays = "n2", v3
	}
	bound := plugintest.On(asker.DeepCopy(), other)
	_, err := h.Client.CoreV1().Pods("ns").Update(h.Context(), bound, metav1.UpdateOptions{})
	must(t, err)
	plugintest.Eventually(t, func() error {
		if got := found(t, "hold"); got != before+1 {
			return fmt.Errorf("%v violations are counted, %v before", got, before)
		}
		return nil
	})
	p.Store().Delete(stays.UID, p.Clock.Now()) // which the API server did not say
	wantChecks(t, args.RESTAddress, "Laws: 1 violations in 1 decisions that were carried out since the start", "Pods: pod ns/"+stays.Name+": the store does not know it")
	if log := h.Log(); !strings.Contains(log, "A decision was carried out that breaks a law") {
		t.Error("nothing is logged")
	}
}

// takeBack has the pod preempt another one, and returns the node once that is gone.
func takeBack(t *testing.T, p *Process, asker *corev1.Pod) string {
	t.Helper()
	s, node := p.Store(), ""
	plugintest.Eventually(t, func() error {
		attempt, why := s.Attempt(asker.UID, "", nil, p.Clock.Now())
		if attempt == nil {
			return fmt.Errorf("no attempt: %v", why)
		}
		d := victims.Plan(attempt.World, attempt.Ask, victims.Params{})
		if why := s.Claim(asker.UID, &d, p.Clock.Now()); !why.None() {
			return fmt.Errorf("no claim: %v", why)
		}
		return nil
	})
	plugintest.Eventually(t, func() error {
		hold, ok := s.Holds().Of(asker.UID)
		if node = hold.Node; !ok || !hold.Binding() || !hold.Clear() {
			return fmt.Errorf("the hold is %v, %+v", ok, hold)
		}
		return nil
	})
	return node
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

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	must(t, l.Close())
	return l.Addr().String()
}

// found is how many violations of a law are counted.
func found(t *testing.T, law string) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	must(t, err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "paddock_law_violations_total" && m.GetLabel()[0].GetValue() == law {
				return m.GetCounter().GetValue()
			}
		}
	}
	t.Fatalf("violations of law %s are not counted", law)
	return 0
}

// checkPatience is how long the next check, or the one after it, is waited for.
const checkPatience = 2 * time.Minute

// wantChecks waits until the health check finds what begins like this, and nothing else.
func wantChecks(t *testing.T, address string, want ...string) {
	t.Helper()
	plugintest.Within(t, checkPatience, func() error {
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
		all := strings.Join(wrong, "\n")
		for _, w := range want {
			if !strings.Contains(all, w) {
				return fmt.Errorf("%q is not found: %s", w, all)
			}
		}
		if len(wrong) > len(want) || got.Healthy != (len(want) == 0) || len(got.HealthChecks) != 4 {
			return fmt.Errorf("healthy %v with %d checks: %s", got.Healthy, len(got.HealthChecks), all)
		}
		return nil
	})
}
