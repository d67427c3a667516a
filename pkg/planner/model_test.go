package planner_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// A model is a small cluster written down plainly: usage by queue and node. Whatever a
// planner gets computed (usage of queues, free capacity of nodes) is derived from the
// model, by [model.snapshot] for the planner and by the oracle for itself.
type model struct {
	types   []string
	queues  []*mqueue // root first, parents before their children
	nodes   []*mnode
	pods    []*mpod
	waiting []mwaiting // askers with a plan or a hold, without the asker itself
	budgets []int64
	ask     mask
	strict  bool
	// fits is the answer of filters, apart from amounts, for the asker on a node without
	// some pods, by their UIDs. Nil means that only amounts count.
	fits func(node string, without []string) planner.Fit
}

// unnamed is the amount of a type that a guarantee or max does not name.
const unnamed = -1

type mqueue struct {
	path            string
	parent          int // index; -1 for root
	guaranteed, max []int64
	policies        config.Policies
	dynamic         bool
}

type mnode struct {
	name        string
	allocatable []int64
}

type mpod struct {
	uid, app                   string
	queue                      int // index; -1 for a foreign pod
	node                       int
	request                    []int64
	priority                   int32
	created                    int // seconds
	optedOut, originator, slow bool
	protection                 planner.Protection
	preempted                  bool // of a leaving pod: a plan chose it
	budgets                    []int
}

type mwaiting struct {
	queue   int
	node    int // -1 while no node is held
	request []int64
}

type mask struct {
	app      string
	queue    int
	request  []int64
	priority int32
	never    bool
	members  []mmember // pods that start together with the asker
}

// mmember is a pod that starts together with the asker and has no node.
type mmember struct {
	queue   int
	request []int64
}

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// chain returns a queue and its ancestors up to root.
func (m *model) chain(q int) (out []int) {
	for ; q >= 0; q = m.queues[q].parent {
		out = append(out, q)
	}
	return out
}

func (m *model) find(path string) int {
	return slices.IndexFunc(m.queues, func(q *mqueue) bool { return q.path == path })
}

// addQueue adds a queue below a parent and returns its index.
func (m *model) addQueue(parent int, name string) int {
	q := &mqueue{path: name, parent: parent, policies: config.DefaultPolicies()}
	if parent >= 0 {
		q.path = m.queues[parent].path + "." + name
	}
	for range m.types {
		q.guaranteed, q.max = append(q.guaranteed, unnamed), append(q.max, unnamed)
	}
	m.queues = append(m.queues, q)
	return len(m.queues) - 1
}

func (m *model) isLeaf(q int) bool {
	return !slices.ContainsFunc(m.queues, func(c *mqueue) bool { return c.parent == q })
}

// free is what is free of a type on a node once leaving pods are gone and holders have
// what they wait for.
func (m *model) free(node, t int) int64 {
	left := m.nodes[node].allocatable[t]
	for _, p := range m.pods {
		if p.node == node && p.protection != planner.Leaving {
			left -= p.request[t]
		}
	}
	for _, a := range m.waiting {
		if a.node == node {
			left -= a.request[t]
		}
	}
	return left
}

// view is a tree by ID.
type view map[queues.ID]*queues.Queue

func (v view) Queue(id queues.ID) *queues.Queue { return v[id] }

// snapshot translates the model and prepares the nodes. With a random source it changes the
// order of types, queue IDs, budgets, and the pods on the nodes.
func (m *model) snapshot(chance *rand.Rand) (*planner.Snapshot, *planner.Ask, planner.Params) {
	types, budgets := upTo(len(m.types)), upTo(len(m.budgets))
	ids := upTo(len(m.queues))
	pods := upTo(len(m.pods))
	if chance != nil {
		for _, list := range [][]int{types, budgets, ids[1:], pods} {
			chance.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
	}
	amounts := func(a []int64) planner.Amounts { return each(types, func(t int) int64 { return a[t] }) }
	snapshot := &planner.Snapshot{
		Queues:  m.view(ids),
		Types:   each(types, func(t int) string { return m.types[t] }),
		Budgets: each(budgets, func(b int) int64 { return m.budgets[b] }),
	}
	for n := range m.nodes {
		free := each(types, func(t int) int64 { return m.free(n, t) })
		var on []*planner.Pod
		for _, i := range pods {
			if m.pods[i].node == n {
				on = append(on, m.pods[i].pod(ids, budgets, amounts))
			}
		}
		snapshot.Nodes = append(snapshot.Nodes, planner.NewNode(m.nodes[n].name, amounts(m.nodes[n].allocatable), free, on))
	}
	slices.SortFunc(snapshot.Nodes, func(a, b *planner.Node) int { return strings.Compare(a.Name, b.Name) })
	ask := &planner.Ask{
		UID: "asker", Namespace: "default", Name: "asker", Leaf: queues.ID(ids[m.ask.queue]), App: m.ask.app,
		Request: amounts(m.ask.request), Priority: m.ask.priority, Never: m.ask.never, Group: m.group(ids, amounts),
	}
	p := planner.Params{StrictGuarantee: m.strict}
	if m.fits != nil {
		p.Fits = func(node string, without []*planner.Pod) planner.Fit { return m.fits(node, uidsOf(without)) }
	}
	return snapshot, ask, p
}

// group translates the pods that start together with the asker; nil for none.
func (m *model) group(ids []int, amounts func([]int64) planner.Amounts) *planner.Group {
	if len(m.ask.members) == 0 {
		return nil
	}
	g := &planner.Group{Name: "default/group", Members: make([]string, len(m.ask.members))}
	for q := range m.queues {
		share := planner.Share{Leaf: queues.ID(ids[q])}
		for _, member := range m.ask.members {
			if member.queue == q {
				share.Add(amounts(member.request), amounts(member.request))
			}
		}
		if slices.ContainsFunc(share.Request, func(a int64) bool { return a > 0 }) {
			g.Shares = append(g.Shares, share)
		}
	}
	g.Free = amounts(each(upTo(len(m.types)), m.freeInAll))
	return g
}

// freeInAll is what all nodes together have free of a type.
func (m *model) freeInAll(t int) int64 {
	sum := int64(0)
	for n := range m.nodes {
		sum += max(m.free(n, t), 0)
	}
	return sum
}

func uidsOf(pods []*planner.Pod) []string {
	return each(pods, func(p *planner.Pod) string { return p.UID })
}

// each returns what a function makes of each value; nil without values.
func each[A, B any](all []A, f func(A) B) (out []B) {
	for _, a := range all {
		out = append(out, f(a))
	}
	return out
}

func upTo(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (p *mpod) pod(ids, budgets []int, amounts func([]int64) planner.Amounts) *planner.Pod {
	out := &planner.Pod{
		UID: p.uid, Namespace: "default", Name: p.uid, Leaf: queues.NoQueue, App: p.app, Request: amounts(p.request),
		Priority: p.priority, Created: epoch.Add(time.Duration(p.created) * time.Second),
		OptedOut: p.optedOut, Originator: p.originator, Slow: p.slow, Protection: p.protection,
	}
	if p.queue >= 0 {
		out.Leaf = queues.ID(ids[p.queue])
	}
	out.Budgets = each(p.budgets, func(b int) int { return slices.Index(budgets, b) })
	slices.Sort(out.Budgets)
	return out
}

func (m *model) vector(a []int64) resources.Vector {
	var out []resources.Entry
	for t, amount := range a {
		out = append(out, resources.Entry{Name: m.types[t], Amount: resources.Amount(amount)})
	}
	return resources.VectorOf(out...)
}

func (m *model) named(a []int64) map[string]resources.Amount {
	out := map[string]resources.Amount{}
	for t, amount := range a {
		if amount != unnamed {
			out[m.types[t]] = resources.Amount(amount)
		}
	}
	return out
}

func (m *model) view(ids []int) view {
	v := view{}
	for i, q := range m.queues {
		s := &queues.Settings{Parent: queues.NoQueue, Managed: !q.dynamic}
		s.Name, s.Path, s.Leaf, s.Policies = q.path[strings.LastIndexByte(q.path, '.')+1:], q.path, m.isLeaf(i), q.policies
		s.Guaranteed, s.Max = resources.GuaranteeFrom(m.named(q.guaranteed)), resources.LimitFrom(m.named(q.max))
		if q.parent >= 0 {
			s.Parent = queues.ID(ids[q.parent])
		}
		v[queues.ID(ids[i])] = &queues.Queue{ID: queues.ID(ids[i]), Settings: s}
	}
	for i, q := range m.queues {
		if q.parent >= 0 {
			parent := v[queues.ID(ids[q.parent])]
			parent.Children = append(parent.Children, queues.ID(ids[i]))
		}
	}
	above := func(queue int, f func(*queues.Queue)) {
		for _, q := range m.chain(queue) {
			f(v[queues.ID(ids[q])])
		}
	}
	for _, p := range m.pods {
		request := m.vector(p.request)
		above(p.queue, func(q *queues.Queue) {
			q.Allocated = q.Allocated.Add(request)
			if p.protection == planner.Leaving {
				q.Leaving = q.Leaving.Add(request)
				if p.preempted {
					q.Preempted = q.Preempted.Add(request)
				}
			}
		})
	}
	for _, a := range m.waiting {
		above(a.queue, func(q *queues.Queue) { q.Arriving = q.Arriving.Add(m.vector(a.request)) })
	}
	return v
}

// String shows the model for the analysis of a failure.
func (m *model) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "types %v budgets %v strict %v\nwaiting %+v\nask %+v\n",
		m.types, m.budgets, m.strict, m.waiting, m.ask)
	for i, q := range m.queues {
		fmt.Fprintf(&b, "queue %d %+v\n", i, *q)
	}
	for _, n := range m.nodes {
		fmt.Fprintf(&b, "node %+v\n", *n)
	}
	for _, p := range m.pods {
		fmt.Fprintf(&b, "pod %+v\n", *p)
	}
	return b.String()
}
