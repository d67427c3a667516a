package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// listed is a pod in the list of a node, as REST shows it.
type listed struct {
	AllocationKey  string            `json:"allocationKey"`
	AllocationTags map[string]string `json:"allocationTags"`
	Resource       map[string]int64  `json:"resource"`
	NodeID         string            `json:"nodeId"`
}

// listedNode is a node, as REST shows it. Zero values are left out there.
type listedNode struct {
	NodeID             string           `json:"nodeID"`
	Capacity           map[string]int64 `json:"capacity"`
	Allocated          map[string]int64 `json:"allocated"`
	Occupied           map[string]int64 `json:"occupied"`
	Available          map[string]int64 `json:"available"`
	Allocations        []listed         `json:"allocations"`
	ForeignAllocations []listed         `json:"foreignAllocations"`
	SeedsName          []listed         `json:"foreign_allocations"`
}

// load is the usage of a node: by pods of queues, by others, and the remainder, and for
// each foreign pod its tag.
type load struct {
	Allocated, Occupied, Available map[string]int64
	Own                            int
	Foreign                        map[string]string
}

// loadOf reads a node out of a list. The two names of the list of foreign pods have the
// same content.
func (e *env) loadOf(nodes []listedNode, name string) load {
	e.Helper()
	for _, n := range nodes {
		if n.NodeID != name {
			continue
		}
		expect.Same(e, "foreignAllocations and foreign_allocations differ", n.ForeignAllocations, n.SeedsName)
		out := load{n.Allocated, n.Occupied, n.Available, len(n.Allocations), map[string]string{}}
		for _, f := range n.ForeignAllocations {
			if f.NodeID != name {
				e.Errorf("foreign pod %s is listed on %s and says %s", f.AllocationKey, name, f.NodeID)
			}
			out.Foreign[f.AllocationKey] = f.AllocationTags["foreign"]
		}
		return out
	}
	return load{}
}

// awaitLoad waits until a node in the list of nodes fulfils a condition, and then checks
// that the full state dump agrees.
func (e *env) awaitLoad(what, node string, want load) {
	e.Helper()
	read := func(page string, into any) {
		body := expect.Get(fetch(e.Context(), http.DefaultClient, "http://"+e.rest+"/ws/v1/"+page))(e)
		e.ok(json.Unmarshal(body, into))
	}
	eventually(e, patience, what+" (-want +listed)", func() (bool, string) {
		var nodes []listedNode
		read("partition/default/nodes", &nodes)
		diff := cmp.Diff(want, e.loadOf(nodes, node))
		return diff == "", diff
	})
	var dump struct {
		Nodes []struct{ NodesInfo []listedNode }
	}
	read("fullstatedump", &dump)
	if len(dump.Nodes) != 1 {
		e.Fatalf("the dump has nodes of %d partitions", len(dump.Nodes))
	}
	expect.Same(e, what+": the dump (-want +dumped)", want, e.loadOf(dump.Nodes[0].NodesInfo, node))
}

// foreignRecord is what the events of a node say of a foreign pod: the messages of its
// records of being added (change 2) and removed (change 3).
func (e *env) foreignRecord(p *corev1.Pod, node string, change int) (messages []string, cores int64) {
	e.Helper()
	body := expect.Get(fetch(e.Context(), http.DefaultClient, "http://"+e.rest+"/ws/v1/events/batch?count=10000"))(e)
	var batch struct {
		EventRecords []struct {
			Type              int    `json:"type"`
			ObjectID          string `json:"objectID"`
			ReferenceID       string `json:"referenceID"`
			Message           string `json:"message"`
			EventChangeType   int    `json:"eventChangeType"`
			EventChangeDetail int    `json:"eventChangeDetail"`
			Resource          struct {
				Resources map[string]struct{ Value int64 }
			} `json:"resource"`
		}
	}
	e.ok(json.Unmarshal(body, &batch))
	for _, r := range batch.EventRecords {
		if r.Type == 3 && r.EventChangeDetail == 303 && r.EventChangeType == change && r.ObjectID == node && r.ReferenceID == string(p.UID) {
			messages, cores = append(messages, r.Message), r.Resource.Resources["vcore"].Value
		}
	}
	return messages, cores
}

func (e *env) awaitForeignRecord(p *corev1.Pod, node string, change int, message string, cores int64) {
	e.Helper()
	eventually(e, patience, fmt.Sprintf("one record of change %d of pod %s, with %q and %d", change, p.Name, message, cores), func() (bool, string) {
		messages, amount := e.foreignRecord(p, node, change)
		return len(messages) == 1 && messages[0] == message && amount == cores, fmt.Sprintf("%q, %d", messages, amount)
	})
}

// mirror makes a pod the mirror pod of a node's static pod, as a kubelet does.
func (e *env) mirror(node string) podOption {
	e.Helper()
	n := expect.Get(suite.client.CoreV1().Nodes().Get(e.Context(), node, metav1.GetOptions{}))(e)
	yes := true
	return func(p *corev1.Pod) {
		p.Annotations[corev1.MirrorPodAnnotationKey] = "of-a-file"
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID, Controller: &yes}}
		p.Spec.NodeName = node
	}
}

// plainConfig is a scheduler without our plugins: the cluster's own.
const plainConfig = `
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
`

// startDefaultScheduler starts the cluster's own scheduler, beside that of the test.
func (e *env) startDefaultScheduler() {
	e.Helper()
	config := filepath.Join(e.TempDir(), "default.yaml")
	e.ok(os.WriteFile(config, []byte(plainConfig), 0o600))
	process := expect.Get(suite.cluster.StartScheduler(e.Context(), localcluster.SchedulerOptions{Name: "default-" + e.id, Binary: suite.scheduler, Config: config}))(e)
	e.Cleanup(func() { e.ok(process.Stop()) })
}

// resize changes the requests of a pod after its status has the present resources, as a
// real kubelet reports them, because the API server requires that.
func (e *env) resize(p *corev1.Pod, cores string) {
	e.Helper()
	pods, now := suite.client.CoreV1().Pods(p.Namespace), e.get(p)
	for i := range now.Status.ContainerStatuses {
		c := &now.Status.ContainerStatuses[i]
		has := now.Spec.Containers[0].Resources
		c.Resources, c.AllocatedResources = &has, has.Requests
	}
	now = expect.Get(pods.UpdateStatus(e.Context(), now, metav1.UpdateOptions{}))(e)
	now.Spec.Containers[0].Resources.Requests = amounts("cpu", cores)
	expect.Get(pods.UpdateResize(e.Context(), p.Name, now, metav1.UpdateOptions{}))(e)
}

// TestForeignPods follows foreign pods from before the start to their end: pods that
// existed before, one that names no scheduler and that the cluster's own scheduler
// places, its resize, and nodes that are as before when all are gone.
func TestForeignPods(t *testing.T) {
	var node string
	var static, bound *corev1.Pod
	e := setup(t, oneLeaf("100"), func(s *settings) {
		s.before = func(e *env) {
			node = e.useNodes(1, localcluster.NodeSpec{CPU: "8"})[0]
			static = e.createPod(e.pod("static", "static", ofProfile(""), e.mirror(node), requests("cpu", "500m")))
			bound = e.createPod(e.pod("bound", "bound", ofProfile("somebody-else"), func(p *corev1.Pod) { p.Spec.NodeName = node }))
		}
	})
	e.startDefaultScheduler()
	mine := e.createPod(e.pod("mine", "mine", inQueue("root.a")))
	e.awaitRunning(mine)

	var nodes []listedNode
	body := expect.Get(fetch(t.Context(), http.DefaultClient, "http://"+e.rest+"/ws/v1/partition/default/nodes"))(e)
	e.ok(json.Unmarshal(body, &nodes))
	var capacity map[string]int64
	for _, n := range nodes {
		if n.NodeID == node {
			capacity = n.Capacity
		}
	}
	// want is the node with so many foreign pods, which use so much.
	want := func(foreign map[string]string, cores int64) load {
		out := load{
			Allocated: map[string]int64{"pods": 1, "vcore": 1000}, Available: maps.Clone(capacity), Own: 1, Foreign: foreign,
		}
		out.Available["vcore"] -= 1000 + cores
		out.Available["pods"] -= 1 + int64(len(foreign))
		if cores > 0 {
			out.Occupied = map[string]int64{"pods": int64(len(foreign)), "vcore": cores}
		}
		return out
	}
	before := map[string]string{string(static.UID): "static", string(bound.UID): "default"}
	e.awaitLoad("those from before are there", node, want(before, 1500))
	late := e.createPod(e.pod("late", "late", ofProfile(""), e.mirror(node), requests("cpu", "500m")))
	before[string(late.UID)] = "static"
	e.awaitLoad("a static one came", node, want(before, 2000))
	e.awaitForeignRecord(late, node, 2, "foreign allocation: static", 500)
	// There are no new events for pods from before the start.
	if messages, _ := e.foreignRecord(static, node, 2); len(messages) > 0 {
		t.Errorf("of a pod from before there is %q", messages)
	}

	placed := e.createPod(e.pod("placed", "placed", ofProfile("")))
	if now := e.awaitRunning(placed); now.Spec.SchedulerName != corev1.DefaultSchedulerName || now.Spec.NodeName != node {
		t.Fatalf("the pod runs on %s by %s, want %s by %s", now.Spec.NodeName, now.Spec.SchedulerName, node, corev1.DefaultSchedulerName)
	}
	all := maps.Clone(before)
	all[string(placed.UID)] = "default"
	e.awaitLoad("one came", node, want(all, 3000))
	e.awaitForeignRecord(placed, node, 2, "foreign allocation: default", 1000)

	e.resize(placed, "3")
	e.awaitLoad("it was resized", node, want(all, 5000))

	e.delete(placed)
	e.awaitLoad("it went", node, want(before, 2000))
	e.awaitForeignRecord(placed, node, 3, "foreign allocation: default", 3000)
	e.delete(static)
	e.delete(bound)
	e.delete(late)
	e.awaitLoad("all went", node, want(map[string]string{}, 0))
	e.awaitForeignRecord(static, node, 3, "foreign allocation: static", 500)
	e.expectBooks()
	e.checkHealth(t.Context())
}
