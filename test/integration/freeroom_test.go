package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/internal/localcluster"
)

// TestFreeRoomGoesToJobsBelowTheirGuarantee: pods of Jobs end all the time, and more of them wait than
// the guarantee of their queue covers, beside a Deployment that wants all. Each time one ends, the next
// one gets the room, and no pod of the Deployment that is preempted for it later.
func TestFreeRoomGoesToJobsBelowTheirGuarantee(t *testing.T) {
	e := setup(t, belowRoot(`{name: owed, resources: {guaranteed: {vcore: 20}}, properties: {preemption.delay: 1s}},
 {name: loose, properties: {preemption.delay: 1s}}`)) // owed has the guarantee of ecosystemGuarantees
	e.useNodes(6, localcluster.NodeSpec{CPU: "4"})
	c := e.keepHistory()
	for i := range 4 {
		e.runJob(fmt.Sprintf("owed-%d", i), 7, e.template("owed", inQueue("root.owed"), completesAfter(time.Duration(2+i)*time.Second)))
	}
	eventually(t, patience, "the guarantee is in use", func() (bool, string) {
		running, _ := e.podsOf("owed")
		return len(running) >= 20, fmt.Sprint(len(running))
	})
	e.deploy("loose", 40)
	eventually(t, patience, "100 pods of the Jobs have run", func() (bool, string) {
		n := len(c.bound("owed"))
		return n >= 100, fmt.Sprint(n)
	})
	c.tail.catchUp(t.Context(), e)
	victims := c.preempted("owed", "loose")
	there, anywhere := c.avoidable(victims, "owed", "loose")
	t.Logf("measured: %d victims, avoidable %d by their own node and %d by any node; pods bound: %d of owed, %d of loose",
		len(victims), len(there), len(anywhere), len(c.bound("owed")), len(c.bound("loose")))
	// Each of up to 7 pods of the Deployment that got room before the Jobs had their guarantee
	// may go for it. With the order by shares alone 35 and more go.
	expect.Same(t, "victims that were avoidable", "", strings.Join(there, "; "))
	expect.That(t, len(victims) <= 20, "there are %d victims, and 20 are allowed at most", len(victims))
}

// preempted returns the pods that were told to go by the scheduler, in order, in the
// state in which the deletion was first seen.
func (c *history) preempted(groups ...string) []sight {
	return slices.DeleteFunc(c.evicted(groups...), func(s sight) bool {
		return !slices.ContainsFunc(s.pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget && c.Reason == corev1.PodReasonPreemptionByScheduler
		})
	})
}

// ecosystemGuarantees are the guarantees of ecosystemQueues, in milli-CPU.
var ecosystemGuarantees = map[string]int64{"red": 12_000, "blue": 8_000, "owed": 20_000}

// usage is what the pods of a group requested that had a node at a moment, in milli-CPU.
func (c *history) usage(of string, at time.Time) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum int64
	for _, sights := range c.sights {
		then := slices.IndexFunc(sights, func(s sight) bool { return s.at.After(at) })
		if then < 0 {
			then = len(sights)
		}
		if then == 0 {
			continue // it came later
		}
		s := sights[then-1]
		if s.pod.Labels[group] == of && s.pod.Spec.NodeName != "" && !s.gone && !podutil.IsPodPhaseTerminal(s.pod.Status.Phase) {
			sum += s.pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	return sum
}

// bindTime is how long a bind may take on a machine with much to do. A pod that gets its node
// later may be bound earlier.
const bindTime = 250 * time.Millisecond

// underWay is the sum of requests, in milli-CPU, of the binds under way at a moment: those that
// end within bindTime, and before a later moment. Pods that are bound after that one may have
// preempted for it.
func underWay(bound []sight, at, before time.Time) (sum int64) {
	for _, b := range bound {
		if since := b.at.Sub(at); since > 0 && since <= bindTime && b.at.Before(before) {
			sum += b.pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	return sum
}

// avoidable returns the victims that another order would have spared: less than two seconds before one
// was told to go, its queue got a pod beyond its guarantee, while a pod of another queue below its
// guarantee waited that got the victim's node later. Of the two lists the first has those where the pod
// of its queue was bound to the victim's node, the second those where it was bound to any node.
func (c *history) avoidable(victims []sight, groups ...string) (there, anywhere []string) {
	bound := map[string][]sight{}
	for _, g := range groups {
		bound[g] = c.bound(g)
	}
	for _, v := range victims {
		of := v.pod.Labels[group]
		spares := func(b sight) bool {
			since := v.at.Sub(b.at)
			return since >= 0 && since < 2*time.Second && c.usage(of, b.at) > ecosystemGuarantees[of] && slices.ContainsFunc(groups, func(g string) bool {
				return g != of && c.usage(g, b.at)+underWay(bound[g], b.at, v.at) < ecosystemGuarantees[g] && slices.ContainsFunc(bound[g], func(a sight) bool {
					return a.pod.Spec.NodeName == v.pod.Spec.NodeName && a.pod.CreationTimestamp.Time.Before(b.at.Add(-time.Second)) && a.at.After(v.at)
				})
			})
		}
		sparing := slices.DeleteFunc(slices.Clone(bound[of]), func(b sight) bool { return !spares(b) })
		if len(sparing) > 0 {
			anywhere = append(anywhere, v.pod.Name)
		}
		if i := slices.IndexFunc(sparing, func(b sight) bool { return b.pod.Spec.NodeName == v.pod.Spec.NodeName }); i >= 0 {
			const stamp = "15:04:05.000"
			there = append(there, fmt.Sprintf("%s at %s, after %s got its node %s at %s",
				v.pod.Name, v.at.Format(stamp), sparing[i].pod.Name, v.pod.Spec.NodeName, sparing[i].at.Format(stamp)))
		}
	}
	return there, anywhere
}

// planted is a pod of a history: when it was created, got its node and, unless that is zero,
// was preempted, all after the begin.
type planted struct {
	name, of, node       string
	cpu                  string
	created, bound, told time.Duration
}

// plant makes a history of pods.
func plant(pods ...planted) *history {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	c := &history{sights: map[types.UID][]sight{}}
	for _, p := range pods {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: p.name, Labels: map[string]string{group: p.of}, CreationTimestamp: metav1.NewTime(begin.Add(p.created))},
			Spec: corev1.PodSpec{NodeName: p.node, Containers: []corev1.Container{
				{Resources: corev1.ResourceRequirements{Requests: amounts("cpu", p.cpu)}},
			}},
		}
		seen := []sight{{at: begin.Add(p.bound), pod: pod}}
		if p.told > 0 {
			pod, now := pod.DeepCopy(), metav1.NewTime(begin.Add(p.told))
			pod.DeletionTimestamp = &now
			pod.Status.Conditions = []corev1.PodCondition{{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
			}}
			seen = append(seen, sight{at: now.Time, pod: pod})
		}
		c.sights[types.UID(p.name)] = seen
	}
	return c
}

// TestAvoidableVictimsAreCounted plants a victim on node n1 that is told to go after 0.5 s. A
// pod of red gets that node after 1 s.
func TestAvoidableVictimsAreCounted(t *testing.T) {
	const ms, s = time.Millisecond, time.Second
	heir := planted{"heir", "red", "n1", "1", -5 * s, s, 0}
	victim := planted{"victim", "loose", "n1", "1", -s, 0, 500 * ms}
	old := planted{"victim", "loose", "n1", "1", -time.Minute, -time.Minute, 500 * ms}
	for _, test := range []struct {
		name            string
		pods            []planted
		there, anywhere int
	}{
		{"it got the room for which the other pod waited", []planted{victim, heir}, 1, 1},
		{"another pod of its queue got the room", []planted{old, {"borrower", "loose", "n1", "1", -s, 0, 0}, heir}, 1, 1},
		{"another pod of its queue got room elsewhere", []planted{old, {"borrower", "loose", "n2", "1", -s, 0, 0}, heir}, 0, 1},
		{"no pod of its queue got room", []planted{old, heir}, 0, 0},
		{"a pod of its queue got room long before", []planted{old, {"borrower", "loose", "n1", "1", -4 * s, -1600 * ms, 0}, heir}, 0, 0},
		{"the other pod came later", []planted{victim, {"heir", "red", "n1", "1", 0, s, 0}}, 0, 0},
		{"the other pod got another node", []planted{victim, {"heir", "red", "n2", "1", -5 * s, s, 0}}, 0, 0},
		{"the other pod got the node before", []planted{victim, {"heir", "red", "n1", "1", -5 * s, 400 * ms, 0}}, 0, 0},
		{"the other queue had its guarantee", []planted{victim, {"runs", "red", "n2", "12", -time.Minute, -time.Minute, 0}, heir}, 0, 0},
		{"the other queue had its guarantee with a bind under way", []planted{victim, {"binds", "red", "n2", "12", -s, 200 * ms, 0}, heir}, 0, 0},
		{"its queue was within its own guarantee", []planted{{"victim", "blue", "n1", "8", -s, 0, 500 * ms}, heir}, 0, 0},
	} {
		c := plant(test.pods...)
		groups := []string{"red", "blue", "loose"}
		victims := c.preempted(groups...)
		if len(victims) != 1 {
			t.Fatalf("%s: %d victims were planted", test.name, len(victims))
		}
		there, anywhere := c.avoidable(victims, groups...)
		expect.That(t, len(there) == test.there && len(anywhere) == test.anywhere,
			"%s: avoidable are %q by their own node and %q by any", test.name, there, anywhere)
	}
}
