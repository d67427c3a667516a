package integration

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// unplayable are the plans of the scenarios that this driver cannot show, and why. The
// list is exact: a new scenario is either played or listed here.
var unplayable = []string{
	"defects/crossing_the_guarantee/2: strictGuarantee",
	"laws/law3_not_the_same_application/1: an application in two queues",
	"laws/law3_not_the_same_application/2: an application in two queues",
	"laws/law4_only_below_the_guarantee/1: strictGuarantee",
	"laws/never_victims/1: a pod in its binding",
	"laws/never_victims/1: a pod of a DaemonSet",
	"laws/never_victims/2: a pod in its binding",
	"laws/never_victims/2: a pod of a DaemonSet",
	"pairs/law3_law6/1: an application in two queues",
}

// askDelay is the preemption.delay of all queues of the scenarios.
const askDelay = 2 * time.Second

// TestScenarios runs the planner's scenarios with the scheduler, all plans at once: each
// has nodes of its own and queues below a queue of its own, which has no settings and so
// no influence. Their objects exist when the scheduler starts; then all askers are
// created, and pods must end and start as the scenarios say.
func TestScenarios(t *testing.T) {
	all := scenario.Cases(t, "../../pkg/planner/testdata")
	cases, off := playable(all)
	expect.Same(t, "plans that cannot be shown", unplayable, off)
	var plays []*play
	for i := range cases {
		plays = append(plays, &play{Case: &cases[i]})
	}
	// Plans that are refused with strictGuarantee are run here without it. Their outcome
	// must differ, which shows that this test checks it.
	for i := range all {
		if slices.Equal(factsOf(&all[i]), []fact{strict}) {
			plays = append(plays, &play{Case: &all[i], wrong: true})
		}
	}
	var trees []queueTree
	for i, c := range plays {
		c.name = fmt.Sprintf("c%03d", i)
		tree := expect.Get(queuesOf(c.State, c.name, askDelay))(t)
		trees = append(trees, tree)
	}
	document := expect.Get(queuesDocument(trees...))(t)
	began := time.Now()
	took := func(what string) { t.Logf("%s after %v", what, time.Since(began).Round(100*time.Millisecond)) }
	e := setup(t, document)
	e.kill() // the scheduler must find all objects when it starts
	p := &playhouse{env: e, plays: plays}
	p.build()
	took("built")
	e.start()
	p.awaitKnown()
	p.ask()
	took("asked")
	p.awaitOutcomes()
	took("decided")
	for _, c := range plays {
		e.run(c.Name, func(e *env) { c.judge(e) })
	}
	p.makeWay()
	took("ended")
	left := p.podsByName()
	for _, c := range p.right() {
		e.run(c.Name+"/end", func(e *env) { c.judgeEnd(e, left) })
	}
	p.clear()
	t.Logf("%d plans, %d of them with another setting", len(plays), len(plays)-len(cases))
}

// playhouse has all plays of one scheduler.
type playhouse struct {
	*env
	plays []*play
	tail  *tail // of events after the askers were created
}

// right are the plays that must end as the scenario says.
func (p *playhouse) right() []*play {
	return slices.DeleteFunc(slices.Clone(p.plays), func(c *play) bool { return c.wrong })
}

// play is one plan of a scenario. Its name is that of its queue, and the prefix of its
// objects.
type play struct {
	*scenario.Case
	wrong bool // the scheduler's setting differs from that of the scenario
	name  string
	stage stage
	pods  map[string]*corev1.Pod // as they were created, by the name in the scenario
	asker *corev1.Pod
	gone  []string // the names of the pods that were evicted by the time of the check

	mu   sync.Mutex
	seen []watch.Event // events of its pods since the asker was created
}

// want is the scenario's outcome with the names of objects.
func (c *play) want() scenario.Outcome { return c.stage.Want(c.Case) }

// outcome is the outcome so far. The API server chooses UIDs, and the UID decides between
// pods that are equal in all but the name: such pods may replace each other as victims.
func (c *play) outcome() scenario.Outcome {
	out := c.outcomeByName()
	got, wanted := c.kinds(out.Victims), c.kinds(c.want().Victims)
	if slices.Equal(got, wanted) {
		out.Victims = c.want().Victims
	}
	return out
}

func (c *play) outcomeByName() scenario.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	return observed(c.asker.Name, c.seen)
}

// kinds describes pods without their names; sorted.
func (c *play) kinds(names []string) []string {
	var kinds []string
	for i := range c.State.Pods {
		x := c.State.Pods[i]
		if slices.Contains(names, c.stage.Name(x.Name)) {
			if x.Name = ""; !x.OwnApp {
				x.App = ""
			}
			kinds = append(kinds, fmt.Sprintf("%+v", x))
		}
	}
	slices.Sort(kinds)
	return kinds
}

// diff is the difference between the scenario's outcome and the one so far.
func (c *play) diff() string { return cmp.Diff(c.want(), c.outcome()) }

// judge compares the outcome with the scenario.
func (c *play) judge(e *env) {
	c.gone = c.outcomeByName().Victims
	switch diff := c.diff(); {
	case c.wrong && diff == "":
		e.Errorf("it is not found that it was decided without strictGuarantee: %v", c.outcome())
	case !c.wrong && diff != "":
		c.tell(e)
		e.Errorf("(-want +got)\n%s", diff)
	}
}

// judgeEnd checks which pods are left, and where. An asker that was refused beside
// leaving pods may be allowed more once they are gone, which the scenario does not say.
func (c *play) judgeEnd(e *env, left map[string]*corev1.Pod) {
	leaving := slices.ContainsFunc(c.State.Pods, func(x scenario.Pod) bool { return x.Protection == planner.Leaving })
	if leaving && c.want().Kind == planner.Refuse {
		return
	}
	for i := range c.State.Pods {
		x := &c.State.Pods[i]
		if x.Protection == planner.Leaving {
			continue
		}
		name := c.stage.Name(x.Name)
		if went := slices.Contains(c.gone, name); went != (left[name] == nil) {
			e.Errorf("pod %s: left is %v; the victims are %v", x.Name, left[name] != nil, c.gone)
		}
	}
	want := c.want()
	if want.Kind == planner.Refuse {
		return
	}
	if now := left[want.Asker]; now == nil || now.Spec.NodeName != want.Node {
		e.Errorf("the asker is not on node %s", want.Node)
		c.tell(e)
	}
}

// tell prints what is known of the asker.
func (c *play) tell(e *env) {
	now := e.get(c.asker)
	for _, condition := range now.Status.Conditions {
		e.Logf("%s %s=%s %s: %s", now.Name, condition.Type, condition.Status, condition.Reason, condition.Message)
	}
}
