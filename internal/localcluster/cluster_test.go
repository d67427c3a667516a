package localcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

// testCluster is a cluster on a fake API server that runs nothing.
func testCluster(t *testing.T, objects ...runtime.Object) *Cluster {
	t.Helper()
	o := expect.Get(Options{Dir: t.TempDir(), Binary: os.Args[0]}.withDefaults())(t)
	c := &Cluster{
		options: o, lock: expect.Get(takeDir(o.Dir))(t), ports: ports{1, 2, 3, 4, 5}, pki: &pki{dir: "/pki"},
		client: fake.NewClientset(objects...), died: make(chan *Process, 1), nextNode: map[string]int{},
	}
	t.Cleanup(func() { expect.Holds(t, c.Stop()) })
	return c
}

func child(name, role string) program {
	return program{name: name, binary: os.Args[0], env: []string{childVariable + "=" + role}}
}

// child starts a child in a role and waits until it says "ready" (or ends).
func (c *Cluster) child(t *testing.T, name, role string) *Process {
	t.Helper()
	p := expect.Get(c.launch(child(name, role)))(t)
	eventually(t, name+" is up", func() bool { return !p.Running() || strings.Contains(p.Tail(5), "ready") })
	return p
}

func TestStopEndsAllInReverseOrder(t *testing.T) {
	c := testCluster(t)
	ended := make(chan string, 3)
	for _, name := range []string{"first", "second", "third"} {
		p := c.child(t, name, "polite")
		go func() { <-p.done; ended <- p.name }()
	}
	expect.OK(t, c.Stop())
	order := []string{<-ended, <-ended, <-ended}
	// The listeners above may be late, but the first process ends long before the last.
	expect.That(t, order[0] != "first" && len(slices.Compact(slices.Sorted(slices.Values(order)))) == 3,
		"ended in the order %v", order)
	expect.Refused(c.launch(program{name: "late", binary: os.Args[0]}))(t, "the cluster is stopped")
	expect.Holds(t, expect.Get(takeDir(c.options.Dir))(t).Close())
}

func TestWaitReportsProcessesThatEndedByThemselves(t *testing.T) {
	c := testCluster(t)
	expect.OK(t, errors.Join(c.child(t, "stopped", "polite").Stop(), c.child(t, "killed", "stubborn").Kill()))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	expect.Holds(t, c.Wait(ctx))
	c.child(t, "dies", "broken")
	var e *DiedError
	err := c.Wait(context.Background())
	expect.That(t, errors.As(err, &e) && e.Name == "dies" && e.Tail == "cannot go on",
		"got %v, want the end of dies", err)
}

func TestNamesRunOnce(t *testing.T) {
	c := testCluster(t)
	p := c.child(t, "one", "polite")
	expect.Refused(c.launch(program{name: "one", binary: os.Args[0]}))(t, fmt.Sprintf("pid %d", p.PID()))
	expect.OK(t, p.Stop())
	again := c.child(t, "one", "polite")
	expect.That(t, c.Process("one") == again && again.Log() == p.Log(),
		"a component that has ended cannot be started again under its name")
}

// makeReady makes every new node Ready, as the agent would, except those with the prefix.
func makeReady(c *Cluster, except string) {
	c.client.(*fake.Clientset).PrependReactor("create", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		node := a.(clienttesting.CreateAction).GetObject().(*corev1.Node)
		if except == "" || !strings.HasPrefix(node.Name, except) {
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		}
		return false, nil, nil
	})
}

func TestAddNodes(t *testing.T) {
	c := testCluster(t)
	makeReady(c, "")
	ctx := context.Background()
	first := expect.Get(c.AddNodes(ctx, NodeSpec{}, 3))(t)
	second := expect.Get(c.AddNodes(ctx, NodeSpec{}, 1))(t)
	other := expect.Get(c.AddNodes(ctx, NodeSpec{NamePrefix: "gpu"}, 1))(t)
	want := []string{"node-0000", "node-0001", "node-0002", "node-0003", "gpu-0000"}
	expect.Same(t, "names", want, slices.Concat(first, second, other))
	nodes := expect.Get(c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}))(t)
	expect.Same(t, "nodes", 5, len(nodes.Items))
}

func TestAwaitNodesWaitsForReadyAndTaints(t *testing.T) {
	node := func(ready corev1.ConditionStatus, taints ...string) *corev1.Node {
		n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
		for _, key := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key})
		}
		return n
	}
	for n, want := range map[*corev1.Node]bool{
		node(corev1.ConditionTrue):                           true,
		node(corev1.ConditionTrue, "example.com/dedicated"):  true,
		node(corev1.ConditionFalse):                          false,
		node(corev1.ConditionTrue, corev1.TaintNodeNotReady): false,
		{}: false,
	} {
		expect.Same(t, fmt.Sprint("usable is a node with ", n.Status.Conditions, n.Spec.Taints), want, nodeUsable(n))
	}
	c := testCluster(t)
	makeReady(c, "node-0001")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err := c.AddNodes(ctx, NodeSpec{}, 2)
	expect.That(t, errors.Is(err, context.DeadlineExceeded), "got %v, want the end of patience", err)
	expect.Fails(t, err, "node-0001")
}

func TestAddNodesReportsTheCauseAndStops(t *testing.T) {
	c := testCluster(t)
	var calls atomic.Int32
	c.client.(*fake.Clientset).PrependReactor("create", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		calls.Add(1)
		return true, nil, errors.New("disk full")
	})
	expect.Refused(c.AddNodes(context.Background(), NodeSpec{}, 40))(t, "disk full")
	expect.That(t, calls.Load() <= 17, "%d nodes were tried after an error", calls.Load())
	expect.Refused(c.AddNodes(context.Background(), NodeSpec{CPU: "many"}, 1))(t, "cpu")
}
