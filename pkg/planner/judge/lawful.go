package judge

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Lawful judges a decision by the laws. Its snapshot may be newer than that of the decision,
// but must name the same types in the same order (new ones may follow). It shares no code
// with package search: it adds up what the victims take from each queue, and applies each
// law to the sums and to each victim. It checks neither whether a better plan exists nor, for
// victims on the asker's node, whether each is needed, which only the real filters know.
// A decision to wait is judged by whether the asker fits; one to refuse is always accepted.
// The error lists every law that is broken.
func Lawful(snapshot *planner.Snapshot, d planner.Decision, p planner.Params) error {
	if d.Outcome == planner.Refuse {
		return nil
	}
	j := &judge{snapshot: snapshot, d: d, p: p, ask: vectorOf(snapshot, d.Ask.Request)}
	if err := j.find(); err != nil {
		return err
	}
	var errs []error
	if d.Ask.Never {
		errs = append(errs, errors.New("law 6: the asker has preemptionPolicy Never"))
	}
	for _, v := range j.victims {
		if err := j.judgeVictim(v); err != nil {
			errs = append(errs, fmt.Errorf("victim %s/%s: %w", v.Namespace, v.Name, err))
		}
	}
	errs = append(errs, j.guarantees()...)
	errs = append(errs, j.groupHasEnough()...)
	errs = append(errs, j.roomOnNode(), j.roomBelowMax(j.victims))
	errs = append(errs, j.neededElsewhere()...)
	return errors.Join(errs...)
}

// judge checks one decision.
type judge struct {
	snapshot *planner.Snapshot
	d        planner.Decision
	p        planner.Params
	ask      resources.Vector
	node     *planner.Node
	victims  []*planner.Pod
	nodes    []string // of the victims, in the same order
	// contested are the types of which the node or a queue of the asker has too little, and
	// all requested types if there is none.
	contested []string
}

// find looks up the node and the victims in the current snapshot.
func (j *judge) find() error {
	where := map[string]string{}
	pods := map[string]*planner.Pod{}
	for _, n := range j.snapshot.Nodes {
		if n.Name == j.d.Node {
			j.node = n
		}
		for _, p := range n.Pods {
			where[p.UID], pods[p.UID] = n.Name, p
		}
	}
	if j.node == nil {
		return fmt.Errorf("node %s is not there", j.d.Node)
	}
	if j.snapshot.Queues.Queue(j.d.Ask.Leaf) == nil {
		return errors.New("the asker's queue is not there")
	}
	seen := map[string]bool{}
	for _, v := range j.d.Victims {
		p := pods[v.UID]
		switch {
		case p == nil:
			return fmt.Errorf("victim %s/%s is not there", v.Namespace, v.Name)
		case seen[v.UID]:
			return fmt.Errorf("victim %s/%s is listed twice", v.Namespace, v.Name)
		case p.Protection != planner.Unprotected || j.snapshot.Queues.Queue(p.Leaf) == nil:
			return fmt.Errorf("victim %s/%s is never a victim of queue preemption", v.Namespace, v.Name)
		}
		seen[v.UID] = true
		j.victims, j.nodes = append(j.victims, p), append(j.nodes, where[v.UID])
	}
	j.contested = j.findContested()
	return nil
}

// below splits the path from a leaf to root at the lowest common ancestor with the other
// leaf.
func (j *judge) below(leaf, other queues.ID) (side []*queues.Queue, lca *queues.Queue) {
	otherPath := j.snapshot.Queues.Queue(other).Path
	for _, q := range j.pathToRoot(leaf) {
		if queues.Within(otherPath, q.Path) {
			return side, q
		}
		side = append(side, q)
	}
	return side, nil
}

// findContested returns what the field contested has: the types in which the asker does not
// fit the node, then those in which it exceeds a max on its path, or else all it requests.
func (j *judge) findContested() []string {
	var node, over, all []string
	for name, want := range j.ask.All() {
		all = append(all, name)
		if vectorOf(j.snapshot, j.node.Free).Get(name) < want {
			node = append(node, name)
		}
		for _, q := range j.pathToRoot(j.d.Ask.Leaf) {
			most, limited := q.Max.Get(name)
			if limited && !q.IsRoot() && q.Used().Get(name)+q.Arriving.Get(name)+want > most && !slices.Contains(over, name) {
				over = append(over, name)
			}
		}
	}
	if len(node)+len(over) > 0 {
		return append(node, over...)
	}
	return all
}

// effectivePriority is the priority of a pod after the policies of the queues of a side,
// leaf first (law 6).
func effectivePriority(p int32, side []*queues.Queue) int64 {
	e := int64(p)
	for _, q := range side {
		if q.Policies.PriorityFence {
			e = 0
		}
		e += int64(q.Policies.PriorityOffset)
	}
	return e
}

// judgeVictim judges a victim by the laws about single victims.
func (j *judge) judgeVictim(v *planner.Pod) error {
	if v.Leaf == j.d.Ask.Leaf || v.App == j.d.Ask.App {
		return errors.New("law 3: it is of the asker's queue or application")
	}
	victimSide, lca := j.below(v.Leaf, j.d.Ask.Leaf)
	askSide, _ := j.below(j.d.Ask.Leaf, v.Leaf)
	if len(victimSide) == 0 || len(askSide) == 0 {
		return errors.New("law 3: one queue is within the other")
	}
	if err := j.fences(v, lca); err != nil {
		return err
	}
	if a, b := effectivePriority(v.Priority, victimSide), effectivePriority(j.d.Ask.Priority, askSide); a > b {
		return fmt.Errorf("law 6: its priority is %d, the asker's %d", a, b)
	}
	if err := j.law4(askSide); err != nil {
		return err
	}
	request := vectorOf(j.snapshot, v.Request)
	for _, q := range victimSide {
		if !slices.ContainsFunc(j.contested, func(t string) bool {
			g, _ := q.Guaranteed.Get(t)
			return request.Get(t) > 0 && q.Used().Get(t) > g
		}) {
			return fmt.Errorf("law 5: queue %s is not over its guarantee in what is contested", q.Path)
		}
	}
	return nil
}

// fences judges law 7 and the policy disabled.
func (j *judge) fences(v *planner.Pod, lca *queues.Queue) error {
	for _, q := range j.pathToRoot(j.d.Ask.Leaf) {
		if q.IsFence() && !queues.Within(lca.Path, q.Path) {
			return fmt.Errorf("law 7: it is outside the fence at %s", q.Path)
		}
	}
	if q := j.snapshot.Queues.Queue(v.Leaf); j.isDisabled(q) {
		return fmt.Errorf("preemption is disabled in queue %s", q.Path)
	}
	return nil
}

// isDisabled reports whether policy disabled applies to a queue, by its own setting or by
// inheritance.
func (j *judge) isDisabled(q *queues.Queue) bool {
	for _, a := range j.pathToRoot(q.ID) {
		if a.Policies.Preemption == config.PreemptionDisabled {
			return true
		}
		if a.Managed {
			break
		}
	}
	return false
}

// law4 judges whether the asker's side may ask: its queues are below their guarantees of the
// contested types, and one of them guarantees such a type.
func (j *judge) law4(askSide []*queues.Queue) error {
	some := false
	for _, q := range askSide {
		for _, t := range j.contested {
			g, named := q.Guaranteed.Get(t)
			if !named {
				continue
			}
			some = true
			has := q.Allocated.Get(t).Sub(q.Preempted.Get(t)).Add(q.Arriving.Get(t))
			all, least := j.groupBelow(q, t)
			strict := j.p.StrictGuarantee
			if strict && has.Add(all) > g || !strict && has.Add(all.Sub(least)) >= g {
				return fmt.Errorf("law 4: queue %s uses %s%s", q.Path, ofGuaranteed(t, has, g), j.forGroup(t, all))
			}
		}
	}
	if !some {
		return errors.New("law 4: no queue of the asker guarantees anything contested")
	}
	return nil
}

// guarantees judges law 2 on the complete set.
func (j *judge) guarantees() []error {
	taken := map[queues.ID]resources.Vector{}
	for _, v := range j.victims {
		for _, q := range j.pathToRoot(v.Leaf) {
			taken[q.ID] = taken[q.ID].Add(vectorOf(j.snapshot, v.Request))
		}
	}
	var errs []error
	for id, loss := range taken {
		q := j.snapshot.Queues.Queue(id)
		for t, g := range q.Guaranteed.All() {
			if err := j.law2(q, t, g, loss.Get(t), slices.Contains(j.contested, t)); err != nil {
				errs = append(errs, err)
			}
		}
	}
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return append(errs, j.shortages(taken)...)
}

// law2 judges the amount of one guaranteed type that is taken from one queue: law 2c for a
// queue above the asker, law 2a for one of the victims.
func (j *judge) law2(q *queues.Queue, t string, g, loss resources.Amount, contested bool) error {
	used := q.Used().Get(t)
	if queues.Within(j.snapshot.Queues.Queue(j.d.Ask.Leaf).Path, q.Path) {
		has := used.Add(q.Arriving.Get(t))
		if after := has.Sub(loss).Add(j.ask.Get(t)); after < min(g, has) {
			return fmt.Errorf("law 2: common queue %s would use %s", q.Path, ofGuaranteed(t, after, g))
		}
		return nil
	}
	if after := used.Sub(loss); loss > 0 && (contested || used >= g) && after < g {
		return fmt.Errorf("law 2: queue %s would use %s", q.Path, ofGuaranteed(t, after, g))
	}
	return nil
}

// ofGuaranteed is a usage beside its guarantee, for people.
func ofGuaranteed(t string, used, g resources.Amount) string {
	return fmt.Sprintf("%s of %s guaranteed %s", resources.Format(t, used), resources.Format(t, g), t)
}

// shortages judges law 2b. What the victims' queues come to lack of their guarantees is, by type,
// at most what the asker adds to queues on its own path that lack it and have no victim below.
func (j *judge) shortages(taken map[queues.ID]resources.Vector) []error {
	var lost, gained resources.Vector
	for id, loss := range taken {
		q := j.snapshot.Queues.Queue(id)
		if queues.Within(j.snapshot.Queues.Queue(j.d.Ask.Leaf).Path, q.Path) {
			continue
		}
		missing := q.Guaranteed.Missing(q.Used())
		lost = lost.Add(q.Guaranteed.Missing(q.Used().Sub(loss)).Sub(missing))
	}
	for _, q := range j.pathToRoot(j.d.Ask.Leaf) {
		if _, common := taken[q.ID]; common {
			break
		}
		has := q.Allocated.Sub(q.Preempted).Add(q.Arriving)
		gained = gained.Add(q.Guaranteed.Missing(has).Sub(q.Guaranteed.Missing(has.Add(j.ask))))
	}
	var errs []error
	for t, amount := range lost.All() {
		if amount > gained.Get(t) {
			errs = append(errs, fmt.Errorf("law 2: queues become shorter of %s by %s, the asker's less short by %s",
				t, resources.Format(t, amount), resources.Format(t, gained.Get(t))))
		}
	}
	return errs
}
