package app

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
)

// nominating is a scheduler that has nominated pods to every node.
type nominating struct {
	*plugintest.Handle
	pods []fwk.PodInfo
}

func (n nominating) NominatedPodsForNode(string) []fwk.PodInfo { return n.pods }

// TestNominationThatCannotBeRemoved: the log says so once the second attempt fails, and
// then once a minute.
func TestNominationThatCannotBeRemoved(t *testing.T) {
	pod := plugintest.Pod("p", 1)
	pod.Status.NominatedNodeName = "n1"
	h := plugintest.New(t, plugintest.Queues(plugintest.Document("{vcore: 1}")), pod, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
	h.Client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no role")
	})
	p := started(t, h)
	info := expect.Get(framework.NewPodInfo(pod))(t)
	core := h.SharedInformerFactory().Core().V1()
	n := &nominations{
		process: p, handle: nominating{h, []fwk.PodInfo{info}}, client: h.Client, store: p.Store(),
		pods: core.Pods().Lister(), nodes: core.Nodes().Lister(), logger: logger(h),
	}
	for check, want := range []int{0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2} {
		n.look(h.Context())
		if got := strings.Count(h.Log(), `A nomination cannot be taken back`); got != want {
			t.Fatalf("%d log lines after check %d, want %d:\n%s", got, check+1, want, h.Log())
		}
	}
	if log := h.Log(); !strings.Contains(log, "patch pods/status") || !strings.Contains(log, "no role") || !strings.Contains(log, `pod="ns/p"`) {
		t.Errorf("the log:\n%s", log)
	}
}
