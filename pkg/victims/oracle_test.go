package victims_test

import (
	"cmp"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// An oracle finds the best plan the slow way: it judges every set of pods of
// every node's point of view by the laws as they are written down, and compares
// all that are lawful and make room. It shares no code with the planner. The
// laws and criteria in without are switched off, which makes it a planner with
// a planted bug.
type oracle struct {
	*model
	without  map[string]bool
	path     []int // the ask's queue up to root
	chains   [][]int
	used     [][]int64
	arriving [][]int64
	sums     [][]int64
	// Statistics: the most pods that may go on one node, and how often laws forbade.
	candidates int
	stoppedBy  map[string]int
}

// choice is a plan with its price.
type choice struct {
	node    int
	victims []int // indexes of pods, ascending
	cost    cost
}

// cost is what plans are compared by, in this order.
type cost struct {
	optedOut, violations, originators int64
	priority                          int64
	victims                           int64
	waste, wasteOf                    int64
	created                           []int // youngest first
	edges                             int64
	node                              string
	uids                              []string
}

func newOracle(m *model, without ...string) *oracle {
	o := &oracle{model: m, without: map[string]bool{}, path: m.chain(m.ask.queue), stoppedBy: map[string]int{}}
	for _, law := range without {
		o.without[law] = true
	}
	for q := range m.queues {
		o.chains = append(o.chains, m.chain(q))
		o.used = append(o.used, make([]int64, len(m.types)))
		o.arriving = append(o.arriving, make([]int64, len(m.types)))
		o.sums = append(o.sums, make([]int64, len(m.types)))
	}
	for t := range m.types {
		for _, p := range m.pods {
			for _, q := range m.chain(p.queue) {
				if p.protection != victims.Leaving {
					o.used[q][t] += p.request[t]
				}
			}
		}
		for _, a := range m.waiting {
			for _, q := range m.chain(a.queue) {
				o.arriving[q][t] += a.request[t]
			}
		}
	}
	return o
}

// overMax tells by how much the asker is over the max of a queue of its path.
func (o *oracle) overMax(q, t int) int64 {
	if q == 0 || o.queues[q].max[t] == unnamed || o.ask.request[t] == 0 || o.without["max"] {
		return 0
	}
	return max(o.used[q][t]+o.arriving[q][t]+o.ask.request[t]-o.queues[q].max[t], 0)
}

func (o *oracle) lack(node, t int) int64 {
	if o.ask.request[t] == 0 {
		return 0
	}
	return max(o.ask.request[t]-o.free(node, t), 0)
}

// contested is S.
func (o *oracle) contested(node int) []bool {
	s, any := make([]bool, len(o.types)), false
	for t := range o.types {
		s[t] = o.lack(node, t) > 0
		for _, q := range o.path {
			s[t] = s[t] || o.overMax(q, t) > 0
		}
		any = any || s[t]
	}
	for t := range o.types {
		s[t] = s[t] || !any && o.ask.request[t] > 0
	}
	return s
}

// split returns the queues strictly below the lowest common ancestor, on the
// victim's and on the ask's side, and the common ancestor.
func (o *oracle) split(victim int) (victimSide, askSide []int, lca int) {
	up := o.chain(victim)
	for _, q := range up {
		if slices.Contains(o.path, q) {
			lca = q
			break
		}
		victimSide = append(victimSide, q)
	}
	return victimSide, o.path[:slices.Index(o.path, lca)], lca
}

func (o *oracle) effective(priority int32, below []int) int64 {
	e := int64(priority)
	for _, q := range below {
		p := o.queues[q].policies
		if p.PriorityFence && !o.without["priority fence"] {
			e = 0
		}
		if !o.without["priority offset"] {
			e += int64(p.PriorityOffset)
		}
	}
	return e
}

// fenceRoot is the first fence on the way up from the ask's queue, else root.
func (o *oracle) fenceRoot() int {
	for _, q := range o.path {
		if o.queues[q].policies.Preemption == config.PreemptionFence && !o.without["law 7"] {
			return q
		}
	}
	return 0
}

func (o *oracle) disabled(q int) bool {
	own := o.queues[q]
	if own.policies.Preemption == config.PreemptionDisabled {
		return true
	}
	return own.dynamic && o.disabled(own.parent)
}

// forbids returns what forbids a pod as a victim, whoever else goes.
func (o *oracle) forbids(i, node int, s []bool) string {
	p := o.pods[i]
	if p.protection != victims.Unprotected && !o.without["protection"] || p.queue < 0 {
		return "protection"
	}
	if p.queue == o.ask.queue || p.app == o.ask.app && !o.without["law 3"] {
		return "law 3"
	}
	if o.disabled(p.queue) && !o.without["disabled"] {
		return "disabled"
	}
	victimSide, askSide, lca := o.split(p.queue)
	if !slices.Contains(o.chain(lca), o.fenceRoot()) {
		return "law 7"
	}
	if !o.without["law 6"] && o.effective(p.priority, victimSide) > o.effective(o.ask.priority, askSide) {
		return "law 6"
	}
	if !o.without["law 4"] && !o.mayAsk(askSide, s) {
		return "law 4"
	}
	for _, q := range victimSide {
		over := false
		for t := range o.types {
			g := max(o.queues[q].guaranteed[t], 0)
			over = over || s[t] && p.request[t] > 0 && o.used[q][t] > g
		}
		if !over && !o.without["law 5"] {
			return "law 5"
		}
	}
	if p.node != node && !o.without["P3"] && !slices.ContainsFunc(o.chain(p.queue), func(q int) bool {
		return slices.Contains(o.path, q) && slices.ContainsFunc(upTo(len(o.types)), func(t int) bool { return o.overMax(q, t) > 0 })
	}) {
		return "P3"
	}
	return ""
}

func (o *oracle) mayAsk(askSide []int, s []bool) bool {
	some := false
	for _, q := range askSide {
		for t := range o.types {
			g := o.queues[q].guaranteed[t]
			if !s[t] || g == unnamed {
				continue
			}
			some = true
			has := o.used[q][t] + o.arriving[q][t]
			if o.without["arriving"] {
				has = o.used[q][t]
			}
			if o.strict && has+o.ask.request[t] > g || !o.strict && has >= g {
				return false
			}
		}
	}
	return some
}

// taken is what a set takes from each queue. The next call overwrites it.
func (o *oracle) taken(set []int) [][]int64 {
	out := o.sums
	for q := range out {
		clear(out[q])
	}
	for _, i := range set {
		for _, q := range o.chains[o.pods[i].queue] {
			for t, amount := range o.pods[i].request {
				out[q][t] += amount
			}
		}
	}
	return out
}

// law2 judges the complete set.
func (o *oracle) law2(taken [][]int64, s []bool) bool {
	for i, q := range o.queues {
		common := slices.Contains(o.path, i)
		for t, r := range taken[i] {
			g, used := q.guaranteed[t], o.used[i][t]
			switch {
			case g == unnamed || r == 0:
			case common && !o.without["law 2 common"]:
				has := used + o.arriving[i][t]
				if has-r+o.ask.request[t] < min(g, has) {
					return false
				}
			case !common && !o.without["law 2"] && (s[t] || used >= g) && used-r < g:
				return false
			}
		}
	}
	for t := range o.types {
		if !o.without["law 2 shortage"] && o.shorter(taken, t) > o.lessShort(taken, t) {
			return false
		}
	}
	return true
}

// shorter is by how much queues that only lose become shorter of a type.
func (o *oracle) shorter(taken [][]int64, t int) int64 {
	sum := int64(0)
	for i, q := range o.queues {
		if g := q.guaranteed[t]; g != unnamed && !slices.Contains(o.path, i) {
			sum += max(g-o.used[i][t]+taken[i][t], 0) - max(g-o.used[i][t], 0)
		}
	}
	return sum
}

// lessShort is by how much queues that only gain become less short of a type.
func (o *oracle) lessShort(taken [][]int64, t int) int64 {
	sum := int64(0)
	for _, i := range o.path {
		if slices.ContainsFunc(taken[i], func(r int64) bool { return r > 0 }) {
			break
		}
		if g := o.queues[i].guaranteed[t]; g != unnamed {
			has := o.used[i][t] + o.arriving[i][t]
			sum += max(g-has, 0) - max(g-has-o.ask.request[t], 0)
		}
	}
	return sum
}

// room tells whether the asker runs on the node once the set is gone.
func (o *oracle) room(node int, set []int, taken [][]int64) bool {
	for t, want := range o.ask.request {
		if want == 0 {
			continue
		}
		free := o.free(node, t)
		for _, i := range set {
			if o.pods[i].node == node || o.without["P3"] {
				free += o.pods[i].request[t]
			}
		}
		if free < want {
			return false
		}
	}
	return o.within(taken)
}

// within tells whether no queue of the asker's is over its max then.
func (o *oracle) within(taken [][]int64) bool {
	for t := range o.types {
		for _, q := range o.path {
			if over := o.overMax(q, t); over > taken[q][t] {
				return false
			}
		}
	}
	return true
}

// lawful judges any set of victims. Victims that are not needed are allowed on
// the node, for the laws do not forbid them.
func (o *oracle) lawful(node int, set []int) bool {
	s := o.contested(node)
	for i, pod := range set {
		if o.forbids(pod, node, s) != "" {
			return false
		}
		others := slices.Delete(slices.Clone(set), i, i+1)
		if o.pods[pod].node != node && !o.without["P3"] && o.within(o.taken(others)) {
			return false
		}
	}
	taken := o.taken(set)
	return (!o.ask.never || o.without["never"]) && o.law2(taken, s) && o.room(node, set, taken)
}

// best returns the best plan, and whether there is one.
func (o *oracle) best() (choice, bool) {
	var best *choice
	if o.ask.never && !o.without["never"] {
		return choice{}, false
	}
	for node := range o.nodes {
		s := o.contested(node)
		var may []int
		for i := range o.pods {
			if law := o.forbids(i, node, s); law == "" {
				may = append(may, i)
			} else {
				o.stoppedBy[law]++
			}
		}
		o.candidates = max(o.candidates, len(may))
		o.subsets(may, func(set []int) {
			taken := o.taken(set)
			if !o.room(node, set, taken) {
				return
			}
			if !o.law2(taken, s) {
				o.stoppedBy["law 2"]++
				return
			}
			c := &choice{node, slices.Clone(set), o.price(node, set)}
			if best == nil || o.compare(c.cost, best.cost) < 0 {
				best = c
			}
		})
	}
	if best == nil {
		return choice{}, false
	}
	return *best, true
}

// subsets calls f with every subset.
func (o *oracle) subsets(of []int, f func([]int)) {
	set := make([]int, 0, len(of))
	for bits := range 1 << len(of) {
		set = set[:0]
		for i, pod := range of {
			if bits>>i&1 == 1 {
				set = append(set, pod)
			}
		}
		f(set)
	}
}

func (o *oracle) price(node int, set []int) cost {
	c := cost{node: o.nodes[node].name, priority: -1 << 62, wasteOf: 1}
	disrupted := make([]int64, len(o.budgets))
	freed := make([]int64, len(o.types))
	for _, i := range set {
		p := o.pods[i]
		c.victims++
		if p.optedOut {
			c.optedOut++
		}
		if p.originator {
			c.originators++
		}
		for _, b := range p.budgets {
			disrupted[b]++
		}
		var below []int
		for _, q := range o.chain(p.queue) {
			if q == o.fenceRoot() {
				break
			}
			below = append(below, q)
		}
		c.priority = max(c.priority, o.effective(p.priority, below))
		c.created = append(c.created, p.created)
		c.uids = append(c.uids, p.uid)
		side, _, _ := o.split(p.queue)
		c.edges += int64(len(side))
		if p.node == node {
			for t := range freed {
				freed[t] += p.request[t]
			}
		}
	}
	for b, n := range disrupted {
		c.violations += max(n-max(o.budgets[b], 0), 0)
	}
	for t := range freed {
		waste, of := freed[t]-o.lack(node, t), o.nodes[node].allocatable[t]
		if of == 0 { // more than nothing counts as all
			waste, of = min(waste, 1), 1
		}
		if waste*c.wasteOf > c.waste*of {
			c.waste, c.wasteOf = waste, of
		}
	}
	slices.Sort(c.created)
	slices.Reverse(c.created)
	slices.Sort(c.uids)
	return c
}

// compare orders plans, less harm first.
func (o *oracle) compare(a, b cost) int {
	criteria := []struct {
		name string
		by   int
	}{
		{"opted out", cmp.Compare(a.optedOut, b.optedOut)},
		{"violations", cmp.Compare(a.violations, b.violations)},
		{"originators", cmp.Compare(a.originators, b.originators)},
		{"priority", cmp.Compare(a.priority, b.priority)},
		{"victims", cmp.Compare(a.victims, b.victims)},
		{"waste", cmp.Compare(a.waste*b.wasteOf, b.waste*a.wasteOf)},
		{"creation", -slices.Compare(a.created, b.created)},
		{"edges", cmp.Compare(a.edges, b.edges)},
		{"node", cmp.Compare(a.node, b.node)},
		{"uids", slices.Compare(a.uids, b.uids)},
	}
	for _, c := range criteria {
		if c.by != 0 && !o.without[c.name] {
			return c.by
		}
	}
	return 0
}
