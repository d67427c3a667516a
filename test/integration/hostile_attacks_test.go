//go:build hostile

package integration

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/nodeagent"
	"github.com/paddock-scheduler/paddock/pkg/plugins/plugintest"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
)

func floods(options ...func(i int) podOption) func(*env, int) {
	return func(e *env, n int) { e.flood(n, options...) }
}

// flood makes n pods of the attacking tenant, each an application of its own, 100 a
// second if the API server keeps up.
func (e *env) flood(n int, options ...func(i int) podOption) { e.floodFrom(0, n, options...) }

func (e *env) floodFrom(first, n int, options ...func(i int) podOption) {
	e.inTurn(n, 10*time.Millisecond, func(i int) error { return e.createEvil(first+i, options...) })
}

// inTurn does n things, one each interval if at most eight are under way.
func (e *env) inTurn(n int, every time.Duration, do func(i int) error) {
	ticks := time.Tick(every)
	var doing sync.WaitGroup
	places := make(chan struct{}, 8)
	for i := range n {
		<-ticks
		places <- struct{}{}
		doing.Go(func() {
			defer func() { <-places }()
			expect.Holds(e, do(i))
		})
	}
	doing.Wait()
}

// oneEachSecond makes one pod a second.
func oneEachSecond(option func(i int) podOption) func(*env, int) {
	return func(e *env, n int) {
		e.inTurn(n, time.Second, func(i int) error { return e.createEvil(i, option) })
	}
}

func (e *env) createEvil(i int, options ...func(i int) podOption) error {
	name := evilName(i)
	p := e.pod(name, "evil", inQueue("root.evil"), requests("cpu", "10m"), func(p *corev1.Pod) { p.Labels[placement.KeyApplicationID] = name })
	for _, o := range options {
		o(i)(p)
	}
	_, err := suite.client.CoreV1().Pods(p.Namespace).Create(e.Context(), p, metav1.CreateOptions{})
	return err
}

func evilName(i int) string { return fmt.Sprintf("evil-%d", i) }

func ordinary(int) podOption { return func(*corev1.Pod) {} }

func nothing(*env, int) {}

func fitsNoNode(int) podOption { return requests("cpu", "100") }

// fitsNoNodeAlone is fitsNoNode with another request for each pod.
func fitsNoNodeAlone(i int) podOption { return requests("cpu", fmt.Sprint(100+i)) }

// inFlatQueue names as many queues as rules may make for a namespace.
func inFlatQueue(i int) podOption { return inQueue(fmt.Sprintf("root.flat-%d", i%100)) }

func ofOneApplication(int) podOption {
	return func(p *corev1.Pod) { p.Labels[placement.KeyApplicationID] = "one" }
}

// annotated pods are nearly as large as the API server allows annotations to be.
func annotated(int) podOption {
	return func(p *corev1.Pod) { p.Annotations["example.com/padding"] = strings.Repeat("x", 250_000) }
}

// foreign pods are of no queue. They show what the API server needs for pods of that size.
func foreign(int) podOption { return ofProfile(corev1.DefaultSchedulerName) }

// askerOption pods are of as many equivalence classes. None fits beside the pods of queue full, and
// the queue is below its guarantee as long as none runs.
func askerOption(i int) podOption {
	return func(p *corev1.Pod) {
		inQueue("root.asks")(p)
		requests("cpu", fmt.Sprintf("%dm", 2100+i))(p)
	}
}

// flipLabels changes queue and application of pods, of which half run and half fit no node.
func flipLabels(e *env, n int) {
	e.flood(n/2, ordinary)
	e.floodFrom(n/2, n-n/2, fitsNoNode)
	e.inTurn(3500, 4*time.Millisecond, func(i int) error {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:"root.evil%d",%q:"flip-%d"}}}`, placement.KeyQueue, i/n%2, placement.KeyApplicationID, i)
		_, err := suite.client.CoreV1().Pods(e.ns).Patch(e.Context(), evilName(i%n), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

func createAndDelete(e *env, n int) {
	e.inTurn(n, 10*time.Millisecond, func(i int) error {
		if err := e.createEvil(i); err != nil {
			return err
		}
		return suite.client.CoreV1().Pods(e.ns).Delete(e.Context(), evilName(i), metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	})
}

const year = 365 * 24 * time.Hour

// staysFor gives a pod a grace period and lets it use all of it.
func staysFor(grace time.Duration) podOption {
	return func(p *corev1.Pod) {
		withGrace(int64(grace / time.Second))(p)
		p.Annotations[nodeagent.AnnotationStopAfter] = grace.String()
	}
}

// borrower pods use the whole grace period with which they are deleted, whoever deletes them.
func borrower(int) podOption {
	return func(p *corev1.Pod) {
		requests("cpu", borrowerCPU)(p)
		staysFor(year)(p)
		withGrace(int64(borrowerGrace / time.Second))(p)
	}
}

func borrowOrdinary(e *env, n int) {
	e.flood(n, borrower)
	e.expect("evil", n, 0, "")
}

// leaveInTurn deletes pods one after another with a grace period, which they use: before
// one is gone, the next one is deleted.
func leaveInTurn(grace time.Duration) func(*env, int) {
	return func(e *env, n int) {
		every := grace - 100*time.Millisecond
		ticks := time.Tick(every)
		options := metav1.DeleteOptions{GracePeriodSeconds: new(int64(grace / time.Second))}
		for i := range min(n, int(*hostileFor/every)) {
			expect.Holds(e, suite.client.CoreV1().Pods(e.ns).Delete(e.Context(), evilName(i), options))
			<-ticks
		}
	}
}

// hostileBudgets is the number of disruption budgets of one tenant.
const hostileBudgets = 1000

// borrowGuarded makes ordinary pods that borrow, and budgets that each cover all of them.
func borrowGuarded(e *env, n int) {
	borrowOrdinary(e, n)
	most := intstr.FromInt32(0)
	e.inTurn(hostileBudgets, 10*time.Millisecond, func(i int) error {
		_, err := suite.client.PolicyV1().PodDisruptionBudgets(e.ns).Create(e.Context(), &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: evilName(i)},
			Spec:       policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &most, Selector: e.selector("evil")},
		}, metav1.CreateOptions{})
		return err
	})
}

// changeBudgets changes the spec of one budget after another.
func changeBudgets(e *env, _ int) {
	e.inTurn(int(hostileFor.Seconds()*50), 20*time.Millisecond, func(i int) error {
		patch := fmt.Sprintf(`{"spec":{"maxUnavailable":%d}}`, 1+i/hostileBudgets)
		_, err := suite.client.PolicyV1().PodDisruptionBudgets(e.ns).Patch(e.Context(), evilName(i%hostileBudgets), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// borrowPadded makes the youngest pods, which are preempted first, so large that etcd stores
// only so many bytes more: too few for the condition of a preempted pod, and enough for
// the deletion and for the last status of a pod.
func borrowPadded(spare int) func(*env, int) {
	return func(e *env, n int) {
		const padded = 40
		borrowOrdinary(e, n-padded)
		e.floodFrom(n-padded, padded, borrower, func(int) podOption { return nearlyTooLarge })
		size := 0
		for i := n - padded; i < n; i++ {
			p := e.awaitRunning(e.pod(evilName(i), "evil"))
			if size == 0 {
				size = padFully(e.T, e, p) - spare
			}
			e.ok(e.pad(p, size))
		}
		e.Cleanup(func() {
			expect.That(e, len(e.logLines("A pod is deleted without a mark")) > 0, "all preempted pods were marked")
		})
	}
}

// borrowDeletedDaemonSets deletes DaemonSet pods with a grace period of a year. No others
// are made in their place.
func borrowDeletedDaemonSets(e *env, n int) {
	sets := n / hostileNodes
	for i := range sets {
		e.createDaemonSet(fmt.Sprintf("evil-%d", i), inQueue("root.evil"), borrower(i))
	}
	for i := range sets {
		e.expect(fmt.Sprintf("evil-%d", i), hostileNodes, 0, "")
	}
	late := metav1.DeleteOptions{GracePeriodSeconds: new(int64(year / time.Second))}
	e.ok(suite.client.CoreV1().Pods(e.ns).DeleteCollection(e.Context(), late, metav1.ListOptions{LabelSelector: group + "!=full"}))
	for i := range sets {
		_, err := suite.client.AppsV1().DaemonSets(e.ns).Patch(e.Context(), fmt.Sprintf("evil-%d", i), types.MergePatchType,
			[]byte(`{"spec":{"template":{"spec":{"nodeSelector":{"none":"none"}}}}}`), metav1.PatchOptions{})
		e.ok(err)
	}
}

// floodsTooLarge floods with pods that may run on one node each, which has no room for them.
func floodsTooLarge(options ...func(i int) podOption) func(*env, int) {
	return func(e *env, n int) {
		nodes := expect.Get(suite.client.CoreV1().Nodes().List(e.Context(), metav1.ListOptions{LabelSelector: pool + "=" + e.nodePool}))(e)
		e.flood(n, append(options, func(i int) podOption {
			return func(p *corev1.Pod) {
				requests("cpu", "4")(p)
				plugintest.Requiring(p, nodes.Items[i%len(nodes.Items)].Name)
			}
		})...)
	}
}

// ofForgedOwner pods name a DaemonSet that does not exist. The garbage collector does not know its
// kind, so it leaves the pods.
func ofForgedOwner(int) podOption {
	owner := metav1.OwnerReference{APIVersion: "fake.example/v1", Kind: "DaemonSet", Name: "x", UID: "11111111-1111-1111-1111-111111111111", Controller: new(true)}
	return func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{owner} }
}

// rollDaemonSets makes DaemonSets, deletes them once they run, and makes others with the
// same ports: n pods in all. The pods stop after their grace period.
func rollDaemonSets(grace time.Duration) func(*env, int) {
	return func(e *env, n int) {
		sets := n / 2 / hostileNodes
		create := func(of string) {
			for i := range sets {
				e.createDaemonSet(fmt.Sprintf("%s-%d", of, i), inQueue("root.evil"), requests("cpu", "10m"), staysFor(grace), hostPort(7000+int32(i)))
			}
		}
		create("old")
		for i := range sets {
			e.expect(fmt.Sprintf("old-%d", i), hostileNodes, 0, "")
		}
		for i := range sets {
			e.ok(suite.client.AppsV1().DaemonSets(e.ns).Delete(e.Context(), fmt.Sprintf("old-%d", i), inBackground()))
		}
		create("young")
	}
}

// preemptSlow fills a port of each node with a pod that takes 15 s to stop, in the namespace of
// the test or one with a suffix, and makes a DaemonSet of the test's namespace that needs the port.
func preemptSlow(suffix string) func(*env, int) {
	return func(e *env, _ int) {
		if suffix != "" {
			e.namespace(e.ns+suffix, nil)
		}
		small := []podOption{inQueue("root.evil"), requests("cpu", "10m"), hostPort(7000)}
		there := func(p *corev1.Pod) { p.Namespace = e.ns + suffix }
		e.create("small", hostileNodes, append(small, staysFor(15*time.Second), there)...)
		e.expect("small", hostileNodes, 0, "")
		e.createDaemonSet("young", small...)
		e.expect("young", hostileNodes, 0, "")
	}
}

func hostPort(port int32) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: port, HostPort: port}}
	}
}

// inventedQueues names a queue with so many levels below one that no other pod names. The
// pod fits no node.
func inventedQueues(levels int) func(int) podOption {
	return func(i int) podOption {
		path := fmt.Sprintf("root.e%d", i)
		for j := range levels - 1 {
			path += fmt.Sprintf(".q%02d", j)
		}
		return func(p *corev1.Pod) {
			delete(p.Labels, placement.KeyQueue)
			p.Annotations[placement.KeyQueue] = path
			requests("cpu", "100")(p)
		}
	}
}

// onNoNode gives a pod a node that is not there, as a user that makes pods may.
func onNoNode(int) podOption { return func(p *corev1.Pod) { p.Spec.NodeName = "none" } }

// inventedTypes requests one of each of n types of resources that no node offers, for a
// pod by its number: no two pods name the same types.
func inventedTypes(n int) func(i int) podOption {
	return func(i int) podOption {
		list := make([]string, 0, 2*n)
		for j := range n {
			list = append(list, fmt.Sprintf("e%d.example.com/t%d", i, j), "1")
		}
		return func(p *corev1.Pod) {
			r := &p.Spec.Containers[0].Resources
			r.Requests, r.Limits = amounts(list...), amounts(list...)
		}
	}
}

// killedHalfway kills the scheduler in the middle of a flood and starts it again.
func killedHalfway(of func(int) podOption) func(*env, int) {
	return func(e *env, n int) {
		e.floodFrom(0, n/2, of)
		e.kill()
		began := time.Now()
		e.floodFrom(n/2, n/2, of)
		e.start()
		e.Logf("the scheduler is ready %v after it was killed", time.Since(began).Round(time.Millisecond))
	}
}

// floodsWithClaims floods with pods with a volume claim each, of a class for which no program
// makes volumes.
func floodsWithClaims(mode string) func(*env, int) {
	return func(e *env, n int) {
		class := e.storageClass(mode, never)
		e.flood(n, func(i int) podOption { return e.withClaim(evilName(i), class) })
	}
}

// expectAnswers checks that a reader gets the queues and the metrics, within 5 s each.
func (e *env) expectAnswers() {
	began := time.Now()
	expect.That(e, e.queue("root.team") != nil, "REST does not show the queue")
	queues := time.Since(began)
	_, err := fetch(e.Context(), http.DefaultClient, "http://"+e.rest+"/ws/v1/metrics")
	e.ok(err)
	metrics := time.Since(began) - queues
	expect.That(e, max(queues, metrics) <= 5*time.Second,
		"a reader waited for the queues for %v, and for the metrics for %v", queues, metrics)
}

// attackREST holds connections open and reads events, until the test ends. A reader of
// this machine is answered meanwhile.
func attackREST(e *env, _ int) {
	_, port, _ := net.SplitHostPort(e.rest)
	for _, from := range attackersOf(e) {
		for i := range 79 {
			go e.holdConnection(from, port, i >= 64)
		}
	}
	ticks := time.Tick(time.Second)
	for range int(hostileFor.Seconds()) {
		e.expectAnswers()
		<-ticks
	}
}

// attackersOf returns three addresses of this machine's loopback, which are known
// readers, and one that is not, if the machine has one.
func attackersOf(e *env) []string {
	out := []string{"127.0.0.2", "127.0.0.3", "127.0.0.4"}
	for _, a := range expect.Get(net.InterfaceAddrs())(e) {
		if n, is := a.(*net.IPNet); is && n.IP.To4() != nil && !n.IP.IsLoopback() {
			return append(out, n.IP.String())
		}
	}
	return out
}

// holdConnection connects again and again, and keeps each connection: it sends a request
// a second, which is answered, or reads events.
func (e *env) holdConnection(from, port string, events bool) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: time.Second}
	to := from
	if strings.HasPrefix(from, "127.") {
		to = "127.0.0.1"
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 1}}
	path := "/ws/v1/scheduler/healthcheck"
	if events {
		path = "/ws/v1/events/stream"
	}
	for e.Context().Err() == nil {
		request, err := http.NewRequestWithContext(e.Context(), http.MethodGet, "http://"+net.JoinHostPort(to, port)+path, http.NoBody)
		if err != nil {
			return
		}
		answer, err := client.Do(request)
		if err == nil {
			_, err = io.Copy(io.Discard, answer.Body)
			err = errors.Join(err, answer.Body.Close())
		}
		pause := time.Second
		if err != nil {
			pause = 100 * time.Millisecond
		}
		select {
		case <-e.Context().Done():
		case <-time.After(pause):
		}
	}
}
