package informer

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/store"
)

const fuzzedQueues = `
partitions:
- name: default
  placementrules:
  - {name: provided, create: true}
  - {name: tag, value: namespace, create: true}
  queues:
  - name: root
    submitacl: "*"
    queues:
    - {name: theirs}
    - {name: a, resources: {guaranteed: {vcore: 2, nvidia.com/gpu: 1}, max: {vcore: 4, memory: 8Gi}}}
    - {name: parent, parent: true, limits: [{limit: all, users: ["*"], maxapplications: 1, maxresources: {vcore: 2}}]}
`

var fuzzedPods = []struct{ pod, annotations string }{
	{`{metadata: {name: p, namespace: ns, uid: u, labels: {queue: root.a, applicationId: x}}, spec: {schedulerName: yunikorn, containers: [{name: c, resources: {requests: {cpu: 1, memory: 1Gi}}}]}}`, "{}"},
	{`{metadata: {name: p, uid: u, annotations: {yunikorn.apache.org/user.info: '{"user":"joe","groups":["dev"]}', yunikorn.apache.org/task-groups: '[{"name":"g","minMember":3}]', yunikorn.apache.org/task-group-name: g, yunikorn.apache.org/allow-preemption: "false", yunikorn.apache.org/username: mary}}, spec: {schedulerName: yunikorn, nodeName: n1, priority: 2147483647, containers: [{name: c, resources: {requests: {cpu: "-1", memory: 9e18, pods: 7}}}]}}`, `{yunikorn.apache.org/namespace.quota: '{"cpu": "10", "memory": "-1"}', yunikorn.apache.org/namespace.max.cpu: x}`},
	{`{metadata: {name: d, uid: u, ownerReferences: [{kind: DaemonSet, apiVersion: apps/v1, name: d, uid: d, controller: true}]}, spec: {schedulerName: yunikorn, preemptionPolicy: Never, overhead: {cpu: 1m}, affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [n1]}]}]}}}, initContainers: [{name: i, restartPolicy: Always, resources: {requests: {nvidia.com/gpu: 8}}}]}}`, "{}"},
	{`{metadata: {name: f, uid: u, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {schedulerName: default-scheduler, nodeName: gone, resources: {requests: {cpu: 3}}}, status: {phase: Running, conditions: [{type: paddock.io/NodeHeld, status: "True", message: '{"node":"n1","victims":["u"]}'}]}}`, "null"},
	{`{metadata: {name: "", uid: "", labels: {queue: root.parent.new}}, spec: {schedulerName: yunikorn, schedulingGates: [{name: g}]}, status: {phase: Failed}}`, `{yunikorn.apache.org/namespace.maxApplications: "-7"}`},
}

// FuzzPod passes a store a pod, and the annotations of its namespace, with arbitrary,
// possibly malicious content, in every state of a pod's life. The invariants hold at all
// times, a waiting pod has a reason, and nothing remains of a pod that is gone.
func FuzzPod(f *testing.F) {
	for _, seed := range fuzzedPods {
		f.Add([]byte(seed.pod), []byte(seed.annotations))
	}
	spec := expect.Get(config.Parse([]byte(fuzzedQueues)))(f)
	o := Options{ManagedProfiles: []string{"yunikorn"}, Peer: func(profile string) bool { return profile == "default-scheduler" }}
	f.Fuzz(func(t *testing.T, manifest, annotated []byte) {
		var pod corev1.Pod
		var annotations map[string]string
		if yaml.Unmarshal(manifest, &pod) != nil || yaml.Unmarshal(annotated, &annotations) != nil || pod.UID == "theirs" {
			return
		}
		s := store.New(spec, store.Options{})
		for _, wrong := range live(s, o.Translate(&pod), annotations, func(string) {}) {
			t.Error(wrong)
		}
	})
}

// TestWrongBooksAreNoticed plants what FuzzPod must find: broken invariants while the pod
// exists, and data that remains after it.
func TestWrongBooksAreNoticed(t *testing.T) {
	spec := expect.Get(config.Parse([]byte(fuzzedQueues)))(t)
	p := objects.Pod{Identity: objects.Identity{UID: "u", Namespace: "ns", Name: "p", Labels: map[string]string{"queue": "root.a", "applicationId": "x"}}, Request: resources.VectorOf(resources.Entry{Name: resources.Pods, Amount: 1})}
	for name, wrong := range map[string]struct {
		when   string
		plant  func(s *store.Store)
		expect string
	}{
		"books":     {"it waits", func(s *store.Store) { s.Snapshot().Root().Pending = p.Request.Add(p.Request).Add(p.Request) }, "books say"},
		"left over": {"it is gone", func(s *store.Store) { p := p; p.UID, p.Node = "u2", "n1"; s.Upsert(p, time.Time{}) }, "root has"},
	} {
		s := store.New(spec, store.Options{})
		found := live(s, p, nil, func(when string) {
			if when == wrong.when {
				wrong.plant(s)
			}
		})
		expect.That(t, slices.ContainsFunc(found, func(f string) bool { return strings.Contains(f, wrong.expect) }),
			"%s: not found: %q", name, found)
	}
}

// live runs a pod through creation, waiting, running, leaving and deletion, calls a function
// meanwhile, and returns what is wrong.
func live(s *store.Store, p objects.Pod, annotations map[string]string, beside func(string)) (wrong []string) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	right := func(when string) {
		s.TakeActivations()
		beside(when)
		if err := s.Check(); err != nil {
			wrong = append(wrong, when+": "+err.Error())
		}
	}
	s.UpsertNode("n1", resources.VectorOf(resources.Entry{Name: resources.CPU, Amount: 8000}, resources.Entry{Name: resources.Pods, Amount: 10}), now)
	s.Upsert(objects.Pod{
		Identity: objects.Identity{UID: "theirs", Namespace: "theirs", Name: "theirs", Created: now, Labels: map[string]string{"queue": "root.theirs", "applicationId": "theirs"}},
		Status:   objects.Status{Node: "n1"},
		Request:  resources.VectorOf(resources.Entry{Name: resources.CPU, Amount: 1000}, resources.Entry{Name: resources.Pods, Amount: 1}),
	}, now)
	s.Start(now)
	right("before")
	before := s.Snapshot().Root().Usage

	for _, err := range s.UpsertNamespace(p.Namespace, annotations, now) {
		if err.Error() == "" {
			wrong = append(wrong, "an annotation of the namespace is refused without a word")
		}
	}
	node := p.Node
	if p.Node = ""; !p.Foreign {
		s.Upsert(p, now)
		right("it waits")
		if why := s.Explain(p.UID); !why.None() && why.Text == "" {
			wrong = append(wrong, fmt.Sprintf("it waits, and the reason %s has no sentence", why.Code))
		}
	}
	for _, state := range []string{"n1", node, "no such node"} {
		if p.Node = state; !p.Foreign || p.Node != "" {
			s.Upsert(p, now)
			right("on node " + state)
		}
	}
	now = now.Add(time.Minute)
	s.Tick(now)
	right("a minute later")
	p.Deleting = true
	s.Upsert(p, now)
	right("it leaves")
	s.Delete(p.UID, now)
	right("it is gone")
	s.DeleteNamespace(p.Namespace, now)
	s.Tick(now.Add(time.Hour))
	right("an hour later")
	if after := s.Snapshot().Root().Usage; fmt.Sprint(after) != fmt.Sprint(before) {
		wrong = append(wrong, fmt.Sprintf("root has %+v, and had %+v before", after, before))
	}
	return wrong
}
