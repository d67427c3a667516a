package integration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// caseLabel distinguishes the objects of plays.
const caseLabel = "integration/case"

// atOnce is how many requests are made in parallel.
const atOnce = 16

// each calls f for all plays, some in parallel, and returns all errors.
func each[T any](list []T, f func(T) error) error {
	errs := make([]error, len(list))
	slots := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for i, x := range list {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = f(x)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// build makes everything but the askers.
func (p *playhouse) build() {
	p.Helper()
	p.makeClasses()
	for _, c := range p.plays {
		labels := map[string]string{label: p.id, caseLabel: c.name}
		c.pods = map[string]*corev1.Pod{}
		c.stage = stage{
			Namespace: p.ns, Prefix: c.name + "-", Labels: labels, Below: "root." + c.name, Selector: map[string]string{caseLabel: c.name},
			Node:  func(node string) string { return p.nodeSpec(c, node).Name(0) },
			Class: p.class,
		}
	}
	p.makeNodes()
	p.ok(each(p.plays, p.makeBudgets))
	p.makePods()
	p.ok(each(p.plays, p.makeCompanions))
	p.ok(each(p.plays, p.makeHolders))
	p.awaitRunningAll()
	p.ok(each(p.plays, p.sendAway))
	p.awaitBudgets()
}

// class is the name of a PriorityClass; the default priority needs none.
func (p *playhouse) class(priority int32, never bool) string {
	if priority == 0 && !never {
		return ""
	}
	name := strings.ReplaceAll(fmt.Sprintf("%s-prio%d", p.id, priority), "-", "-m")
	if never {
		name += "-never"
	}
	return name
}

// makeClasses makes the PriorityClasses of the scenarios' pods.
func (p *playhouse) makeClasses() {
	p.Helper()
	classes := map[string]*schedulingv1.PriorityClass{}
	add := func(a scenario.Ask) {
		policy := corev1.PreemptLowerPriority
		if a.Never {
			policy = corev1.PreemptNever
		}
		name := p.class(a.Priority, a.Never)
		classes[name] = &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: a.Priority, PreemptionPolicy: &policy}
	}
	for _, c := range p.plays {
		add(c.Ask)
		for i := range c.State.Pods {
			a := c.State.Pods[i].Ask
			add(a)
			if a.Never = c.State.Pods[i].Originator; a.Never { // its companion
				add(a)
			}
		}
		for i := range c.State.Waiting {
			add(c.State.Waiting[i].Ask)
		}
	}
	delete(classes, "")
	api := suite.client.SchedulingV1().PriorityClasses()
	for _, name := range slices.Sorted(maps.Keys(classes)) {
		expect.Get(api.Create(p.Context(), classes[name], metav1.CreateOptions{}))(p)
		p.Cleanup(func() { expect.Holds(p, api.Delete(context.Background(), name, metav1.DeleteOptions{})) })
	}
}

// nodeSpec is the single node of a play.
func (p *playhouse) nodeSpec(c *play, name string) localcluster.NodeSpec {
	i := slices.IndexFunc(c.State.Nodes, func(n scenario.Node) bool { return n.Name == name })
	list := resourceList(c.State.Nodes[i].Allocatable)
	spec := localcluster.NodeSpec{
		NamePrefix: fmt.Sprintf("%s-%s-%s", p.id, c.name, name), Labels: map[string]string{pool: p.id, caseLabel: c.name},
		CPU: list.Cpu().String(), Memory: list.Memory().String(), Pods: list.Pods().Value(), Extended: map[string]string{},
	}
	for name, q := range list {
		if strings.Contains(string(name), "/") {
			spec.Extended[string(name)] = q.String()
		}
	}
	return spec
}

func (p *playhouse) makeNodes() {
	p.Helper()
	var names []string
	var nodes []*corev1.Node
	for _, c := range p.plays {
		for _, n := range c.State.Nodes {
			node := expect.Get(p.nodeSpec(c, n.Name).Node(0))(p)
			nodes, names = append(nodes, node), append(names, node.Name)
		}
	}
	p.ok(each(nodes, func(n *corev1.Node) error {
		_, err := suite.client.CoreV1().Nodes().Create(p.Context(), n, metav1.CreateOptions{})
		return err
	}))
	p.ok(suite.cluster.AwaitNodes(p.Context(), names...))
}

func (p *playhouse) makeBudgets(c *play) error {
	for i := range c.State.Budgets {
		b := c.stage.Budget(c.State, &c.State.Budgets[i])
		b.Status = policyv1.PodDisruptionBudgetStatus{}
		if _, err := suite.client.PolicyV1().PodDisruptionBudgets(b.Namespace).Create(p.Context(), b, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// generation is the pods of a play that are of one age.
type generation struct {
	*play
	pods []*scenario.Pod
}

// makePods makes the pods, the oldest of each play first. The API server sets their
// creation times, in whole seconds; so a generation is recreated until all of it is of
// the same second, and the next one waits for the next second.
func (p *playhouse) makePods() {
	p.Helper()
	for age := 0; ; age++ {
		var born []generation
		for _, c := range p.plays {
			if g, ok := c.generation(age); ok {
				born = append(born, g)
			}
		}
		if len(born) == 0 {
			return
		}
		for len(born) > 0 {
			second := time.Now().Unix()
			eventually(p, 2*time.Second, "the next second", func() (bool, string) { return time.Now().Unix() > second, "" })
			var mu sync.Mutex
			var again []generation
			p.ok(each(born, func(g generation) error {
				same, err := p.bear(g)
				if !same {
					mu.Lock()
					again = append(again, g)
					mu.Unlock()
				}
				return err
			}))
			born = again
		}
	}
}

// generation returns the pods with the age of that number, the oldest first.
func (c *play) generation(number int) (generation, bool) {
	var ages []time.Duration
	for i := range c.State.Pods {
		ages = append(ages, c.State.Pods[i].Age)
	}
	slices.SortFunc(ages, func(a, b time.Duration) int { return cmp.Compare(b, a) })
	ages = slices.Compact(ages)
	g := generation{play: c}
	if number >= len(ages) {
		return g, false
	}
	for i := range c.State.Pods {
		if c.State.Pods[i].Age == ages[number] {
			g.pods = append(g.pods, &c.State.Pods[i])
		}
	}
	return g, true
}

// bear makes a generation, and deletes it if it is not of one second.
func (p *playhouse) bear(g generation) (same bool, err error) {
	api := suite.client.CoreV1().Pods(p.ns)
	var made []*corev1.Pod
	for _, x := range g.pods {
		pod := g.stage.Pod(x)
		if x.Protection == planner.Leaving {
			long := int64(500)
			pod.Spec.TerminationGracePeriodSeconds = &long
		}
		created, err := api.Create(p.Context(), pod, metav1.CreateOptions{})
		if err != nil {
			return true, fmt.Errorf("create pod %s: %w", pod.Name, err)
		}
		made = append(made, created)
	}
	if made[0].CreationTimestamp.Equal(&made[len(made)-1].CreationTimestamp) {
		for i, x := range g.pods {
			g.play.pods[x.Name] = made[i]
		}
		return true, nil
	}
	now := int64(0)
	for _, pod := range made {
		if err := api.Delete(p.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsNotFound(err) {
			return true, err
		}
	}
	return false, nil
}

// makeCompanions makes pods originators by creating their companions.
func (p *playhouse) makeCompanions(c *play) error {
	for i := range c.State.Pods {
		if x := &c.State.Pods[i]; x.Originator {
			companion := c.stage.Companion(x, c.pods[x.Name])
			if _, err := suite.client.CoreV1().Pods(p.ns).Create(p.Context(), companion, metav1.CreateOptions{}); err != nil {
				return fmt.Errorf("create pod %s: %w", companion.Name, err)
			}
		}
	}
	return nil
}

// makeHolders makes the askers that hold a node already.
func (p *playhouse) makeHolders(c *play) error {
	api := suite.client.CoreV1().Pods(p.ns)
	for i := range c.State.Waiting {
		x := &c.State.Waiting[i]
		pod, err := api.Create(p.Context(), c.stage.Asker(&x.Ask), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		claim := reservations.Claim{Node: c.stage.Node(x.Node), Since: time.Now(), Victims: c.leaving(x.Node)}
		pod.Status.Conditions = append(pod.Status.Conditions, claimCondition(claim))
		if _, err := api.UpdateStatus(p.Context(), pod, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// leaving returns the pods of a node that are terminating.
func (c *play) leaving(node string) []types.UID {
	var uids []types.UID
	for _, x := range c.State.Pods {
		if x.Protection == planner.Leaving && x.Node == node {
			uids = append(uids, c.pods[x.Name].UID)
		}
	}
	slices.Sort(uids)
	return uids
}

// awaitRunningAll waits until all pods with a node run there.
func (p *playhouse) awaitRunningAll() {
	p.Helper()
	eventually(p, patience, "all pods that have a node run", func() (bool, string) {
		pods := expect.Get(p.listPods(p.Context()))(p)
		for i := range pods {
			if pod := &pods[i]; pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodRunning {
				return false, fmt.Sprintf("%s on %s is %s: %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase, pod.Status.Message)
			}
		}
		return true, ""
	})
}

// sendAway deletes the pods that the scenario has leaving, with a long grace period.
func (p *playhouse) sendAway(c *play) error {
	for _, x := range c.State.Pods {
		if x.Protection == planner.Leaving {
			if err := suite.client.CoreV1().Pods(p.ns).Delete(p.Context(), c.stage.Name(x.Name), metav1.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitBudgets waits until the disruption controller has counted.
func (p *playhouse) awaitBudgets() {
	p.Helper()
	for _, c := range p.plays {
		for i := range c.State.Budgets {
			b := c.stage.Budget(c.State, &c.State.Budgets[i])
			eventually(p, patience, "budget "+b.Name+" of "+c.Name+" is counted", func() (bool, string) {
				now := expect.Get(suite.client.PolicyV1().PodDisruptionBudgets(p.ns).Get(p.Context(), b.Name, metav1.GetOptions{}))(p)
				return now.Status.ObservedGeneration == now.Generation && now.Status.DisruptionsAllowed == b.Status.DisruptionsAllowed, fmt.Sprintf("%+v", now.Status)
			})
		}
	}
}

// awaitKnown waits until the scheduler has seen all pods.
func (p *playhouse) awaitKnown() {
	p.Helper()
	want := resources.Amount(0)
	for _, c := range p.plays {
		for i := range c.State.Pods {
			if x := c.State.Pods[i].Protection; x != planner.Foreign && x != planner.Static { // static pods are foreign, too
				want++
			}
		}
	}
	p.awaitREST()
	eventually(p, patience, "all pods are in the books", func() (bool, string) {
		got := p.queue("root").AllocatedResource["pods"]
		return got == want, fmt.Sprintf("%d of %d", got, want)
	})
}

// awaitREST waits until the scheduler answers.
func (p *playhouse) awaitREST() {
	p.Helper()
	eventually(p, patience, "REST answers", func() (bool, string) {
		_, err := p.readQueues(p.Context())
		return err == nil, fmt.Sprint(err)
	})
}

// ask makes all askers, and records what happens from then on.
func (p *playhouse) ask() {
	p.Helper()
	p.followPlays()
	p.ok(each(p.plays, func(c *play) error {
		var err error
		c.asker, err = suite.client.CoreV1().Pods(p.ns).Create(p.Context(), c.stage.Asker(&c.Ask), metav1.CreateOptions{})
		return err
	}))
}

// followPlays records the changes of pods, by play.
func (p *playhouse) followPlays() {
	p.Helper()
	byName := map[string]*play{}
	for _, c := range p.plays {
		byName[c.name] = c
	}
	p.tail = p.follow(p.listAll(), func(event watch.Event) {
		pod := event.Object.(*corev1.Pod)
		if c := byName[pod.Labels[caseLabel]]; c != nil && !strings.HasSuffix(pod.Name, companionSuffix) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.seen = append(c.seen, event)
		}
	})
}

// awaitOutcomes waits until all is as the scenarios say, or until the time-out, and a
// little longer: nothing more may happen.
func (p *playhouse) awaitOutcomes() {
	p.Helper()
	done := func() bool {
		return !slices.ContainsFunc(p.right(), func(c *play) bool { return c.diff() != "" })
	}
	await(p.Context(), 2*patience, done) // of all plays
	await(p.Context(), calm, func() bool { return false })
	p.tail.catchUp(p.Context(), p)
}

// await polls until it is done or the time is over. It polls less often than other tests,
// because a check of all plays takes a while.
func await(ctx context.Context, within time.Duration, done func() bool) {
	ticker := time.NewTicker(8 * beat)
	defer ticker.Stop()
	for deadline := time.Now().Add(within); time.Now().Before(deadline) && ctx.Err() == nil; <-ticker.C {
		if done() {
			return
		}
	}
}

// makeWay removes the leaving pods, and waits until all askers that were promised a node
// are there.
func (p *playhouse) makeWay() {
	p.Helper()
	now := int64(0)
	p.ok(each(p.plays, func(c *play) error {
		for _, x := range c.State.Pods {
			if x.Protection == planner.Leaving {
				if err := suite.client.CoreV1().Pods(p.ns).Delete(p.Context(), c.stage.Name(x.Name), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	await(p.Context(), 2*patience, func() bool {
		pods := p.podsByName()
		return !slices.ContainsFunc(p.right(), func(c *play) bool {
			want := c.want()
			return want.Node != "" && (pods[want.Asker] == nil || pods[want.Asker].Spec.NodeName != want.Node)
		})
	})
}

// podsByName are all existing pods.
func (p *playhouse) podsByName() map[string]*corev1.Pod {
	p.Helper()
	pods := expect.Get(p.listPods(p.Context()))(p)
	out := map[string]*corev1.Pod{}
	for i := range pods {
		out[pods[i].Name] = &pods[i]
	}
	return out
}

// clear removes all pods, unless the run keeps them for inspection.
func (p *playhouse) clear() {
	p.Helper()
	if p.Failed() {
		return
	}
	now := int64(0)
	p.ok(suite.client.CoreV1().Pods(p.ns).DeleteCollection(p.Context(),
		metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{LabelSelector: label + "=" + p.id}))
}
