package daemonset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
)

var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)

// A model is the problem in plain numbers: the oracle reads it, and the planner's input
// is made from it. Its filters are ports that only one pod may use.
type model struct {
	node        string
	types       []string
	allocatable []int64
	pods        []*mpod
	before      [][]int64
	budgets     []int64
	ask         mask
	settings    daemonset.Params // without filters
	// filters: the real filters run; refuse: they always reject.
	filters, refuse bool
}

type mpod struct {
	uid                  string
	request              []int64
	priority             int32
	created              int
	optedOut, originator bool
	foreign, peer        bool
	slow                 bool
	protection           planner.Protection // except Foreign
	budgets              []int
	port                 int32 // 0 for none
}

type mask struct {
	request        []int64
	priority       int32
	never, overMax bool
	held           time.Duration
	ports          []int32
}

// input makes the planner's input. With a random source, everything is in another order,
// including the types.
func (m *model) input(chance *rand.Rand) (*daemonset.Node, *daemonset.Ask, daemonset.Params) {
	types, pods, budgets := upTo(len(m.types)), upTo(len(m.pods)), upTo(len(m.budgets))
	if chance != nil {
		for _, list := range [][]int{types, pods, budgets} {
			chance.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		}
	}
	amounts := func(a []int64) planner.Amounts {
		out := each(types, func(t int) int64 { return a[t] })
		for len(out) > 0 && out[len(out)-1] == 0 {
			out = out[:len(out)-1]
		}
		return out
	}
	n := &daemonset.Node{
		Name: m.node, Allocatable: amounts(m.allocatable), Before: each(m.before, amounts),
		Types:   each(types, func(t int) string { return m.types[t] }),
		Budgets: each(budgets, func(b int) int64 { return m.budgets[b] }),
	}
	for _, i := range pods {
		p := m.pods[i]
		pod := &planner.Pod{
			UID: p.uid, Namespace: "default", Name: p.uid, Request: amounts(p.request), Priority: p.priority,
			Created: epoch.Add(time.Duration(p.created) * time.Second), OptedOut: p.optedOut, Originator: p.originator, Slow: p.slow, Protection: p.protection,
		}
		if p.foreign && !p.peer && p.protection == planner.Unprotected {
			pod.Protection = planner.Foreign
		}
		pod.Budgets = each(p.budgets, func(b int) int { return slices.Index(budgets, b) })
		n.Pods = append(n.Pods, pod)
	}
	ask := &daemonset.Ask{Held: m.ask.held, Ask: &planner.Ask{
		UID: "asker", Namespace: "kube-system", Name: "asker", Request: amounts(m.ask.request), Priority: m.ask.priority, Never: m.ask.never,
	}}
	if m.ask.overMax {
		ask.OverMax = "root.system"
	}
	p := m.settings
	if m.filters {
		p.Fits = m.fits
	}
	return n, ask, p
}

// fits is the fake of the real filters.
func (m *model) fits(without []*planner.Pod) planner.Fit {
	gone := each(without, func(p *planner.Pod) int {
		return slices.IndexFunc(m.pods, func(q *mpod) bool { return q.uid == p.UID })
	})
	if slices.Contains(gone, -1) {
		panic("the filters are asked about a pod that is not there")
	}
	if !m.room(gone) {
		panic(fmt.Sprintf("the filters are asked where amounts are missing, without %v\n%s", gone, m))
	}
	if m.passes(gone) {
		return planner.Passes
	}
	return planner.Fails
}

// room reports whether the asker fits by amounts once the pods, and leaving ones, are gone.
func (m *model) room(gone []int) bool {
	for t, want := range m.ask.request {
		free := m.free(t)
		for _, i := range gone {
			if m.pods[i].protection != planner.Leaving {
				free += m.pods[i].request[t]
			}
		}
		if want > 0 && free < want {
			return false
		}
	}
	return true
}

// passes reports whether the filters accept the asker then.
func (m *model) passes(gone []int) bool {
	for i, p := range m.pods {
		if p.protection != planner.Leaving && !slices.Contains(gone, i) && slices.Contains(m.ask.ports, p.port) {
			return !m.filters
		}
	}
	return !m.filters || !m.refuse
}

// free is what is free once leaving pods are gone and holders are placed.
func (m *model) free(t int) int64 {
	free := m.allocatable[t]
	for _, p := range m.pods {
		if p.protection != planner.Leaving {
			free -= p.request[t]
		}
	}
	for _, request := range m.before {
		free -= request[t]
	}
	return free
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

func (m *model) String() string {
	var b strings.Builder
	s := m.settings
	fmt.Fprintf(&b, "%v allocatable %v before %v budgets %v, filters %v %v\n", m.types, m.allocatable, m.before, m.budgets, m.filters, m.refuse)
	fmt.Fprintf(&b, "ask %+v\n", m.ask)
	fmt.Fprintf(&b, "selection %v deviation %d victims %d ",
		s.Selection, ptr.Deref(s.SingleDeviationPercent, -1), ptr.Deref(s.MaxVictims, -1))
	fmt.Fprintf(&b, "order %q foreign %v delay %v\n", s.ClassOrder, s.PreemptForeign, s.StartDelay)
	for i, p := range m.pods {
		fmt.Fprintf(&b, "%d: %+v\n", i, *p)
	}
	return b.String()
}

// generator makes random models with amounts near the limits of the rules.
type generator struct {
	*rand.Rand
	m *model
}

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) between(least, most int) int { return least + g.IntN(most-least+1) }

// generate returns the model of a seed, with a maximal number of pods.
func generate(seed uint64, pods int) *model {
	g := &generator{rand.New(rand.NewPCG(seed, 11)), &model{node: "n1"}}
	g.m.types = append([]string{"vcore"}, [][]string{nil, {"memory"}, {"memory", "gpu"}}[g.IntN(3)]...)
	if g.chance(50) {
		g.m.types = append(g.m.types, "pods")
	}
	g.m.filters = g.chance(40)
	g.m.refuse = g.m.filters && g.chance(3)
	g.whoRuns(pods)
	g.whoAsks()
	g.room()
	g.choices()
	return g.m
}

func (g *generator) request(most int) []int64 {
	out := make([]int64, len(g.m.types))
	for t, name := range g.m.types {
		switch {
		case name == "pods":
			out[t] = 1
		case g.chance(80):
			out[t] = int64(g.between(0, most))
		}
	}
	return out
}

func (g *generator) whoRuns(pods int) {
	m := g.m
	for range g.IntN(3) {
		m.budgets = append(m.budgets, int64(g.IntN(3)))
	}
	for i := range max(g.IntN(pods+1), g.IntN(pods+1)) {
		p := &mpod{
			request: g.request(4), priority: int32(g.between(-1, 2)), created: g.IntN(3),
			optedOut: g.chance(25), originator: g.chance(25), slow: g.chance(10),
		}
		if g.chance(12) {
			p.protection = []planner.Protection{planner.DaemonSet, planner.Static, planner.Leaving, planner.Binding}[g.IntN(4)]
			if p.protection == planner.Binding && p.created%2 == 0 {
				p.protection = []planner.Protection{planner.Refused, planner.TooSlow}[p.created/2%2]
			}
		}
		p.foreign = g.chance(15)
		p.peer = p.foreign && g.chance(40)
		if m.filters && g.chance(25) {
			p.port = int32(1 + g.IntN(3))
		}
		for b := range m.budgets {
			if g.chance(40) {
				p.budgets = append(p.budgets, b)
			}
		}
		if i > 0 && g.chance(45) { // a copy of an earlier pod
			other := *p
			*p = *m.pods[g.IntN(i)]
			p.budgets = other.budgets
			if g.chance(30) {
				p.created = other.created
			}
			if g.chance(20) {
				p.priority = other.priority
			}
			p.slow = other.slow
		}
		p.uid = fmt.Sprintf("p%03d", g.IntN(80)+(i*37%10)*100)
		if slices.ContainsFunc(m.pods, func(q *mpod) bool { return q.uid == p.uid }) {
			p.uid += fmt.Sprint("-", i)
		}
		m.pods = append(m.pods, p)
	}
}

func (g *generator) whoAsks() {
	a := &g.m.ask
	a.request = g.request(6)
	if a.request[0] == 0 && g.chance(80) {
		a.request[0] = int64(g.between(1, 5))
	}
	a.priority = int32(g.between(0, 3))
	a.never, a.overMax = g.chance(3), g.chance(3)
	if g.m.filters {
		for port := int32(1); port <= 3; port++ {
			if g.chance(50) {
				a.ports = append(a.ports, port)
			}
		}
	}
	for range max(g.IntN(6)-3, 0) {
		g.m.before = append(g.m.before, g.request(2))
	}
}

// room makes the node about as large as the sum of its pods.
func (g *generator) room() {
	loose := g.chance(15)
	if g.m.filters {
		loose = g.chance(50)
	}
	g.m.allocatable = make([]int64, len(g.m.types))
	for t := range g.m.types {
		bit := g.between(-1, 3)
		if loose {
			bit = g.between(4, 8)
		}
		g.m.allocatable[t] = max(int64(bit)-g.m.free(t), 0)
	}
}

func (g *generator) choices() {
	s := &g.m.settings
	s.Selection = [][]daemonset.Selection{
		nil, {daemonset.Multiple}, {daemonset.Single}, {daemonset.Single, daemonset.Multiple}, {daemonset.Multiple, daemonset.Single},
	}[g.IntN(5)]
	if g.chance(50) {
		s.SingleDeviationPercent = new([]int32{0, 10, 25, 50, 100, 200}[g.IntN(6)])
	}
	if g.chance(40) {
		s.MaxVictims = new(int32(g.between(1, 3)))
	}
	if g.chance(40) {
		s.ClassOrder = []daemonset.ClassOrder{daemonset.Seed, daemonset.YuniKorn}[g.IntN(2)]
	}
	s.PreemptForeign = g.chance(40)
	if g.chance(15) {
		s.StartDelay, g.m.ask.held = time.Duration(g.IntN(3))*time.Second, time.Duration(g.IntN(3))*time.Second
	}
}
