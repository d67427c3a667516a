package integration

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// unplayable are the plans of the scenarios that this driver cannot show, and why. The
// list is exact: a new scenario is either played or listed here.
var unplayable = []string{
	"defects/crossing_the_guarantee/2: strictGuarantee",
	"laws/law3_not_the_same_application/1: an application in two queues",
	"laws/law3_not_the_same_application/2: an application in two queues",
	"laws/law4_only_below_the_guarantee/1: strictGuarantee",
	"laws/never_victims/1: a pod in its binding, a pod of a DaemonSet",
	"laws/never_victims/2: a pod in its binding, a pod of a DaemonSet",
	"pairs/law3_law6/1: an application in two queues",
}

// strict is the fact that an argument of the whole scheduler decides.
const strict = "strictGuarantee"

// factsOf are the facts of a plan that the cluster cannot show.
func factsOf(c *scenario.Case) string {
	facts := map[string]bool{}
	if c.Strict {
		facts[strict] = true
	}
	queues := map[string]string{c.Ask.App: c.Ask.Queue}
	for i := range c.State.Pods {
		p := &c.State.Pods[i]
		if queue, known := queues[p.App]; p.OwnApp && known && queue != p.Queue {
			facts["an application in two queues"] = true // it is in the queue of its first pod
		}
		queues[p.App] = p.Queue
		switch p.Protection {
		case planner.Binding: // the bind request would be in flight while another pod asks
			facts["a pod in its binding"] = true
		case planner.DaemonSet: // its controller makes and deletes it
			facts["a pod of a DaemonSet"] = true
		}
	}
	for _, x := range c.State.Waiting {
		if x.Node == "" { // the scheduler always holds a node for an asker with a plan
			facts["a plan without a node"] = true
		}
	}
	return strings.Join(slices.Sorted(maps.Keys(facts)), ", ")
}

// TestScenarios runs the planner's scenarios with the scheduler, all plans at once: each
// has nodes of its own and queues below a queue of its own, which has no settings and so
// no influence. Their objects exist when the scheduler starts; then all askers are
// created, and pods must end and start as the scenarios say.
//
// Plans that are refused with strictGuarantee are run here without it. Their outcome must
// differ, which shows that this test checks it.
func TestScenarios(t *testing.T) {
	p := &playhouse{}
	var others []string
	for i, c := range scenario.Cases(t, "../../pkg/planner/testdata") {
		facts := factsOf(&c)
		if facts != "" {
			others = append(others, c.Name+": "+facts)
		}
		if facts == "" || facts == strict {
			p.plays = append(p.plays, &play{
				Case: &c, house: p, name: fmt.Sprintf("c%03d", i), wrong: c.Strict, pods: map[string]*corev1.Pod{},
			})
		}
	}
	expect.Same(t, "plans that cannot be shown", unplayable, others)
	setup(t, expect.Get(queuesOf(p.plays))(t), func(s *settings) { s.before = p.build })
	p.awaitKnown()
	p.ask()
	p.awaitOutcomes()
	for _, c := range p.plays {
		p.run(c.Name, c.judge)
	}
	p.makeWay()
	left := p.podsByName()
	for _, c := range p.right() {
		p.run(c.Name+"/end", func(e *env) { c.judgeEnd(e, left) })
	}
	t.Logf("%d plans, %d of them with another setting", len(p.plays), len(p.plays)-len(p.right()))
}

// playhouse has all plays of one scheduler.
type playhouse struct {
	*env
	plays   []*play
	history *history // from the creation of the askers on
}

// right are the plays that must end as the scenario says.
func (p *playhouse) right() []*play {
	return slices.DeleteFunc(slices.Clone(p.plays), func(c *play) bool { return c.wrong })
}

// play is one plan of a scenario. Its name is that of its queue, and the prefix of its objects.
type play struct {
	*scenario.Case
	house *playhouse
	wrong bool // the scheduler's setting differs from that of the scenario
	name  string
	pods  map[string]*corev1.Pod // as they were created, by the name in the scenario
	asker *corev1.Pod
	// holders are the other askers of the scenario, which hold nodes from the beginning.
	holders []*corev1.Pod
	gone    []string // the names of the pods that were evicted by the time of the check
}

// outcome is the outcome so far. The API server chooses UIDs, and the UID decides between
// pods that are equal in all but the name: such pods may replace each other as victims.
func (c *play) outcome() scenario.Outcome {
	out := c.outcomeByName()
	if want := c.want().Victims; slices.Equal(c.kinds(out.Victims), c.kinds(want)) {
		out.Victims = want
	}
	return out
}

// outcomeByName is the decision about the asker, read from the changes of pods since its creation.
// Every pod that was removed counts as a victim. Without such a pod or a claim, the asker's condition
// PodScheduled names the node on which it waits for leaving pods, or the rule by which it is refused.
func (c *play) outcomeByName() scenario.Outcome {
	out := scenario.Outcome{Asker: c.asker.Name, Kind: planner.Refuse}
	for _, pod := range slices.AppendSeq(append(c.holders, c.asker), maps.Values(c.pods)) {
		if c.house.history.first(pod.UID, func(s sight) bool { return s.gone }) != nil {
			out.Victims = append(out.Victims, pod.Name)
		}
	}
	slices.Sort(out.Victims)
	said := ""
	for _, s := range c.house.history.of(c.asker.UID) {
		if conditionIs(s.pod, held, corev1.ConditionTrue) {
			out.Node = expect.Get(reservations.ParseClaim(conditionOf(s.pod, held).Message))(c.house).Node
		}
		if told := conditionOf(s.pod, corev1.PodScheduled); told != nil {
			said = told.Message
		}
	}
	_, room, waits := strings.Cut(said, string(reasons.WaitingForRoom)+": node ")
	switch {
	case len(out.Victims) > 0:
		out.Kind = planner.Preempt
	case out.Node != "":
		out.Kind = planner.Hold
	case waits:
		out.Kind = planner.Wait
		out.Node, _, _ = strings.Cut(room, " ")
	default:
		out.Rule = refusedBy(said)
	}
	return out
}

// says are the sentences that name the rules by which askers are refused.
var says = map[planner.Rule]string{
	planner.Law2: "(law 2", planner.Law3: "(law 3", planner.Law4: "(law 4",
	planner.Law5: "(law 5", planner.Law6: "(law 6", planner.Law7: "(law 7",
	planner.RuleTooLittle: "pods that may go are not enough", planner.RuleFilters: "the filters refuse",
	planner.RuleForeign: string(planner.RuleForeign),
}

// refusedBy is the rule that is named first; empty for none.
func refusedBy(said string) planner.Rule {
	if strings.Contains(said, string(reasons.PreemptionNever)) {
		return planner.RuleNeverPreempt
	}
	_, said, _ = strings.Cut(said, string(reasons.PreemptionRefused))
	first := planner.Rule("")
	for rule, sentence := range says {
		if before, _, named := strings.Cut(said, sentence); named {
			said, first = before, rule
		}
	}
	return first
}

// kinds describes pods without their names; sorted.
func (c *play) kinds(names []string) []string {
	var kinds []string
	for _, x := range c.State.Pods {
		if slices.Contains(names, c.object(x.Name)) {
			if x.Name = ""; !x.OwnApp {
				x.App = ""
			}
			kinds = append(kinds, fmt.Sprintf("%+v", x))
		}
	}
	slices.Sort(kinds)
	return kinds
}

func (c *play) diff() string { return cmp.Diff(c.want(), c.outcome()) }

func (c *play) judge(e *env) {
	c.gone = c.outcomeByName().Victims
	switch diff := c.diff(); {
	case c.wrong && diff == "":
		e.Errorf("it is not found that it was decided without strictGuarantee: %v", c.outcome())
	case !c.wrong && diff != "":
		e.Errorf("(-want +got)\n%s%s", diff, describe(e.Context(), e.get(c.asker)))
	}
}

// judgeEnd checks which pods are left, and where. An asker that was refused beside
// leaving pods may be allowed more once they are gone, which the scenario does not say.
func (c *play) judgeEnd(e *env, left map[string]*corev1.Pod) {
	want := c.want()
	if want.Kind == planner.Refuse && len(c.leaving()) > 0 {
		return
	}
	for _, x := range c.State.Pods {
		here, went := left[c.object(x.Name)] != nil, slices.Contains(c.gone, c.object(x.Name))
		expect.That(e, x.Protection == planner.Leaving || here != went,
			"pod %s: left is %v; the victims are %v", x.Name, here, c.gone)
	}
	if want.Kind != planner.Refuse && !isPlaced(left, want) {
		e.Errorf("the asker is not on node %s\n%s", want.Node, describe(e.Context(), e.get(c.asker)))
	}
}

func isPlaced(pods map[string]*corev1.Pod, want scenario.Outcome) bool {
	asker := pods[want.Asker]
	return asker != nil && asker.Spec.NodeName == want.Node
}
