package store

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/placement"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// mirror is a pod as the store was told of it: by the informer, and by the steps
// of the scheduler.
type mirror struct {
	Pod
	known bool
	on    string           // its node; empty for none
	uses  resources.Vector // there
	bound bool
}

// mirrored makes the mirror of a pod.
func (c *cluster) mirrored(o *object) mirror {
	if o == nil || o.last == nil || o.last.deleted || o.last.pod.Terminal {
		return mirror{}
	}
	m := mirror{Pod: o.last.pod, known: true, uses: o.last.pod.Request}
	st := c.sites[o.UID]
	switch {
	case m.Node != "":
		m.on, m.bound = m.Node, true
	case m.Foreign:
		if !m.mayAskForeign() {
			return mirror{}
		}
	case st != nil && st.node != "":
		// What was told since counts once it is bound.
		deleting := m.Deleting
		m.Pod, m.on, m.uses = st.assumed, st.node, st.assumed.Request
		m.Deleting = deleting
	case m.Deleting:
		return mirror{}
	}
	return m
}

// mirrors are all pods that the store knows.
func (c *cluster) mirrors() []mirror {
	var out []mirror
	for _, o := range c.objects {
		if m := c.mirrored(o); m.known {
			out = append(out, m)
		}
	}
	return out
}

// asks tells whether the scheduler has the pod: it is of a queue, or a peer's that
// requires a node.
func (o *object) asks() bool { return !o.Foreign || o.Peer && o.RequiredNode != "" }

// holds are all holds but that of one asker, by asker.
func (c *cluster) holds(except types.UID) []reservations.Hold {
	var out []reservations.Hold
	for _, node := range c.store.holds.Nodes() {
		for _, h := range c.store.holds.Holders(node) {
			if h.Asker != except {
				out = append(out, h)
			}
		}
	}
	return out
}

// portrait makes the world for a plan for an asker, of nothing but what the store
// was told and who holds what. Nobody arrives or leaves for the asker itself.
func (c *cluster) portrait(asker types.UID) *victims.World {
	p := portrait{
		cluster: c, pods: c.mirrors(), draft: queues.NewDraftFrom(c.spec), chosen: map[types.UID]bool{}, asker: asker,
		world: &victims.World{Types: []string{"vcore", "memory", "pods"}},
	}
	p.others = c.holds(asker)
	for _, h := range p.others {
		for _, uid := range h.Chosen {
			p.chosen[uid] = true
		}
	}
	p.charge()
	p.world.Queues, p.world.Budgets = p.draft, p.allowances()
	for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
		p.world.Nodes = append(p.world.Nodes, p.node(name))
	}
	return p.world
}

// portrait is a world in the making.
type portrait struct {
	*cluster
	pods   []mirror
	others []reservations.Hold
	draft  *queues.Draft
	chosen map[types.UID]bool
	asker  types.UID
	world  *victims.World
}

func (p *portrait) leaves(m *mirror) bool { return m.on != "" && (m.Deleting || p.chosen[m.UID]) }

// pendingMirror tells whether a pod is known and has no node.
func (c *cluster) pendingMirror(uid types.UID) bool {
	m := c.mirrored(c.object(uid))
	return m.known && m.on == ""
}

// charge fills in what queues use, what leaves them and what arrives.
func (p *portrait) charge() {
	for i := range p.pods {
		m := &p.pods[i]
		if m.on == "" || m.Foreign {
			continue
		}
		p.draft.Update(p.leafOf(m.UID), func(u *queues.Usage) {
			u.Allocated = u.Allocated.Add(m.uses)
			if p.leaves(m) {
				u.Leaving = u.Leaving.Add(m.uses)
			}
			if p.chosen[m.UID] {
				u.Preempted = u.Preempted.Add(m.uses)
			}
		})
	}
	for _, h := range p.others {
		if p.pendingMirror(h.Asker) && !p.object(h.Asker).Foreign {
			p.draft.Update(p.leafOf(h.Asker), func(u *queues.Usage) { u.Arriving = u.Arriving.Add(h.Request) })
		}
	}
}

// leafOf is the queue that a pod was placed in, in the portrait's own tree.
func (p *portrait) leafOf(uid types.UID) queues.ID {
	path := p.pathOf(uid)
	if q, ok := p.draft.Find(path); ok {
		return q.ID
	}
	id, err := p.draft.AddDynamic(path)
	if err != nil {
		p.fault("queue %s: %w", path, err)
	}
	return id
}

func (p *portrait) amounts(v resources.Vector) victims.Amounts {
	var out victims.Amounts
	for _, t := range p.world.Types {
		out = append(out, int64(v.Get(t)))
	}
	return out
}

func (p *portrait) node(name string) *victims.Node {
	n := &victims.Node{Name: name, Allocatable: p.amounts(p.nodes[name].allocatable)}
	free := p.nodes[name].allocatable
	for i := range p.pods {
		m := &p.pods[i]
		if m.on != name {
			continue
		}
		if !p.leaves(m) {
			free = free.Sub(m.uses)
		}
		n.Pods = append(n.Pods, p.pod(m))
	}
	for _, h := range p.holders(name) {
		if h.Asker == p.asker {
			break // those behind it have to do with what it leaves
		}
		if p.pendingMirror(h.Asker) {
			free = free.Sub(h.Request)
		}
	}
	n.Free = p.amounts(free)
	return n
}

func (p *portrait) pod(m *mirror) *victims.Pod {
	v := &victims.Pod{
		UID: string(m.UID), Namespace: m.Namespace, Name: m.Name, Leaf: queues.NoQueue, Request: p.amounts(m.uses),
		Priority: m.Priority, Created: m.Created, OptedOut: p.optedOutMirror(m), Budgets: p.budgetsOver(m),
	}
	if !m.Foreign {
		v.Leaf, v.App = p.leafOf(m.UID), p.appOf(m)
		v.Originator = p.originates(m)
	} else {
		v.Originator = p.originatesAlone(m)
	}
	switch {
	case p.leaves(m):
		v.Protection = victims.Leaving
	case m.Static:
		v.Protection = victims.Static
	case m.RequiredNode != "":
		v.Protection = victims.DaemonSet
	case m.Foreign:
		v.Protection = victims.Foreign
	case !m.bound && !slices.Contains(p.inPermit, m.UID):
		v.Protection = victims.Binding
	}
	return v
}

func (p *portrait) optedOutMirror(m *mirror) bool {
	if m.OptOut != OptOutUnsaid && !p.options.IgnorePodOptOut {
		return m.OptOut == OptOutYes
	}
	return p.classes[m.Class]
}

func (p *portrait) appOf(m *mirror) string {
	return m.Namespace + "/" + m.Labels[placement.KeyApplicationID]
}

// lawful judges what is left of a hold by the laws.
func (c *cluster) lawful(o *object, h reservations.Hold) error {
	w, d, err := c.remaining(o, h)
	if err != nil || len(d.Victims) == 0 {
		return err
	}
	return victims.Lawful(w, d, victims.Params{StrictGuarantee: c.options.StrictGuarantee})
}

// needless tells whether the asker has room though one of those that are left, or
// the only one, stays; or whether it was placed.
func (c *cluster) needless(o *object, h reservations.Hold) bool {
	if c.mirrored(o).on != "" {
		return true
	}
	w, d, err := c.remaining(o, h)
	if err != nil {
		return false
	}
	all := d.Victims
	for i := range all {
		if d.Victims = slices.Delete(slices.Clone(all), i, i+1); len(d.Victims) == 0 {
			d.Outcome = victims.Wait
		}
		if victims.Lawful(w, d, victims.Params{StrictGuarantee: c.options.StrictGuarantee}) == nil {
			return true
		}
	}
	return false
}

// remaining is what is left of a plan, in the portrait of now.
func (c *cluster) remaining(o *object, h reservations.Hold) (*victims.World, victims.Decision, error) {
	left := c.left(h)
	w := c.portrait(o.UID)
	d := victims.Decision{Ask: c.askIn(w, o), Outcome: victims.Preempt, Node: h.Node}
	for i := range w.Nodes {
		for _, p := range w.Nodes[i].Pods {
			if slices.Contains(left, types.UID(p.UID)) {
				d.Victims = append(d.Victims, victims.Victim{Pod: p, Node: w.Nodes[i].Name})
			}
		}
	}
	if len(d.Victims) < len(left) {
		return nil, d, errors.New("a victim is on no node")
	}
	return w, d, nil
}

// askIn is an asker as a world has it.
func (c *cluster) askIn(w *victims.World, o *object) *victims.Ask {
	m := c.mirrored(o)
	p := portrait{cluster: c, draft: w.Queues.(*queues.Draft), world: w}
	return &victims.Ask{
		UID: string(m.UID), Namespace: m.Namespace, Name: m.Name, Leaf: p.leafOf(m.UID), App: p.appOf(&m),
		Request: p.amounts(m.Request), Priority: m.Priority, Never: m.NeverPreempts,
	}
}

// sameWorld compares what the store plans on with the portrait.
func (c *cluster) sameWorld(o *object, a *Attempt) error {
	want := c.portrait(o.UID)
	if got, want := show(a.World, a.Ask), show(want, c.askIn(want, o)); got != want {
		return fmt.Errorf("the store plans on\n%s, and it is\n%s", got, want)
	}
	return nil
}

// show renders a world so that two can be compared.
func show(w *victims.World, ask *victims.Ask) string {
	var b strings.Builder
	amounts := func(a victims.Amounts) string {
		var parts []string
		for t, n := range a {
			if n != 0 {
				parts = append(parts, fmt.Sprintf("%s=%d", w.Types[t], n))
			}
		}
		slices.Sort(parts)
		return strings.Join(parts, " ")
	}
	path := func(id queues.ID) string {
		if q := w.Queues.Queue(id); q != nil {
			return q.Path
		}
		return "none"
	}
	fmt.Fprintf(&b, "ask %s %s {%s} %d %v\n", ask.UID, path(ask.Leaf), amounts(ask.Request), ask.Priority, ask.Never)
	for q := w.Queues.Queue(queues.RootID); q != nil; q = nil {
		showQueues(&b, w.Queues, q)
	}
	for i := range w.Nodes {
		n := w.Nodes[i]
		fmt.Fprintf(&b, "node %s of {%s} free {%s}\n", n.Name, amounts(n.Allocatable), amounts(n.Free))
		pods := slices.SortedFunc(slices.Values(n.Pods), func(a, b *victims.Pod) int { return cmp.Compare(a.UID, b.UID) })
		for _, p := range pods {
			fmt.Fprintf(&b, "  %s %s {%s} %d created %v opted out %v originator %v protection %d budgets %s\n", p.UID, path(p.Leaf),
				amounts(p.Request), p.Priority, p.Created.Unix(), p.OptedOut, p.Originator, p.Protection, showBudgets(w.Budgets, p))
		}
	}
	return b.String()
}

func showQueues(b *strings.Builder, v queues.View, q *queues.Queue) {
	if !q.Allocated.IsZero() || !q.Leaving.IsZero() || !q.Arriving.IsZero() {
		fmt.Fprintf(b, "queue %s allocated %v leaving %v arriving %v\n", q.Path, q.Allocated, q.Leaving, q.Arriving)
	}
	for _, id := range q.Children {
		showQueues(b, v, v.Queue(id))
	}
}

// check judges the state after every move.
func (c *cluster) check() error {
	errs := append([]error{c.store.Check(), c.readJournals()}, c.faults...)
	if c.standby != nil {
		if err := c.standby.Check(); err != nil {
			errs = append(errs, fmt.Errorf("standby: %w", err))
		}
	}
	by := map[types.UID]types.UID{}
	for _, h := range c.holds("") {
		m := c.mirrored(c.object(h.Asker))
		if !m.known || m.bound {
			errs = append(errs, fmt.Errorf("%s holds node %s: known %v, bound %v", h.Name, h.Node, m.known, m.bound))
		}
		if n := c.nodes[h.Node]; n == nil || n.cordoned {
			errs = append(errs, fmt.Errorf("%s holds node %s, which takes no pods", h.Name, h.Node))
		}
		for _, uid := range h.Chosen {
			if v := c.mirrored(c.object(uid)); by[uid] != "" && v.on != "" && !v.Deleting {
				errs = append(errs, fmt.Errorf("%s is to go for %s and %s", uid, by[uid], h.Asker))
			}
			by[uid] = h.Asker
		}
	}
	return errors.Join(errs...)
}
