// Smoke starts a control plane with simulated nodes and checks with hand-made pods that
// the nodes work: no scheduler is involved. It prints its checks, with times and memory,
// and fails at the first mismatch.
//
//	go build -o bin/ ./cmd/localplane && go run ./internal/localcluster/smoke --dir /some/empty/dir --nodes 20
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
)

func main() {
	dir := flag.String("dir", "", "state directory (required)")
	binary := flag.String("binary", "bin/localplane", "the localplane binary")
	nodes := flag.Int("nodes", 20, "number of nodes")
	lease := flag.Duration("lease", 4*time.Second, "lease duration of nodes; use minutes for a thousand nodes")
	pods := flag.Int("pods", 200, "number of pods for the load check")
	hold := flag.Bool("hold", false, "leave the cluster running, without a scheduler, until Ctrl-C")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir, *binary, *nodes, *pods, *lease, *hold); err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1)
	}
}

const silentStep = "node silent and recovered"

// smoke is one run.
type smoke struct {
	*localcluster.Cluster
	nodes int
}

func run(ctx context.Context, dir, binary string, nodes, pods int, lease time.Duration, hold bool) (err error) {
	began := time.Now()
	cluster, err := localcluster.Start(ctx, localcluster.Options{Dir: dir, Binary: binary, Nodes: nodes, LeaseDuration: lease, Progress: func(s string) { fmt.Println("  " + s) }})
	if err != nil {
		return err
	}
	defer func() {
		if stopErr := cluster.Stop(); err == nil {
			err = stopErr
		}
	}()
	s := smoke{cluster, nodes}
	fmt.Printf("up with %d nodes: %v\n", nodes, time.Since(began).Round(10*time.Millisecond))
	s.memory()
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"load", func(ctx context.Context) error { return s.load(ctx, pods) }},
		{"overcommit is refused", s.overcommit},
		{"grace period is used up", s.grace},
		{"job completes", s.job},
		{"node not ready and recovered", s.notReady},
		{silentStep, s.silent},
		{"killed node agent", s.killAgent},
		{"killed API server", s.killAPIServer},
	}
	for _, step := range steps {
		if step.name == silentStep && lease > time.Minute {
			fmt.Printf("left out: %s, as it would take %v\n", step.name, lease)
			continue
		}
		t := time.Now()
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("ok %-28s %v\n", step.name, time.Since(t).Round(10*time.Millisecond))
	}
	s.memory()
	if hold {
		fmt.Println("holding the cluster of", s.KubeconfigPath(localcluster.UserAdmin))
		<-ctx.Done()
	}
	return nil
}

// memory prints the resident memory of every component, if there is a /proc.
func (s smoke) memory() {
	for _, name := range []string{localcluster.Etcd, localcluster.APIServer, localcluster.ControllerManager, localcluster.Nodes} {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.Process(name).PID()))
		if err != nil {
			return
		}
		for line := range strings.Lines(string(status)) {
			if strings.HasPrefix(line, "VmRSS:") {
				fmt.Printf("  %-24s %s\n", name, strings.Join(strings.Fields(line)[1:], " "))
			}
		}
	}
}

func pod(name, node, cpu string) *corev1.Pod {
	grace := int64(2)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Annotations: map[string]string{}},
		Spec: corev1.PodSpec{NodeName: node, TerminationGracePeriodSeconds: &grace, Containers: []corev1.Container{{
			Name: "main", Image: "none", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}},
	}
}

func (s smoke) create(ctx context.Context, p *corev1.Pod) error {
	_, err := s.Client().CoreV1().Pods("default").Create(ctx, p, metav1.CreateOptions{})
	return err
}

// until polls, for at most two minutes, and names its condition when it gives up.
func until(ctx context.Context, what string, check func() (bool, error)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, fmt.Errorf("waited in vain: %s", what))
	defer cancel()
	for {
		ok, err := check()
		if ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s smoke) untilPod(ctx context.Context, name, what string, check func(*corev1.Pod) bool) error {
	return until(ctx, "pod "+name+": "+what, func() (bool, error) {
		p, err := s.Client().CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return check(p), nil
	})
}

func phase(want corev1.PodPhase) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Status.Phase == want }
}

func ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (s smoke) node(i int) string { return localcluster.NodeSpec{}.Name(i % s.nodes) }

func (s smoke) load(ctx context.Context, pods int) error {
	for i := range pods {
		if err := s.create(ctx, pod(fmt.Sprintf("load-%d", i), s.node(i), "100m")); err != nil {
			return err
		}
	}
	return until(ctx, "load pods running", func() (bool, error) {
		stats, err := s.NodeStats(ctx)
		if err != nil || stats.Admitted < pods {
			return false, err
		}
		list, err := s.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running", ResourceVersion: "0"})
		return err == nil && len(list.Items) >= pods, err
	})
}

func (s smoke) overcommit(ctx context.Context) error {
	if err := s.create(ctx, pod("too-big", s.node(0), "8")); err != nil {
		return err
	}
	if err := s.untilPod(ctx, "too-big", "refused", phase(corev1.PodFailed)); err != nil {
		return err
	}
	p, err := s.Client().CoreV1().Pods("default").Get(ctx, "too-big", metav1.GetOptions{})
	if err != nil {
		return err
	}
	stats, err := s.NodeStats(ctx)
	if err != nil {
		return err
	}
	if p.Status.Reason != "OutOfcpu" || stats.Rejections["OutOfcpu"] != 1 {
		return fmt.Errorf("reason %q, counted %v", p.Status.Reason, stats.Rejections)
	}
	fmt.Println("  " + p.Status.Message)
	return nil
}

func (s smoke) grace(ctx context.Context) error {
	t := time.Now()
	if err := s.Client().CoreV1().Pods("default").Delete(ctx, "load-0", metav1.DeleteOptions{}); err != nil {
		return err
	}
	err := until(ctx, "deleted pod gone", func() (bool, error) {
		list, err := s.Client().CoreV1().Pods("default").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=load-0"})
		return err == nil && len(list.Items) == 0, err
	})
	if took := time.Since(t); err == nil && (took < 2*time.Second || took > 4*time.Second) {
		return fmt.Errorf("a pod with 2 s of grace was gone after %v", took)
	}
	return err
}

func (s smoke) job(ctx context.Context) error {
	three := int32(3)
	p := pod("", s.node(1), "10m")
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "job"}, Spec: batchv1.JobSpec{
		Completions: &three, Parallelism: &three,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{nodeagent.AnnotationCompleteAfter: "500ms"}}, Spec: p.Spec},
	}}
	if _, err := s.Client().BatchV1().Jobs("default").Create(ctx, job, metav1.CreateOptions{}); err != nil {
		return err
	}
	return until(ctx, "job complete", func() (bool, error) {
		j, err := s.Client().BatchV1().Jobs("default").Get(ctx, "job", metav1.GetOptions{})
		return err == nil && j.Status.Succeeded == 3 && j.Status.CompletionTime != nil, err
	})
}

func (s smoke) notReady(ctx context.Context) error {
	name := s.node(1)
	if err := s.FailNode(ctx, name, nodeagent.FailNotReady); err != nil {
		return err
	}
	if err := s.untilNode(ctx, name, "tainted", func(n *corev1.Node) bool { return len(n.Spec.Taints) > 0 }); err != nil {
		return err
	}
	if err := s.RecoverNode(ctx, name); err != nil {
		return err
	}
	return s.AwaitNodes(ctx, name)
}

func (s smoke) silent(ctx context.Context) error {
	name := s.node(1)
	if err := s.FailNode(ctx, name, nodeagent.FailSilent); err != nil {
		return err
	}
	if err := s.untilPod(ctx, "load-1", "not ready on a silent node", func(p *corev1.Pod) bool { return !ready(p) }); err != nil {
		return err
	}
	if err := s.RecoverNode(ctx, name); err != nil {
		return err
	}
	if err := s.AwaitNodes(ctx, name); err != nil {
		return err
	}
	return s.untilPod(ctx, "load-1", "ready again", ready)
}

func (s smoke) untilNode(ctx context.Context, name, what string, check func(*corev1.Node) bool) error {
	return until(ctx, "node "+name+": "+what, func() (bool, error) {
		n, err := s.Client().CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		return err == nil && check(n), err
	})
}

func (s smoke) killAgent(ctx context.Context) error {
	before, err := s.NodeStats(ctx)
	if err != nil {
		return err
	}
	if err := s.KillComponent(localcluster.Nodes); err != nil {
		return err
	}
	if err := s.StartNodes(ctx); err != nil {
		return err
	}
	after, err := s.NodeStats(ctx)
	if err != nil {
		return err
	}
	if after.Admitted != before.Admitted || after.Rejected() != 0 {
		return fmt.Errorf("before the restart %+v, after it %+v", before, after)
	}
	return nil
}

func (s smoke) killAPIServer(ctx context.Context) error {
	if err := s.KillComponent(localcluster.APIServer); err != nil {
		return err
	}
	if err := s.StartComponent(ctx, localcluster.APIServer); err != nil {
		return err
	}
	if err := s.create(ctx, pod("after-restart", s.node(2), "10m")); err != nil {
		return err
	}
	return s.untilPod(ctx, "after-restart", "running", phase(corev1.PodRunning))
}
