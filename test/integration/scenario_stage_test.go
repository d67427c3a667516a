package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// each calls f for all, some in parallel, and returns the first error.
func each[T any](list []T, f func(T) error) error {
	var group errgroup.Group
	group.SetLimit(16)
	for _, x := range list {
		group.Go(func() error { return f(x) })
	}
	return group.Wait()
}

func (p *playhouse) api() typedv1.PodInterface { return suite.client.CoreV1().Pods(p.ns) }

func (c *play) create(pod *corev1.Pod) (*corev1.Pod, error) {
	return c.house.api().Create(c.house.Context(), pod, metav1.CreateOptions{})
}

// build makes everything but the askers.
func (p *playhouse) build(e *env) {
	p.env = e
	p.Helper()
	p.makeClasses()
	p.makeNodes()
	p.ok(each(p.plays, (*play).makeBudgets))
	p.makePods()
	p.ok(each(p.plays, (*play).makeHolders))
	p.awaitRunningAll()
	p.deleteLeaving(metav1.DeleteOptions{})
	p.awaitBudgets()
}

// class is the name of a PriorityClass; the default priority needs none.
func (p *playhouse) class(priority int32, never bool) string {
	switch {
	case never:
		return fmt.Sprintf("%s-never%d", p.id, priority)
	case priority != 0:
		return fmt.Sprintf("%s-prio%d", p.id, priority)
	}
	return ""
}

func (p *playhouse) makeClasses() {
	made := map[string]bool{"": true}
	add := func(a scenario.Ask) {
		if name := p.class(a.Priority, a.Never); !made[name] {
			made[name] = true
			p.priorityClass(name, a.Priority, a.Never)
		}
	}
	for _, c := range p.plays {
		add(c.Ask)
		for _, x := range c.State.Pods {
			add(x.Ask)
		}
		for _, x := range c.State.Waiting {
			add(x.Ask)
		}
	}
}

func (p *playhouse) makeNodes() {
	var names []string
	var nodes []*corev1.Node
	for _, c := range p.plays {
		for _, n := range c.State.Nodes {
			node := expect.Get(c.nodeSpec(n).Node(0))(p)
			nodes, names = append(nodes, node), append(names, node.Name)
		}
	}
	p.ok(each(nodes, func(n *corev1.Node) error {
		_, err := suite.client.CoreV1().Nodes().Create(p.Context(), n, metav1.CreateOptions{})
		return err
	}))
	p.ok(suite.cluster.AwaitNodes(p.Context(), names...))
}

func (c *play) makeBudgets() error {
	for _, b := range c.State.Budgets {
		budget, _ := c.budget(b)
		api := suite.client.PolicyV1().PodDisruptionBudgets(c.house.ns)
		if _, err := api.Create(c.house.Context(), budget, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// makePods makes the pods, the oldest of each play first. The API server sets their creation times, in
// whole seconds: pods of one age are of one second, and those of the next age of a later one.
func (p *playhouse) makePods() {
	ages := 0
	for _, c := range p.plays {
		ages = max(ages, len(c.generations()))
	}
	for age := range ages {
		now := time.Now().Unix()
		eventually(p, patience, "the next second", func() (bool, string) { return time.Now().Unix() > now, "" })
		p.ok(each(p.plays, func(c *play) error {
			if all := c.generations(); age < len(all) {
				return c.bear(all[age])
			}
			return nil
		}))
	}
}

// generations returns the pods by age, the oldest first.
func (c *play) generations() [][]scenario.Pod {
	byAge := map[time.Duration][]scenario.Pod{}
	for _, x := range c.State.Pods {
		byAge[x.Age] = append(byAge[x.Age], x)
	}
	var all [][]scenario.Pod
	for _, age := range slices.Backward(slices.Sorted(maps.Keys(byAge))) {
		all = append(all, byAge[age])
	}
	return all
}

// bear makes the pods of a generation, again and again until all are of one second.
func (c *play) bear(generation []scenario.Pod) error {
	for {
		for _, x := range generation {
			pod, err := c.create(c.running(x))
			if err != nil {
				return err
			}
			c.pods[x.Name] = pod
		}
		first, last := c.pods[generation[0].Name], c.pods[generation[len(generation)-1].Name]
		if first.CreationTimestamp.Equal(&last.CreationTimestamp) {
			return nil
		}
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		for _, x := range generation {
			err := c.house.api().Delete(c.house.Context(), c.object(x.Name), now)
			if err != nil && !apierrors.IsNotFound(err) {
				return err
			}
		}
	}
}

// makeHolders makes the askers that hold a node already.
func (c *play) makeHolders() error {
	for _, x := range c.State.Waiting {
		pod, err := c.create(c.waiting(x.Ask))
		if err != nil {
			return err
		}
		c.holders = append(c.holders, pod)
		claim := reservations.Claim{Node: c.node(x.Node), Since: time.Now()}
		for _, leaving := range c.leaving() {
			if leaving.Spec.NodeName == claim.Node {
				claim.Victims = append(claim.Victims, leaving.UID)
			}
		}
		slices.Sort(claim.Victims)
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: held, Status: corev1.ConditionTrue, Reason: "Held", Message: claim.Message(),
		})
		if _, err := c.house.api().UpdateStatus(c.house.Context(), pod, metav1.UpdateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

func (c *play) leaving() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, x := range c.State.Pods {
		if x.Protection == planner.Leaving {
			pods = append(pods, c.pods[x.Name])
		}
	}
	return pods
}

func (p *playhouse) deleteLeaving(options metav1.DeleteOptions) {
	p.Helper()
	p.ok(each(p.plays, func(c *play) error {
		var errs []error
		for _, pod := range c.leaving() {
			errs = append(errs, p.api().Delete(p.Context(), pod.Name, options))
		}
		return errors.Join(errs...)
	}))
}

func (p *playhouse) awaitRunningAll() {
	eventually(p, patience, "all pods that have a node run", func() (bool, string) {
		for name, pod := range p.podsByName() {
			if pod.Spec.NodeName != "" && pod.Status.Phase != corev1.PodRunning {
				return false, fmt.Sprintf("%s is %s: %s", name, pod.Status.Phase, pod.Status.Message)
			}
		}
		return true, ""
	})
}

// awaitBudgets waits until the disruption controller has counted.
func (p *playhouse) awaitBudgets() {
	api := suite.client.PolicyV1().PodDisruptionBudgets(p.ns)
	for _, c := range p.plays {
		for _, b := range c.State.Budgets {
			budget, allowed := c.budget(b)
			eventually(p, patience, "budget "+b.Name+" of "+c.Name+" is counted", func() (bool, string) {
				now := expect.Get(api.Get(p.Context(), budget.Name, metav1.GetOptions{}))(p)
				counted := now.Status.ObservedGeneration == now.Generation
				return counted && now.Status.DisruptionsAllowed == allowed, fmt.Sprintf("%+v", now.Status)
			})
		}
	}
}

// awaitKnown waits until the scheduler has seen all pods.
func (p *playhouse) awaitKnown() {
	want := resources.Amount(0)
	for _, c := range p.plays {
		for _, x := range c.State.Pods {
			if x.Protection != planner.Foreign && x.Protection != planner.Static { // which is foreign, too
				want++
			}
		}
	}
	eventually(p, patience, "all pods are in the books", func() (bool, string) {
		root, err := p.readQueues(p.Context())
		if err != nil {
			return false, err.Error()
		}
		got := root.AllocatedResource["pods"]
		return got == want, fmt.Sprintf("%d of %d", got, want)
	})
}

// ask makes all askers, and records what happens from then on.
func (p *playhouse) ask() {
	p.history = p.keepHistory()
	p.ok(each(p.plays, func(c *play) (err error) {
		c.asker, err = c.create(c.waiting(c.Ask))
		return err
	}))
}

// awaitOutcomes waits until all is as the scenarios say, or until the time-out, and a
// little longer: nothing more may happen.
func (p *playhouse) awaitOutcomes() {
	await(p.Context(), 2*patience, func() bool { // of all plays
		return !slices.ContainsFunc(p.right(), func(c *play) bool { return c.diff() != "" })
	})
	await(p.Context(), calm, func() bool { return false })
	p.history.tail.catchUp(p.Context(), p)
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

// makeWay removes the leaving pods, and waits until all askers that were promised a node are there.
func (p *playhouse) makeWay() {
	p.deleteLeaving(metav1.DeleteOptions{GracePeriodSeconds: new(int64)})
	await(p.Context(), 2*patience, func() bool {
		pods := p.podsByName()
		return !slices.ContainsFunc(p.right(), func(c *play) bool {
			want := c.want()
			return want.Node != "" && !isPlaced(pods, want)
		})
	})
}

func (p *playhouse) podsByName() map[string]*corev1.Pod {
	p.Helper()
	pods := expect.Get(p.listPods(p.Context()))(p)
	out := map[string]*corev1.Pod{}
	for i := range pods {
		out[pods[i].Name] = &pods[i]
	}
	return out
}
