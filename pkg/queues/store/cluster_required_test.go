package store

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// What a cluster does with pods that require a node.

// settling is a decision that was made and is not in force yet.
type settling struct {
	o        *object
	asked    bool
	saw      int
	why      reasons.Reason // why none was made
	decision *required.Decision
}

// daemonSettings are settings of decisions, mostly the default ones.
func (r chance) daemonSettings() required.Params {
	var p required.Params
	switch r.IntN(6) {
	case 0:
		p.Selection = []required.Selection{required.Single}
	case 1:
		p.Selection = []required.Selection{required.Single, required.Multiple}
	case 2:
		most := int32(1)
		p.MaxVictims = &most
	}
	p.PreemptForeign = r.of(4)
	p.StartDelay = r.seconds(0, 0, 0, 3)
	return p
}

// daemon makes a pod of a DaemonSet for some node, of a queue or of none.
func (c *cluster) daemon(o *object, m move) {
	o.RequiredNode = c.anyNode(m.b)
	o.kind, o.Gated = "", false
	o.Priority = int32(m.n % 3)
	if m.a%3 == 0 {
		o.Foreign, o.Peer, o.Labels = true, true, nil
	}
	c.objects = append(c.objects, o)
	c.changed(o)
}

// known tells whether stores are told of the pod.
func (o *object) known() bool { return !o.Foreign || o.Node != "" || o.mayAskForeign() }

// heldByRequired tells whether a pod holds the node that can run there only.
func (c *cluster) heldByRequired(node string) bool {
	return slices.ContainsFunc(c.holders(node), func(h reservations.Hold) bool { return h.Required })
}

// decide is PostFilter for a pod that requires a node, up to the decision.
func (c *cluster) decide(o *object, asked bool) {
	c.lookInPermit()
	c.settling = &settling{o: o, asked: asked, saw: c.changes}
	attempt, why := c.live.AttemptRequired(o.UID, c.inPermit, c.now)
	if attempt == nil {
		c.settling.why = why
		return
	}
	if err := c.sameNode(o, attempt); err != nil {
		c.fault("decision for %s: %w", o.Name, err)
	}
	gone := c.completed(attempt)
	p := attempt.Params
	p.Fits = func(without []*victims.Pod) victims.Fit { return c.fitsThere(o, attempt, gone, without) }
	d := required.Plan(attempt.Node, attempt.Ask, p)
	c.settling.decision = &d
}

// completed adds what only the scheduler knows of the node, and returns who is gone
// and it has still.
func (c *cluster) completed(a *RequiredAttempt) map[types.UID]bool {
	gone := map[types.UID]bool{}
	for _, o := range c.objects {
		known := slices.ContainsFunc(a.Node.Pods, func(p required.Pod) bool { return p.UID == string(o.UID) })
		request, on := c.cache[o.UID].Request, c.cache[o.UID].Node
		if st := c.sites[o.UID]; on == "" && st != nil && st.node != "" {
			request, on = st.assumed.Request, st.node
		}
		switch {
		case on != a.Node.Name || known:
		case o.last == nil || o.last.deleted || o.last.pod.Terminal:
			gone[o.UID] = true
		default:
			p := portrait{world: &victims.World{Types: a.Node.Types}}
			a.Node.Pods = append(a.Node.Pods, required.Pod{Pod: &victims.Pod{
				UID: string(o.UID), Name: o.Name, Request: p.amounts(request), Protection: victims.Binding,
			}})
			if i := slices.IndexFunc(a.Before, func(r Ref) bool { return r.UID == o.UID }); i >= 0 {
				a.Before, a.Node.Before = slices.Delete(a.Before, i, i+1), slices.Delete(a.Node.Before, i, i+1)
			}
		}
	}
	return gone
}

// fitsThere runs the filters for a decision.
func (c *cluster) fitsThere(o *object, a *RequiredAttempt, gone map[types.UID]bool, without []*victims.Pod) victims.Fit {
	n := c.nodes[a.Node.Name]
	if n == nil || n.cordoned || n.tainted || c.misfit(o) {
		return victims.Never
	}
	all := map[types.UID]bool{}
	for uid := range gone {
		all[uid] = true
	}
	for i := range a.Node.Pods {
		if p := &a.Node.Pods[i]; p.Protection == victims.Leaving {
			all[types.UID(p.UID)] = true
		}
	}
	for _, p := range without {
		all[types.UID(p.UID)] = true
	}
	free := c.free(a.Node.Name, all)
	for _, ref := range a.Before {
		free = free.Sub(c.object(ref.UID).Request)
	}
	if free.Covers(o.Request) {
		return victims.Passes
	}
	return victims.Fails
}

// settleNode is PostFilter for a pod that requires a node, from the decision on.
func (c *cluster) settleNode() {
	p := c.settling
	if p == nil {
		return
	}
	c.settling, c.popped = nil, nil
	has, why := false, p.why
	if p.decision != nil {
		has, why = c.live.Settle(p.o.UID, p.decision, c.now)
	}
	switch {
	case has:
		if len(p.decision.Victims) > 0 {
			c.progress++
		}
	case p.o.Foreign:
		p.o.failed = true
	case !p.asked || why.Code == reasons.OverMax || strings.HasPrefix(string(why.Code), "Over") || strings.HasSuffix(string(why.Code), "MaxApplications"):
		c.live.Refused(p.o.UID, c.now)
	default:
		c.live.Failed(p.o.UID, "", reasons.New(reasons.NoNodeFits, "no node fits"), c.now)
		p.o.failed = true
	}
	c.site(p.o.UID).saw = p.saw
	c.giveUp(p.o, held)
}

// thereAs is the node of an asker as a decision is made on it, from nothing but what
// the store was told and who holds what. Who is in spared is not chosen for it.
func (c *cluster) thereAs(o *object, spared []types.UID) (*required.Node, *required.Ask) {
	p := portrait{
		cluster: c, pods: c.mirrors(), draft: queues.NewDraftFrom(c.spec), chosen: map[types.UID]bool{}, asker: o.UID,
		world: &victims.World{Types: []string{"vcore", "memory", "pods"}}, others: c.holds(o.UID),
	}
	for _, h := range c.holds("") {
		for _, uid := range h.Chosen {
			p.chosen[uid] = !slices.Contains(spared, uid)
		}
	}
	p.charge()
	p.world.Queues = p.draft
	n := &required.Node{Name: o.RequiredNode, Types: p.world.Types, Allocatable: p.amounts(c.nodes[o.RequiredNode].allocatable), Budgets: p.allowances()}
	for i := range p.pods {
		if m := &p.pods[i]; m.on == o.RequiredNode {
			n.Pods = append(n.Pods, required.Pod{Pod: p.pod(m), Peer: m.Peer})
		}
	}
	m := c.mirrored(o)
	own, holds := c.store.Holds().Of(o.UID)
	for _, h := range c.holds(o.UID) {
		if !c.pendingMirror(h.Asker) {
			continue
		}
		other := c.mirrored(c.object(h.Asker))
		before := cmp.Or(cmp.Compare(m.Priority, other.Priority), other.Created.Compare(m.Created), cmp.Compare(other.UID, m.UID)) < 0
		if h.Required && h.Node == o.RequiredNode && before {
			n.Before = append(n.Before, p.amounts(h.Request))
		}
	}
	ask := &required.Ask{Ask: &victims.Ask{
		UID: string(m.UID), Namespace: m.Namespace, Name: m.Name, Leaf: queues.NoQueue, Request: p.amounts(m.Request), Priority: m.Priority, Never: m.NeverPreempts,
	}}
	if holds {
		ask.Held = max(c.now.Sub(own.Since), 0)
	}
	if !o.Foreign {
		ask.OverMax = p.overMax(o.UID, m.Request)
	}
	return n, ask
}

// overMax is the first queue of the path whose max the request would exceed.
func (p *portrait) overMax(uid types.UID, request resources.Vector) string {
	for q := range p.draft.Ancestors(p.leafOf(uid)) {
		if q.IsRoot() {
			continue
		}
		for name, most := range q.Max.All() {
			if want := request.Get(name); want > 0 && q.Allocated.Get(name)-q.Leaving.Get(name)+q.Arriving.Get(name)+want > most {
				return q.Path
			}
		}
	}
	return ""
}

// sameNode compares what the store decides on with that.
func (c *cluster) sameNode(o *object, a *RequiredAttempt) error {
	n, ask := c.thereAs(o, nil)
	got, want := showNode(a.Node, a.Ask), showNode(n, ask)
	if got != want {
		return fmt.Errorf("the store decides on\n%s, and it is\n%s", got, want)
	}
	return nil
}

// showNode renders a node so that two can be compared.
func showNode(n *required.Node, ask *required.Ask) string {
	amounts := func(a victims.Amounts) string {
		var parts []string
		for t, v := range a {
			if v != 0 {
				parts = append(parts, fmt.Sprintf("%s=%d", n.Types[t], v))
			}
		}
		slices.Sort(parts)
		return strings.Join(parts, " ")
	}
	lines := []string{fmt.Sprintf("ask %s {%s} %d never %v over %q held %v", ask.UID, amounts(ask.Request), ask.Priority, ask.Never, ask.OverMax, ask.Held)}
	for _, b := range n.Before {
		lines = append(lines, "before: "+amounts(b))
	}
	var pods []string
	for i := range n.Pods {
		p := &n.Pods[i]
		pods = append(pods, fmt.Sprintf("%s {%s} %d created %v opted out %v originator %v protection %d peer %v budgets %s", p.UID, amounts(p.Request),
			p.Priority, p.Created.Unix(), p.OptedOut, p.Originator, p.Protection, p.Peer, showBudgets(n.Budgets, p.Pod)))
	}
	slices.Sort(pods)
	return strings.Join(append(append(lines, "node "+n.Name+" {"+amounts(n.Allocatable)+"}"), pods...), "\n")
}

// commitRequired has a decision judged again, by the store and by the rules on what
// it was told: who goes may go, makes room, and none is too many. It returns nil
// where nobody is to go.
func (c *cluster) commitRequired(asker *object, h reservations.Hold) []Victim {
	left := c.left(h)
	var broken []error
	if len(left) > 0 {
		broken = c.unfounded(asker, left)
	}
	going, why := c.live.Commit(asker.UID, c.inPermit, c.now)
	switch {
	case !why.None():
		if now, ok := c.store.Holds().Of(asker.UID); !ok || !now.Since.Equal(h.Since) {
			c.fault("commit of %s: the node is not held any more: %s", asker.Name, why)
		}
		if stay := c.left(h); slices.ContainsFunc(stay, func(uid types.UID) bool { return c.store.pods[uid].chosenBy == asker.UID }) {
			c.fault("commit of %s: called off, and %v are to go still", asker.Name, stay)
		}
		return nil
	case len(broken) > 0:
		c.fault("commit of %s: the store lets %v go: %w", asker.Name, going, errors.Join(broken...))
	case !slices.EqualFunc(going, left, func(v Victim, uid types.UID) bool { return v.UID == uid }):
		c.fault("commit of %s: %v are to go, %v are left", asker.Name, going, left)
	}
	return append([]Victim{}, going...)
}

// unfounded lists what speaks against letting pods go for an asker.
func (c *cluster) unfounded(asker *object, left []types.UID) []error {
	var errs []error
	if m := c.mirrored(asker); m.on != "" {
		return []error{fmt.Errorf("it is on node %s", m.on)}
	}
	n, ask := c.thereAs(asker, left)
	if ask.OverMax != "" || ask.Never {
		errs = append(errs, fmt.Errorf("over the max of %q, never %v", ask.OverMax, ask.Never))
	}
	free := slices.Clone(n.Allocatable)
	sub := func(a victims.Amounts, sign int64) {
		for t := range a {
			free[t] -= sign * a[t]
		}
	}
	for _, b := range n.Before {
		sub(b, 1)
	}
	for i := range n.Pods {
		p := &n.Pods[i]
		goes := slices.Contains(left, types.UID(p.UID))
		if !goes && p.Protection != victims.Leaving {
			sub(p.Request, 1)
		}
		foreign := p.Protection == victims.Foreign && (p.Peer || c.options.Required.PreemptForeign)
		if goes && (p.Protection != victims.Unprotected && !foreign || p.Priority > ask.Priority) {
			errs = append(errs, fmt.Errorf("%s is protected (%d) or of priority %d", p.UID, p.Protection, p.Priority))
		}
	}
	for t, want := range ask.Request {
		if want > 0 && free[t] < want {
			errs = append(errs, fmt.Errorf("there is no room without them: %d %s of %d", free[t], n.Types[t], want))
		}
	}
	return errs
}

// strandedThere tells whether a pod that requires a node could run, or make others
// go, and does not.
func (c *cluster) strandedThere(o *object) error {
	n := c.nodes[o.RequiredNode]
	if n == nil || n.cordoned {
		return nil
	}
	p := c.store.pods[o.UID]
	fits := o.Foreign || c.store.judge(p.app, p.Request, queues.OnCommitted).OK()
	if fits && c.filter(o, o.RequiredNode) == passes {
		return errors.New("could run on its node")
	}
	if !o.Foreign && c.limited(o.UID) {
		return nil
	}
	node, ask := c.thereAs(o, nil)
	a := &RequiredAttempt{Node: node}
	for _, h := range c.holds(o.UID) {
		if h.Required && h.Node == o.RequiredNode && len(a.Before) < len(node.Before) {
			a.Before = append(a.Before, Ref{UID: h.Asker})
		}
	}
	params := c.options.Required
	params.Fits = func(without []*victims.Pod) victims.Fit { return c.fitsThere(o, a, nil, without) }
	d := required.Plan(node, ask, params)
	_, holds := c.store.Holds().Of(o.UID)
	switch d.Outcome {
	case required.NoHold, victims.Refuse:
		if holds {
			return fmt.Errorf("holds its node in vain: %s", d)
		}
		return nil
	case victims.Hold:
		if holds && (d.Stopped == required.RuleNoVictims || len(node.Before) > 0) {
			return nil
		}
	}
	return fmt.Errorf("holds %v, and this is to be done: %s", holds, d)
}
