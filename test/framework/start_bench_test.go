package framework_test

import (
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// The cluster of BenchmarkStart.
const (
	startNodes   = 5000
	startPerNode = 30
	// auditorsRound is longer than a whole round of the auditor with its pauses.
	auditorsRound = 90 * time.Second
)

// BenchmarkStart starts a scheduler for a large, busy cluster, and waits until it has
// bound one pod: ours with 4,950 queues and REST, and upstream's alone. It reports the
// time from the first list to the bind. It also reports the heap without the part of the
// test's API server: right after the bind, after a round of the auditor, and, for ours,
// after a request for all pods, applications and nodes, and two minutes after that.
func BenchmarkStart(b *testing.B) {
	for _, side := range []struct {
		name, profile string
		stock         bool
	}{{"ours", managed, false}, {"upstream", corev1.DefaultSchedulerName, true}} {
		b.Run(side.name, func(b *testing.B) {
			for b.Loop() {
				startLarge(b, side.profile, side.stock)
			}
		})
	}
}

func startLarge(b *testing.B, profile string, stock bool) {
	b.Helper()
	before, began := uint64(0), time.Time{}
	o := options{queues: pagedDocument(), stock: stock}
	if !stock {
		o.rest = expect.Get(localcluster.FreeAddress())(b)
	}
	asker := inQueue(lifelike(profile, "asker", startNodes*startPerNode), pagedQueue(1), "asker")
	o.before = func(c *cluster) {
		c.api.apart = true
		c.addNodes(startNodes, startPerNode+2)
		for i := range startNodes * startPerNode {
			p := inQueue(lifelike(profile, fmt.Sprintf("run-%06d", i), i), pagedQueue(i%2500), fmt.Sprintf("app-%d", i%5000))
			c.api.create(c.t, onNode(p, fmt.Sprintf("node-%03d", i%startNodes)))
		}
		c.api.create(c.t, asker)
		before, began = heap(), time.Now()
	}
	c := start(b, o)
	c.eventually("the pod is bound", func() bool { return c.bound(asker) })
	b.ReportMetric(time.Since(began).Seconds(), "s-to-first")
	time.Sleep(5 * time.Second) // the objects of the first list have been processed by then
	more := func() float64 { return float64(heap()-before) / (1 << 20) }
	b.ReportMetric(more(), "MiB")
	time.Sleep(auditorsRound)
	b.ReportMetric(more(), "MiB-audited")
	if !stock {
		for _, page := range []string{"/ws/v1/partition/default/applications/active", "/ws/v1/partition/default/nodes", "/waiting", "/nodes"} {
			ask(b, "http://"+o.rest+page)
		}
		b.ReportMetric(more(), "MiB-read")
		time.Sleep(2*time.Minute + 5*time.Second) // answers that are cached for the next request are gone by then
		b.ReportMetric(more(), "MiB-after")
	}
	c.stop()
	runtime.KeepAlive(c)
}

// heap is the memory in use after garbage collection.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // twice, because of finalizers and pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// lifelike is a pod as large as on real clusters, with the fields of its controller, the
// API server's defaults and the kubelet.
func lifelike(profile, name string, second int) *corev1.Pod {
	p := pod(profile, name, second)
	p.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name[:len(name)-2] + "-7d4b9c6f5d", UID: p.UID + "-owner",
		Controller: new(bool), BlockOwnerDeletion: new(bool),
	}}
	p.Labels["app.kubernetes.io/name"], p.Labels["pod-template-hash"] = "service-"+name[:5], "7d4b9c6f5d"
	p.Annotations = map[string]string{"kubectl.kubernetes.io/restartedAt": "2026-01-01T00:00:00Z", "prometheus.io/scrape": "true"}
	grace, seconds := int64(30), int64(300)
	p.Spec.ServiceAccountName, p.Spec.DNSPolicy, p.Spec.RestartPolicy = "default", corev1.DNSClusterFirst, corev1.RestartPolicyAlways
	p.Spec.TerminationGracePeriodSeconds, p.Spec.SecurityContext = &grace, &corev1.PodSecurityContext{}
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		p.Spec.Tolerations = append(p.Spec.Tolerations,
			corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
	}
	expires := int64(3607)
	p.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-x2x9z", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &expires, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
		},
	}}}}
	fillContainer(&p.Spec.Containers[0])
	p.Status = lifelikeStatus(name, p.CreationTimestamp)
	return p
}

func fillContainer(c *corev1.Container) {
	c.Image = "registry.example.com/team/service:v1.42.0"
	c.Args = []string{"--config=/etc/service/config.yaml", "--log-level=info"}
	for i := range 8 {
		c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SERVICE_SETTING_%d", i), Value: "a value of ordinary length"})
	}
	c.Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}}
	c.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")}
	c.Resources.Requests[corev1.ResourceMemory] = resource.MustParse("512Mi")
	c.VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-x2x9z", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
	c.LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz"}}, PeriodSeconds: 10}
	c.TerminationMessagePath, c.ImagePullPolicy = "/dev/termination-log", corev1.PullIfNotPresent
}

func lifelikeStatus(name string, at metav1.Time) corev1.PodStatus {
	s := corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable, HostIP: "10.0.0.1", PodIP: "10.128.0.1", StartTime: &at}
	if name == "asker" {
		return corev1.PodStatus{Phase: corev1.PodPending, QOSClass: corev1.PodQOSBurstable}
	}
	for _, kind := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	started := true
	s.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c", Ready: true, Started: &started, Image: "registry.example.com/team/service:v1.42.0",
		ImageID:     "registry.example.com/team/service@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
		ContainerID: "containerd://0123456789abcdef0123456789abcdef0123456789abcdef" + name,
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
	}}
	return s
}

const pagedParents, pagedLeaves = 50, 99

func pagedDocument() string {
	var y strings.Builder
	y.WriteString("partitions:\n- name: default\n  placementrules: [{name: provided}]\n  queues:\n  - name: root\n    submitacl: '*'\n    queues:\n")
	for i := range pagedParents {
		fmt.Fprintf(&y, "    - name: p%d\n      parent: true\n      queues:\n", i)
		for j := range pagedLeaves {
			limits := ""
			if i == 0 && j == 0 { // so that there is a group
				limits = ", limits: [{limit: staff, groups: [staff], maxresources: {vcore: 1000}}]"
			}
			fmt.Fprintf(&y, "      - {name: q%d, resources: {guaranteed: {vcore: 4}, max: {vcore: 1000}}%s}\n", j, limits)
		}
	}
	return y.String()
}

func pagedQueue(i int) string {
	return fmt.Sprintf("root.p%d.q%d", i%pagedParents, i/pagedParents%pagedLeaves)
}

// ask reads a whole answer, which is not compressed.
func ask(b *testing.B, url string) {
	b.Helper()
	request := expect.Get(http.NewRequestWithContext(b.Context(), http.MethodGet, url, http.NoBody))(b)
	request.Header.Set("Accept-Encoding", "identity")
	answer, err := http.DefaultClient.Do(request)
	expect.OK(b, err)
	defer func() { _ = answer.Body.Close() }()
	if size, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
		b.Fatalf("%s: %d, %d bytes, error %v", url, answer.StatusCode, size, err)
	}
}
