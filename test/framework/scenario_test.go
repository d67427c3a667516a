package framework_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	stories "github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/internal/scenario/stage"
	"github.com/paddock-scheduler/paddock/pkg/app"
	"github.com/paddock-scheduler/paddock/pkg/leader"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// unplayable are the plans of the scenarios that this driver cannot show, and why. The
// list is exact: a new scenario is either played or listed here.
var unplayable = []string{
	"laws/law3_not_the_same_application/1: an application in two queues",
	"laws/law3_not_the_same_application/2: an application in two queues",
	"pairs/law3_law6/1: an application in two queues",
}

// TestScenarios runs the planner's scenarios with a whole scheduler: their nodes and pods
// exist when it starts, the asker is created, its delay passes, and pods must then end
// and start as the scenario says.
func TestScenarios(t *testing.T) {
	cases, left := stage.Unplayable(stories.Cases(t, "../../pkg/planner/testdata"), stage.Strict, stage.Daemon, stage.Binding)
	if diff := cmp.Diff(unplayable, left); diff != "" {
		t.Errorf("plans that cannot be shown (-want +got)\n%s", diff)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { inBubble(t, func(t *testing.T) { (&play{Case: c, delay: askDelay}).check(t) }) })
	}
	t.Logf("%d plans, %d not shown", len(cases), len(left))
}

// TestScenariosNoticeAWrongScheduler shows that the outcome is checked: a scheduler that
// refuses what the scenario says is lawful fails, and so does one that does not wait.
func TestScenariosNoticeAWrongScheduler(t *testing.T) {
	for _, c := range stories.Cases(t, "../../pkg/planner/testdata") {
		if c.Name != "defects/crossing_the_guarantee/1" {
			continue
		}
		inBubble(t, func(t *testing.T) {
			p := &play{Case: c, delay: askDelay}
			p.Strict = true
			_, then := p.run(t)
			defer p.cluster.end()
			if then.Kind != planner.Refuse || then.Rule != planner.Law4 {
				t.Errorf("with another setting it is the same: %v", then)
			}
		})
		inBubble(t, func(t *testing.T) {
			p := &play{Case: c, delay: askDelay / 2}
			early, _ := p.run(t)
			defer p.cluster.end()
			if early.Kind == planner.Refuse {
				t.Errorf("nobody notices that it is early: %v", early)
			}
		})
		return
	}
	t.Error("there is no such story")
}

// inBubble runs a test with a clock that advances only when all goroutines wait for it.
func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	// The scheduler waits on channels of the gate, which have to belong to the bubble.
	defer app.SetLeader(leader.Always())
	synctest.Test(t, func(t *testing.T) {
		app.SetLeader(leader.Always())
		f(t)
	})
}

// askDelay is the preemption.delay of all queues.
const askDelay = 5 * time.Second

// mostCycles are those of a minute without events: a refused asker is planned for every
// 15 seconds.
const mostCycles = 5

// play is one plan of a scenario on a cluster.
type play struct {
	stories.Case
	delay   time.Duration // of the queues
	stage   stage.Stage
	cluster *cluster
	asker   *corev1.Pod
	began   int // how many events pods had had when the asker was created
}

// run plays it, and returns the decisions before the delay and after it.
func (p *play) run(t *testing.T) (early, then stories.Outcome) {
	p.stage = stage.Stage{Namespace: "default", Scheduler: managed, Other: other}
	tree, err := stage.Queues(p.World, "root", p.delay)
	if err != nil {
		t.Fatal(err)
	}
	document, err := stage.Document(tree.Children()...)
	if err != nil {
		t.Fatal(err)
	}
	p.cluster = start(t, options{queues: document, backoff: 1, strict: p.Strict, before: func(c *cluster) { p.cluster = c; p.build() }})
	p.ask()
	p.wait(askDelay - 10*time.Millisecond)
	early = p.outcome()
	p.wait(time.Second)
	return early, p.outcome()
}

// end stops the scheduler of a bubble.
func (c *cluster) end() {
	c.stop()
	time.Sleep(2 * time.Second) // upstream's metrics check once a second whether they may end
}

// check plays it and compares it with the scenario.
func (p *play) check(t *testing.T) {
	early, then := p.run(t)
	defer p.cluster.end()
	if early.Kind != planner.Refuse {
		t.Errorf("before the delay is over: %v", early)
	}
	if diff := cmp.Diff(p.stage.Want(&p.Case), then); diff != "" {
		t.Errorf("(-want +got)\n%s\n%v", diff, p.cluster.store.Explain(p.asker.UID))
	}
	cycles := p.cluster.probe.allCycles()
	p.wait(time.Minute) // a time in which nothing more happens
	if cycles = p.cluster.probe.allCycles() - cycles; cycles > mostCycles {
		t.Errorf("%d cycles in a minute in which nothing happened, want at most %d", cycles, mostCycles)
	}
	for _, wrong := range stage.Complaints(p.asker.Name, p.events()) {
		t.Error(wrong)
	}
	p.checkEnd(t)
}

// wait lets time pass, and waits until all work due by then is done.
func (p *play) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// build makes the objects that exist before the asker.
func (p *play) build() {
	c := p.cluster
	ctx := context.Background()
	for i := range p.World.Nodes {
		node := p.stage.NodeObject(&p.World.Nodes[i])
		if _, err := c.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
	for i := range p.World.Budgets {
		b := p.stage.Budget(p.World, &p.World.Budgets[i])
		if _, err := c.client.PolicyV1().PodDisruptionBudgets(b.Namespace).Create(ctx, b, metav1.CreateOptions{}); err != nil {
			c.t.Fatal(err)
		}
	}
	for i := range p.World.Pods {
		at := &p.World.Pods[i]
		pod := p.born(p.stage.Pod(at), at.Name, at.Age)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
		p.protect(pod, at)
		if at.Protection == planner.Binding {
			p.bindSlowly(pod)
		}
		c.api.create(c.t, pod)
		if at.Originator {
			c.api.create(c.t, p.born(p.stage.Companion(at, pod), at.Name+stage.CompanionSuffix, at.Age))
		}
	}
	for i := range p.World.Waiting {
		x := &p.World.Waiting[i]
		pod := p.born(p.stage.Asker(&x.Ask), x.Name, 0)
		claim := reservations.Claim{Node: x.Node, Since: time.Now(), Victims: p.leaving(x.Node)}
		pod.Status.Conditions = []corev1.PodCondition{stage.Claim(claim)}
		c.api.create(c.t, pod)
	}
}

// uid is a UID that orders pods by name, as the scenario does.
func uid(name string) types.UID { return types.UID("uid-" + name) }

// born sets the fields of a pod that the API server sets, as of some time ago.
func (p *play) born(pod *corev1.Pod, name string, age time.Duration) *corev1.Pod {
	pod.UID = uid(name)
	pod.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Minute - age))
	return pod
}

func (p *play) protect(pod *corev1.Pod, as *stories.Pod) {
	switch as.Protection {
	case planner.Leaving:
		long := int64(500) // shorter than reservationTimeout: no plan counts on pods that take longer to leave
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &metav1.Time{Time: time.Now().Add(500 * time.Second)}, &long
	case planner.DaemonSet:
		yes := true
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "uid-of-daemonset", Controller: &yes}}
		pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{
					{Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{pod.Spec.NodeName}},
				},
			}}},
		}}
	}
}

// bindSlowly makes a running pod one that the scheduler is about to bind, until the end
// of the scenario.
func (p *play) bindSlowly(pod *corev1.Pod) {
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: pod.Spec.NodeName}
	pod.Spec.NodeName, pod.Status.Phase = "", corev1.PodPending
	end := make(chan struct{})
	p.cluster.t.Cleanup(func() { close(end) })
	p.cluster.probe.preBind = func(about *corev1.Pod) {
		if about.UID == pod.UID {
			<-end
		}
	}
}

// leaving returns the pods of a node that are terminating.
func (p *play) leaving(node string) []types.UID {
	var uids []types.UID
	for _, x := range p.World.Pods {
		if x.Protection == planner.Leaving && x.Node == node {
			uids = append(uids, uid(x.Name))
		}
	}
	slices.Sort(uids)
	return uids
}

// ask makes the asker.
func (p *play) ask() {
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) // creation times have whole seconds
	synctest.Wait()
	p.asker = p.stage.Asker(&p.Ask)
	p.asker.UID, p.asker.CreationTimestamp = uid(p.Ask.Name), metav1.Now()
	p.cluster.api.mu.Lock()
	p.began = len(p.cluster.api.events)
	p.cluster.api.mu.Unlock()
	p.cluster.api.create(p.cluster.t, p.asker)
}

// outcome is what happened since the asker was created, as the API server saw it.
func (p *play) outcome() stories.Outcome { return stage.Outcome(p.asker.Name, p.events()) }

func (p *play) events() []watch.Event {
	p.cluster.api.mu.Lock()
	defer p.cluster.api.mu.Unlock()
	return slices.Clone(p.cluster.api.events[p.began:])
}

// checkEnd checks the pods that are left, and that the asker runs on the promised node
// once all leaving pods are gone.
func (p *play) checkEnd(t *testing.T) {
	c := p.cluster
	for i := range p.World.Pods {
		x := &p.World.Pods[i]
		pod := c.api.pod("default", p.stage.Name(x.Name))
		if gone := slices.Contains(p.Want.Victims, x.Name); gone != (pod == nil) {
			t.Errorf("pod %s: gone is %v, want %v", x.Name, pod == nil, gone)
		}
		if x.Protection == planner.Leaving {
			c.api.delete(t, pod)
		}
	}
	if p.Want.Kind == planner.Refuse {
		return
	}
	p.wait(time.Minute)
	if pod := c.api.pod("default", p.asker.Name); pod.Spec.NodeName != p.Want.Node {
		t.Errorf("the asker is on node %q, want %s", pod.Spec.NodeName, p.Want.Node)
	}
	if err := c.store.Check(); err != nil {
		t.Error(err)
	}
}
