package store

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// cluster is a world with nodes, where room is made: its scheduler looks for a
// node with room and plans where there is none, an executor lets victims go, and
// another process may stand by.
type cluster struct {
	*world
	options PreemptionOptions
	nodes   map[string]*place // as the API server has them
	classes map[string]bool   // PriorityClasses that are opted out
	budgets map[budgetName]Budget

	cache    map[types.UID]Pod // pods on nodes as the scheduler has them
	changes  int               // of the cache
	sites    map[types.UID]*site
	pending  *planned
	settling *settling
	inPermit []types.UID // as the store was told last
	executor executor
	standby  *Store // of a process that does not lead; nil for none

	diary    diary
	progress int // what happened that does not happen again and again
	faults   []error
}

// place is a node.
type place struct {
	allocatable resources.Vector
	cordoned    bool
	tainted     bool // no pod of a DaemonSet tolerates it
}

// site is what the scheduler knows of a pod of its own.
type site struct {
	node    string // it was assumed there
	assumed Pod    // as it was then
	permit  bool   // it waits in Permit
	saw     int    // changes of the cache when no node took it
	turned  map[string]bool
}

// planned is a plan that was made and is not in force yet.
type planned struct {
	o        *object
	asked    bool
	saw      int // changes of the cache when the nodes were asked
	decision *victims.Decision
}

func newCluster(spec *config.Spec, options PreemptionOptions, plant func(*Store) live) *cluster {
	c := &cluster{
		world:   &world{spec: spec, plant: plant, now: epoch, unfit: map[string]bool{}},
		options: options, nodes: map[string]*place{}, classes: map[string]bool{}, budgets: map[budgetName]Budget{},
	}
	c.restart()
	return c
}

// restart replaces scheduler, executor and store.
func (c *cluster) restart() {
	c.world.restart()
	c.forgetScheduler()
	c.standby = nil
	c.tellNodes(c.live)
	for _, o := range c.objects {
		c.deliver(o)
	}
	c.live.Start(c.now)
}

// forgetScheduler begins with a scheduler and an executor that know nothing.
func (c *cluster) forgetScheduler() {
	c.cache, c.sites, c.pending, c.popped, c.settling = map[types.UID]Pod{}, map[types.UID]*site{}, nil, nil, nil
	c.inPermit, c.executor = nil, executor{}
	c.changes++
}

// tellNodes tells a new store of everything but pods.
func (c *cluster) tellNodes(l live) {
	l.SetPreemption(c.options)
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		l.UpsertNode(name, c.nodes[name].allocatable, c.now)
		l.SetNodeSchedulable(name, !c.nodes[name].cordoned, c.now)
	}
	for _, name := range slices.Sorted(maps.Keys(c.classes)) {
		l.UpsertPriorityClass(name, c.classes[name], c.now)
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.budgets), func(a, b budgetName) int { return compareText(a.name, b.name) }) {
		l.UpsertBudget(c.budgets[key], c.now)
	}
}

func compareText(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// both calls the store that leads, and the one that stands by.
func (c *cluster) both(f func(l live)) {
	f(c.live)
	if c.standby != nil {
		f(c.standby)
	}
}

// standBy begins a process that follows what happens.
func (c *cluster) standBy() {
	c.standby = New(c.spec, clusterOptions)
	c.standby.OpenJournal()
	c.standby.SetStandby(true, c.now)
	c.tellNodes(c.standby)
	for _, o := range c.objects {
		if o.last != nil && !o.last.deleted {
			c.standby.Upsert(o.last.pod, c.now)
		}
	}
	c.standby.Start(c.now)
}

var clusterOptions = Options{Window: 2, MaxWindow: 8}

// takeOver stops the process that leads; the other one leads from now on.
func (c *cluster) takeOver() {
	if c.standby == nil {
		return
	}
	c.store, c.standby = c.standby, nil
	c.live = c.plant(c.store)
	c.forgetScheduler()
	for _, o := range c.objects {
		o.stage, o.forced, o.failed = unseen, false, false
	}
	c.store.TakeActivations()
	c.live.SetStandby(false, c.now)
}

// deliver hands the next event of a pod to the stores.
func (c *cluster) deliver(o *object) {
	if len(o.events) == 0 {
		return
	}
	e := o.events[0]
	o.events, o.last = o.events[1:], &e
	c.hand(e)
}

func (c *cluster) hand(e event) {
	c.both(func(l live) {
		if e.deleted {
			l.Delete(e.pod.UID, c.now)
		} else {
			l.Upsert(e.pod, c.now)
		}
	})
}

// site returns what the scheduler knows of a pod.
func (c *cluster) site(uid types.UID) *site {
	if c.sites[uid] == nil {
		c.sites[uid] = &site{turned: map[string]bool{}}
	}
	return c.sites[uid]
}

// learn lets the scheduler's cache see what was delivered of a pod.
func (c *cluster) learn(o *object) bool {
	if o.last == nil {
		return false
	}
	pod, on := o.last.pod, !o.last.deleted && o.last.pod.Node != "" && !o.last.pod.Terminal
	had, known := c.cache[o.UID]
	switch {
	case on && (!known || had.Node != pod.Node || !had.Request.Equal(pod.Request)):
		c.cache[o.UID] = pod
	case !on && known:
		delete(c.cache, o.UID)
	case !on && o.stage == finished && c.site(o.UID).node != "": // it was bound and ended at once
		c.site(o.UID).node = ""
	default:
		return false
	}
	if st := c.site(o.UID); on {
		st.node = ""
	}
	c.changes++
	return true
}

// free is what the scheduler takes to be free on a node once some pods are gone.
func (c *cluster) free(node string, without map[types.UID]bool) resources.Vector {
	free := c.nodes[node].allocatable
	for uid, p := range c.cache {
		if p.Node == node && !without[uid] {
			free = free.Sub(p.Request)
		}
	}
	for uid, st := range c.sites {
		if _, known := c.cache[uid]; !known && st.node == node && !without[uid] {
			free = free.Sub(st.assumed.Request)
		}
	}
	return free
}

// refusal is what the filters say of a node.
type filterAnswer int

const (
	passes filterAnswer = iota
	tooFull
	isHeld
	unsuited
)

// filter runs the filters for a pod on a node.
func (c *cluster) filter(o *object, node string) filterAnswer {
	n := c.nodes[node]
	switch {
	case n.cordoned || n.tainted && o.RequiredNode != "" || c.misfit(o) || o.RequiredNode != "" && o.RequiredNode != node:
		return unsuited
	case !c.careless() && !c.store.Holds().MayUse(node, o.UID, o.RequiredNode == node).OK:
		return isHeld
	case !c.free(node, nil).Covers(o.Request):
		return tooFull
	}
	return passes
}

// fits runs the filters for a plan.
func (c *cluster) fits(o *object, node string, without []*victims.Pod, leaving []types.UID) victims.Fit {
	n := c.nodes[node]
	if n == nil || n.cordoned || c.misfit(o) || !c.store.Holds().MayJoin(node, o.UID).OK {
		return victims.Never
	}
	gone := map[types.UID]bool{}
	for _, p := range without {
		gone[types.UID(p.UID)] = true
	}
	for _, uid := range leaving {
		gone[uid] = true
	}
	free := c.free(node, gone)
	for _, h := range c.holders(node) { // they are nominated there
		if _, placed := c.cache[h.Asker]; !placed && h.Asker != o.UID && c.site(h.Asker).node == "" {
			free = free.Sub(h.Request)
		}
	}
	if free.Covers(o.Request) {
		return victims.Passes
	}
	return victims.Fails
}

// holders are who holds a node.
func (c *cluster) holders(node string) []reservations.Hold { return c.store.holds.Holders(node) }

// cycle runs the scheduling cycle of the pod that was popped, up to its plan.
func (c *cluster) cycle(random int) {
	o := c.popped
	if o == nil || c.pending != nil || c.settling != nil {
		return
	}
	if !o.Foreign {
		if !c.judged.v.OK() {
			c.live.Refused(o.UID, c.now)
			c.failed(o, false, nil)
			return
		}
	}
	var candidates []string
	names := slices.Sorted(maps.Keys(c.nodes))
	for i := range names {
		name := names[(i+random)%len(names)]
		switch c.filter(o, name) {
		case passes:
			c.assume(o, name, random)
			return
		case isHeld:
			c.site(o.UID).turned[name] = true
			candidates = append(candidates, name)
		case tooFull:
			candidates = append(candidates, name)
		}
	}
	c.failed(o, true, candidates)
}

// failed begins PostFilter.
func (c *cluster) failed(o *object, asked bool, candidates []string) {
	if o.RequiredNode != "" {
		c.decide(o, asked)
		return
	}
	c.plan(o, asked, candidates)
}

func (c *cluster) assume(o *object, node string, random int) {
	c.popped = nil
	before := c.store.Holds()
	if !o.Foreign {
		if v := c.live.Assume(o.UID, node, c.now); !v.OK() {
			c.giveUp(o, held)
			return
		}
		if p := c.store.pods[o.UID]; p == nil || p.state == bound {
			o.stage = binding // by somebody else
			return
		}
	}
	if !before.MayUse(node, o.UID, o.RequiredNode == node).OK {
		c.fault("%s is on node %s, which is held", o.Name, node)
	}
	st := c.site(o.UID)
	st.node, st.permit, st.assumed = node, random%2 == 0 && !o.Foreign, c.mirrored(o).Pod
	if o.Foreign {
		st.assumed = o.Pod
	}
	o.stage = binding
	c.progress++
}

// bind ends the binding cycle.
func (c *cluster) bind(o *object, fails bool) {
	st := c.site(o.UID)
	if o.stage != binding {
		return
	}
	if !o.Foreign && !c.live.Recheck(o.UID).OK() || fails || !o.pending() || c.nodes[st.node] == nil {
		c.unreserve(o)
		return
	}
	o.Node, o.stage = st.node, finished
	c.changed(o)
	c.progress++
}

func (c *cluster) unreserve(o *object) {
	if !o.Foreign {
		c.live.Forget(o.UID, c.now)
	}
	if st := c.site(o.UID); st.node != "" {
		st.node = ""
		c.changes++
	}
	c.giveUp(o, backoff)
}

// plan is PostFilter up to the plan.
func (c *cluster) plan(o *object, asked bool, candidates []string) {
	c.lookInPermit()
	c.pending = &planned{o: o, asked: asked, saw: c.changes}
	attempt, _ := c.live.Attempt(o.UID, o.kind, c.inPermit, c.now)
	if attempt == nil {
		return
	}
	if err := c.sameWorld(o, attempt); err != nil {
		c.fault("plan for %s: %w", o.Name, err)
	}
	w := *attempt.World
	if asked {
		w.Nodes = slices.DeleteFunc(slices.Clone(w.Nodes), func(n *victims.Node) bool { return !slices.Contains(candidates, n.Name) })
	}
	d := victims.Plan(&w, attempt.Ask, victims.Params{StrictGuarantee: attempt.Strict, Fits: c.fitsFor(o, &w)})
	c.pending.decision = &d
}

// lookInPermit lists the pods that wait in Permit, as the store is about to be told.
func (c *cluster) lookInPermit() {
	c.inPermit = nil
	for _, o := range c.objects {
		if o.stage == binding && c.site(o.UID).permit {
			c.inPermit = append(c.inPermit, o.UID)
		}
	}
}

func (c *cluster) fitsFor(o *object, w *victims.World) func(string, []*victims.Pod) victims.Fit {
	leaving := map[string][]types.UID{}
	for i := range w.Nodes {
		for _, p := range w.Nodes[i].Pods {
			if p.Protection == victims.Leaving {
				leaving[w.Nodes[i].Name] = append(leaving[w.Nodes[i].Name], types.UID(p.UID))
			}
		}
	}
	return func(node string, without []*victims.Pod) victims.Fit { return c.fits(o, node, without, leaving[node]) }
}

// conclude is PostFilter from the plan on.
func (c *cluster) conclude() {
	c.settleNode()
	p := c.pending
	if p == nil {
		return
	}
	c.pending, c.popped = nil, nil
	o, d := p.o, p.decision
	switch {
	case d == nil:
	case d.Outcome != victims.Preempt:
		c.live.Decline(o.UID, d, c.now)
	case c.live.Claim(o.UID, d, c.now).None():
		c.progress++
		c.giveUp(o, held)
		return
	}
	if p.asked {
		c.live.Failed(o.UID, o.kind, reasons.New(reasons.NoNodeFits, "no node fits"), c.now)
		o.failed = true
		c.site(o.UID).saw = p.saw // what came since brings it back
	} else {
		c.live.Refused(o.UID, c.now)
	}
	c.giveUp(o, held)
}

func (c *cluster) fault(format string, args ...any) {
	c.faults = append(c.faults, fmt.Errorf(format, args...))
}

// quiet does all that can be done without time passing.
func (c *cluster) quiet() (moved bool) {
	if refs := c.live.TakeActivations(); len(refs) > 0 {
		c.activate(refs)
		moved = true
	}
	moved = c.invite() || moved
	for _, o := range c.objects {
		moved = c.quietOne(o) || moved
	}
	moved = c.executor.work(c, 1) || moved
	c.pop()
	if c.popped != nil {
		c.cycle(0)
		c.conclude()
		moved = true
	}
	return moved || c.store.Returning()
}

// quietOne lets everything happen to a pod that is on its way.
func (c *cluster) quietOne(o *object) (moved bool) {
	for len(o.events) > 0 {
		c.deliver(o)
		moved = true
	}
	moved = c.learn(o) || moved
	before := o.stage
	switch {
	case o.Foreign && !o.asks():
	case o.stage == unseen && !o.gone, o.stage == backoff, o.stage == held && o.failed && c.site(o.UID).saw != c.changes:
		c.site(o.UID).saw = c.changes
		c.gate(o)
		moved = moved || o.stage != before
	case o.stage == binding:
		c.bind(o, false)
		moved = true
	}
	if o.Deleting && !o.gone {
		c.remove(o)
		c.progress++
		moved = true
	}
	return moved
}

// pathOf is the path of the queue that a pod was placed in.
func (c *cluster) pathOf(uid types.UID) string {
	if p := c.store.pods[uid]; p != nil && p.app != nil {
		return c.store.draft.Queue(p.app.leaf).Path
	}
	return ""
}

// limited tells whether what preemption never makes room in stands in the way.
func (c *cluster) limited(uid types.UID) bool {
	p := c.store.pods[uid]
	return p.app == nil || !c.store.judgeLimits(p).OK()
}
