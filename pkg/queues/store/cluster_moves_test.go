package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"k8s.io/apimachinery/pkg/types"
)

// strife is a random history of a cluster.
type strife struct {
	specs   []*config.Spec
	options PreemptionOptions
	moves   []move
}

var strifeKinds = []string{
	"create", "create", "create", "running", "running", "foreign", "deliver", "deliver", "repeat", "drop", "see", "learn",
	"activate", "lose", "pop", "cycle", "conclude", "error", "bind", "bind fails", "permit", "hint", "back", "tick", "tick", "tick",
	"schedule", "schedule", "schedule", "schedule", "schedule", "schedule", "schedule", "schedule", "schedule", "schedule",
	"work", "work", "work", "write", "write", "write", "write", "write", "write", "reap", "reap",
	"remove", "deleting", "finish", "resize", "relabel", "edit", "steal", "ungate", "fit",
	"node", "cordon", "delete node", "class", "budget", "delete budget", "options",
	"reload", "restart", "stand by", "take over", "invite", "quiet",
}

// daemonKinds are the moves of every second history.
var daemonKinds = append(slices.Clone(strifeKinds), "daemon", "daemon", "daemon", "taint")

// chance is where the numbers of a random history come from.
type chance struct{ *rand.Rand }

func (r chance) of(n int) bool        { return r.IntN(n) == 0 }
func (r chance) from(list ...int) int { return list[r.IntN(len(list))] }
func (r chance) seconds(list ...int) time.Duration {
	return time.Duration(r.from(list...)) * time.Second
}

// newStrife makes a random history: nodes that are full of what some queues
// lent, and others that ask for it.
func newStrife(seed int) strife {
	r := chance{rand.New(rand.NewPCG(uint64(seed), 7))}
	one := func(kind string) move { return move{kind: kind, a: r.IntN(100), b: r.IntN(100), n: r.IntN(10)} }
	l := strife{options: PreemptionOptions{
		RetryInterval: r.seconds(2, 15), Round: r.seconds(1, 3), MaxVictims: r.from(0, 0, 1, 2),
		StrictGuarantee: r.of(3), IgnorePodOptOut: r.of(3), HoldTimeout: r.seconds(10, 60),
	}}
	kinds := strifeKinds
	if seed%2 == 1 {
		kinds, l.options.Required = daemonKinds, r.daemonSettings()
	}
	for i := range r.from(1, 2, 2, 3) {
		m := one("node")
		m.a = i
		l.moves = append(l.moves, m)
	}
	for range 3 + r.IntN(14) {
		l.moves = append(l.moves, one("running"))
	}
	for range 1 + r.IntN(5) {
		l.moves = append(l.moves, one("create"), one("schedule"), one("schedule"))
	}
	for range r.from(20, 60, 60, 200) {
		l.moves = append(l.moves, one(kinds[r.IntN(len(kinds))]))
	}
	for range 3 {
		l.specs = append(l.specs, r.contended())
	}
	return l
}

// contended is a tree where some queues have guarantees and others lend.
func (r chance) contended() *config.Spec {
	text := "root\n  a guaranteed.vcore=" + fmt.Sprint(r.from(2, 4, 6)) + "m" + r.quota(false) + "  b parent" + r.quota(r.of(2)) +
		"    x" + r.quota(r.of(2)) + "    y" + r.quota(r.of(3)) + "  c" + r.quota(r.of(3))
	if r.of(5) {
		text += "  d\n    e\n"
	} else {
		text += "  d" + r.quota(r.of(2))
	}
	spec, err := queuestest.Tree(text)
	if err != nil {
		panic(err)
	}
	spec.PreemptionEnabled = !r.of(10)
	spec.Rules, _ = queuestest.Rules("provided")
	return spec
}

// quota is the rest of a queue's line.
func (r chance) quota(guaranteed bool) string {
	text := ""
	if guaranteed {
		text += fmt.Sprintf(" guaranteed.vcore=%dm", 1+r.IntN(5))
	}
	if r.of(4) {
		text += fmt.Sprintf(" guaranteed.memory=%d", 1+r.IntN(3))
	}
	if r.of(4) {
		text += fmt.Sprintf(" max.vcore=%dm", 2+r.IntN(6))
	}
	if r.of(12) {
		text += " maxapps=2"
	}
	if r.of(8) {
		text += " limit=alice;max.vcore=3m"
	}
	text += fmt.Sprintf(" props=preemption.delay:%ds", r.from(1, 3, 8))
	switch r.IntN(12) {
	case 0:
		text += ",preemption.policy:fence"
	case 1:
		text += ",preemption.policy:disabled"
	case 2:
		text += ",priority.policy:fence"
	case 3:
		text += fmt.Sprintf(",priority.offset:%d", r.IntN(5)-2)
	}
	return text + "\n"
}

// run lives the history, lets everything settle, and judges it.
func (l strife) run(plant func(*Store) live) error {
	c := newCluster(l.specs[0], l.options, plant)
	for i, m := range l.moves {
		c.makeMove(m, l.specs)
		if err := c.check(); err != nil {
			return fmt.Errorf("after move %d (%+v): %w", i, m, err)
		}
	}
	if err := c.settle(); err != nil {
		return fmt.Errorf("while settling: %w", err)
	}
	if err := c.judge(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if err := c.clear(); err != nil {
		return fmt.Errorf("when all is gone: %w", err)
	}
	return nil
}

// smallest leaves out every move without which it still goes wrong.
func (l strife) smallest(plant func(*Store) live) (strife, error) {
	err := l.run(plant)
	for i := 0; i < len(l.moves); {
		less := strife{l.specs, l.options, slices.Delete(slices.Clone(l.moves), i, i+1)}
		if e := less.run(plant); e != nil {
			l, err = less, e
			continue
		}
		i++
	}
	return l, err
}

func (c *cluster) makeMove(m move, specs []*config.Spec) {
	switch m.kind {
	case "activate":
		c.activate(c.live.TakeActivations())
	case "lose":
		if m.n == 0 {
			c.live.TakeActivations()
		}
	case "pop":
		c.pop()
	case "cycle":
		c.cycle(m.b)
		if m.n > 2 { // else something happens between the plan and what becomes of it
			c.conclude()
		}
	case "conclude":
		c.conclude()
	case "error": // of a plugin that is not ours
		if o := c.popped; o != nil && c.pending == nil && c.settling == nil && m.n < 3 {
			c.popped = nil
			c.giveUp(o, backoff)
		}
	case "tick":
		c.now = c.now.Add(time.Duration(m.n*m.n) * 500 * time.Millisecond)
		c.both(func(l live) { l.Tick(c.now) })
	case "work":
		c.executor.take(c)
	case "write":
		if m.n < 3 { // victims may leave Permit just before
			for _, o := range c.objects {
				if st := c.site(o.UID); o.stage == binding && c.isChosen(o) {
					st.permit = false
				}
			}
		}
		c.executor.step(c, m.a, m.n*m.n+m.b%3)
	case "quiet":
		c.quiet()
	case "schedule":
		c.schedule(m)
	case "reap":
		c.reap(m)
	case "reload":
		if m.n < 4 {
			c.spec, c.unturned = specs[m.a%len(specs)], nil
		} else {
			c.turn(m.a)
		}
		c.both(func(l live) { l.Configure(c.spec, c.now) })
	case "restart":
		if m.n < 3 {
			claims := c.claims()
			c.restart()
			c.resumed(claims)
		}
	case "stand by":
		if c.standby == nil {
			c.standBy()
		}
	case "take over":
		if c.standby != nil {
			claims := c.deliveredClaims()
			c.takeOver()
			c.resumed(claims)
		}
	case "create", "running", "foreign", "daemon":
		c.create(m)
	default:
		if !c.moveScene(m) {
			c.moveOne(m)
		}
	}
}

// schedule lets the scheduler work on what there is; nobody goes meanwhile.
func (c *cluster) schedule(m move) {
	c.activate(c.live.TakeActivations())
	for _, o := range c.objects {
		for len(o.events) > 0 {
			c.deliver(o)
		}
		c.learn(o)
		if o.stage == unseen && !o.gone && o.asks() {
			c.gate(o)
		}
	}
	c.pop()
	c.cycle(m.b)
	if m.n > 1 {
		c.conclude()
	}
	if o := c.some(m.a, func(o *object) bool { return o.stage == binding && m.n > 4 && !c.site(o.UID).permit }); o != nil {
		c.bind(o, false)
	}
}

// reap lets one of the pods that were deleted end.
func (c *cluster) reap(m move) {
	if o := c.some(m.a, func(o *object) bool { return !o.gone && o.Deleting }); o != nil {
		c.remove(o)
	}
}

// moveScene changes nodes, classes, budgets or options.
func (c *cluster) moveScene(m move) bool {
	name := []string{"n1", "n2", "n3", "n4"}[m.a%4]
	n := c.nodes[name]
	switch m.kind {
	case "node":
		if n == nil {
			n = &place{}
			c.nodes[name] = n
		}
		n.allocatable = resources.VectorOf(resources.Entry{Name: "vcore", Amount: resources.Amount(2 + m.b%5)},
			resources.Entry{Name: "memory", Amount: resources.Amount(3 + m.b/5%5)}, resources.Entry{Name: "pods", Amount: resources.Amount(3 + m.b/25)})
		c.changes++
		c.both(func(l live) { l.UpsertNode(name, n.allocatable, c.now) })
	case "cordon":
		if n != nil {
			n.cordoned = !n.cordoned
			c.changes++
			c.both(func(l live) { l.SetNodeSchedulable(name, !n.cordoned, c.now) })
		}
	case "taint":
		if n != nil {
			n.tainted = !n.tainted
			c.changes++
			c.both(func(l live) { l.NodeChanged(name, c.now) })
		}
	case "delete node":
		if n != nil && m.n < 3 {
			delete(c.nodes, name)
			c.changes++
			c.both(func(l live) { l.DeleteNode(name, c.now) })
		}
	case "class":
		class := []string{"low", "high"}[m.a%2]
		c.classes[class] = m.b%2 == 0
		c.both(func(l live) { l.UpsertPriorityClass(class, c.classes[class], c.now) })
	case "budget":
		b := Budget{Namespace: namespaces[m.a%2], Name: fmt.Sprint("pdb", m.b%2), Generation: int64(m.n), Allowed: int64(m.n % 2),
			Observed: int64(m.n - m.b/2%2), Healthy: int64(m.b / 4 % 4), Desired: int64(m.b / 16 % 4), AlwaysAllow: m.b%3 == 0}
		if m.b%5 == 0 {
			b.Disrupted = map[string]bool{fmt.Sprintf("p%03d", c.serial): true}
		}
		if m.n > 2 {
			b.Matches = func(labels map[string]string) bool { return labels["tier"] != "" || m.n > 6 }
		}
		c.budgets[budgetName{b.Namespace, b.Name}] = b
		c.both(func(l live) { l.UpsertBudget(b, c.now) })
	case "delete budget":
		delete(c.budgets, budgetName{namespaces[m.a%2], fmt.Sprint("pdb", m.b%2)})
		c.both(func(l live) { l.DeleteBudget(namespaces[m.a%2], fmt.Sprint("pdb", m.b%2), c.now) })
	case "options":
		c.options.IgnorePodOptOut, c.options.MaxVictims = m.a%2 == 0, m.n%3
		c.options.HoldTimeout = time.Duration(10+m.b) * time.Second
		c.both(func(l live) { l.SetPreemption(c.options) })
	case "invite":
		c.invite()
	default:
		return false
	}
	return true
}

// moveOne makes a move of one pod.
func (c *cluster) moveOne(m move) {
	own := func(o *object) bool { return !o.gone && !o.Foreign }
	wanted := map[string]func(*object) bool{
		"deliver":    func(o *object) bool { return len(o.events) > 0 },
		"repeat":     func(o *object) bool { return o.last != nil },
		"drop":       func(o *object) bool { return len(o.events) > 1 },
		"see":        func(o *object) bool { return o.stage == unseen && !o.gone && o.asks() },
		"learn":      func(o *object) bool { return o.last != nil },
		"bind":       func(o *object) bool { return o.stage == binding },
		"bind fails": func(o *object) bool { return o.stage == binding },
		"permit":     func(o *object) bool { return o.stage == binding && c.site(o.UID).permit },
		"hint":       func(o *object) bool { return o.stage == held },
		"back":       func(o *object) bool { return o.stage == backoff },
		"remove":     func(o *object) bool { return !o.gone && (o.Deleting || m.n == 0) },
		"deleting":   func(o *object) bool { return !o.gone && !o.Deleting && m.n < 3 },
		"finish":     func(o *object) bool { return !o.gone && o.Node != "" && !o.Terminal && m.n < 4 },
		"resize":     func(o *object) bool { return !o.gone && !o.Terminal && m.n < 5 },
		"relabel":    func(o *object) bool { return own(o) && o.pending() && m.n < 5 },
		"edit":       func(o *object) bool { return own(o) && !o.Terminal },
		"steal":      func(o *object) bool { return o.pending() && !o.Gated && !o.Foreign && len(c.nodes) > 0 && m.n < 2 },
		"ungate":     func(o *object) bool { return !o.gone && o.Gated },
		"fit":        func(o *object) bool { return m.n < 3 },
	}[m.kind]
	o := c.some(m.a, wanted)
	if o == nil {
		return
	}
	switch m.kind {
	case "deliver":
		c.deliver(o)
	case "repeat":
		c.hand(*o.last)
	case "drop":
		o.events = o.events[len(o.events)-1:]
	case "see", "hint", "back":
		c.gate(o)
	case "learn":
		c.learn(o)
	case "bind":
		c.bind(o, false)
	case "permit": // it may go on, and is bound soon
		c.site(o.UID).permit = false
	case "bind fails":
		c.bind(o, true)
	case "fit":
		c.unfit[o.kind] = !c.unfit[o.kind]
		c.changes++
	case "remove":
		c.remove(o)
	default:
		c.edit(o, m)
		c.changed(o)
	}
}

// isChosen tells whether a pod is to go for another one.
func (c *cluster) isChosen(o *object) bool {
	p := c.store.pods[o.UID]
	return p != nil && p.chosenBy != ""
}

// edit changes the truth of a pod.
func (c *cluster) edit(o *object, m move) {
	switch m.kind {
	case "deleting":
		o.Deleting = true
	case "finish":
		o.Terminal = true
	case "resize":
		o.Request = request(m)
	case "relabel":
		if m.n == 0 {
			o.Priority = int32(m.b % 3)
			return
		}
		o.Labels = contendedLabels(m)
	case "edit": // what may change while a pod runs
		switch m.n % 3 {
		case 0:
			o.OptOut, o.Originator = OptOut(m.b%3), Originator(m.b/3%4)
		case 1:
			l := clone(o.Labels)
			l["tier"] = []string{"", "front"}[m.b%2]
			o.Labels = l
		case 2:
			if o.Node != "" {
				o.Health = Health(m.b % 3)
			}
		}
	case "steal":
		if o.Node = c.anyNode(m.b); o.RequiredNode != "" {
			o.Node = o.RequiredNode
		}
	case "ungate":
		o.Gated = false
	}
}

func (c *cluster) anyNode(n int) string { return []string{"n1", "n2", "n3"}[n%3] }

func contendedLabels(m move) map[string]string {
	queue := []string{"root.a", "root.a", "root.a", "root.b.x", "root.b.y", "root.c", "root.c", "root.d"}[m.a%8]
	if m.kind == "running" {
		queue = []string{"root.b.x", "root.b.y", "root.c", "root.c", "root.d", "root.d"}[m.a%6]
	}
	if m.n == 0 && m.b%4 == 0 {
		queue = "root.nowhere"
	}
	return map[string]string{
		placement.KeyApplicationID: fmt.Sprintf("%s-%d", queue, m.b%3), placement.KeyUsername: []string{"alice", "bob"}[m.b/3%2],
		placement.KeyQueue: queue,
	}
}

func (c *cluster) create(m move) {
	c.serial++
	name := fmt.Sprintf("p%03d", c.serial)
	o := &object{stage: unseen, kind: []string{"small", "large", "odd"}[m.a/8%3], Pod: Pod{
		UID: types.UID("u" + name), Name: name, Namespace: namespaces[m.b/6%2], Labels: contendedLabels(m), Request: request(m),
		Created: c.now.Add(-time.Duration(m.b%3*m.b%20) * time.Second), NeverPreempts: m.b == 0, Gated: m.b == 1,
		Class: []string{"", "low", "high"}[m.b%3], OptOut: OptOut(m.a % 9 / 6),
	}}
	if m.a%7 == 0 {
		o.Originator = Originator(m.b % 4)
	}
	if m.b%8 == 0 {
		o.Priority = int32(m.n % 3)
	}
	if m.a%5 == 0 && len(c.objects) > 0 {
		o.Owners = []types.UID{c.objects[m.b%len(c.objects)].UID}
	}
	if m.kind == "daemon" {
		c.daemon(o, m)
		return
	}
	if m.kind != "create" {
		if o.Node = c.nodeWithRoom(o.Request); o.Node == "" {
			return
		}
		o.Gated, o.Health = false, Ready
	}
	switch {
	case m.kind == "foreign":
		o.Foreign, o.Static, o.Labels, o.Peer = true, m.n == 0, nil, m.n%3 == 0
	case m.kind == "running" && m.b%16 == 3:
		o.RequiredNode = o.Node
	}
	c.objects = append(c.objects, o)
	c.changed(o)
}

// nodeWithRoom returns a node that can take the request; empty for none.
func (c *cluster) nodeWithRoom(request resources.Vector) string {
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		free := c.nodes[name].allocatable
		for _, o := range c.objects {
			if st := c.sites[o.UID]; !o.gone && !o.Terminal && (o.Node == name || o.Node == "" && st != nil && st.node == name) {
				free = free.Sub(o.Request)
			}
		}
		if free.Covers(request) {
			return name
		}
	}
	return ""
}
