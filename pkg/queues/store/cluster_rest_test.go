package store

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// claims are what is written on pods that still ask, in the API server.
func (c *cluster) claims() map[types.UID]reservations.Claim {
	out := map[types.UID]reservations.Claim{}
	for _, o := range c.objects {
		if o.pending() && o.Claim != nil {
			out[o.UID] = *o.Claim
		}
	}
	return out
}

// deliveredClaims are what the stores were told of claims.
func (c *cluster) deliveredClaims() map[types.UID]reservations.Claim {
	out := map[types.UID]reservations.Claim{}
	for _, o := range c.objects {
		if m := c.mirrored(o); m.known && !m.bound && !m.Deleting && o.last.pod.Claim != nil {
			out[o.UID] = *o.last.pod.Claim
		}
	}
	return out
}

// resumed judges what a process took up that leads from now on: what the claims
// say, and nothing else.
func (c *cluster) resumed(claims map[types.UID]reservations.Claim) {
	taken := map[types.UID]bool{}
	for _, h := range c.holds("") {
		claim, ok := claims[h.Asker]
		if !ok || claim.Node != h.Node || !claim.Since.Equal(h.Since) {
			c.fault("%s holds node %s, its claim is %+v", h.Name, h.Node, claim)
		}
		for _, uid := range h.Chosen {
			taken[uid] = true
			if !slices.Contains(claim.Victims, uid) {
				c.fault("%s is to go for %s, and is not in its claim", uid, h.Name)
			}
		}
	}
	for _, asker := range slices.Sorted(maps.Keys(claims)) {
		claim := claims[asker]
		if n := c.nodes[claim.Node]; n == nil || n.cordoned || c.pathOf(asker) == "" && !c.object(asker).Foreign {
			continue
		}
		h, ok := c.store.Holds().Of(asker)
		if !ok && c.heldByRequired(claim.Node) && c.object(asker).RequiredNode == "" {
			continue // superseded
		}
		if !ok {
			c.fault("%s has a claim on node %s and holds nothing", asker, claim.Node)
		}
		for _, uid := range claim.Victims {
			if h.Required {
				break // it decides anew at once, and a claim of another may have gone before
			}
			if m := c.mirrored(c.object(uid)); ok && m.on != "" && !slices.Contains(h.Chosen, uid) && !taken[uid] {
				c.fault("%s is in the claim of %s and may stay", uid, asker)
			}
		}
	}
}

// invite lets pods try again that were kept off a held node.
func (c *cluster) invite() (moved bool) {
	for _, node := range c.store.TakeVacated() {
		for _, o := range c.objects {
			if st := c.site(o.UID); st.turned[node] && (o.stage == held || o.stage == backoff) {
				delete(st.turned, node)
				c.gate(o)
				moved = true
			}
		}
	}
	return moved
}

// settle lets everybody work until nothing happens but that pods ask in vain.
func (c *cluster) settle() error {
	last, seen := c.now, c.progress
	for range 20_000 {
		moved := c.quiet()
		if err := c.check(); err != nil {
			return err
		}
		if c.progress != seen {
			last, seen = c.now, c.progress
		}
		if moved {
			continue
		}
		next, due := c.store.NextDeadline()
		if !due || next.Sub(last) > 3*c.options.RetryInterval+c.options.HoldTimeout+30*time.Second {
			return nil
		}
		c.now = latest(c.now, next)
		c.both(func(l live) { l.Tick(c.now) })
	}
	return errors.New("it never comes to rest")
}

// judge compares store and truth at rest.
func (c *cluster) judge() error {
	var listed []Pod
	for _, o := range c.objects {
		if !o.gone && !o.Foreign {
			listed = append(listed, o.Pod)
		}
	}
	errs := []error{c.store.Recount(listed)}
	if c.store.window.taken != 0 {
		errs = append(errs, fmt.Errorf("%d slots are taken", c.store.window.taken))
	}
	for _, h := range c.holds("") {
		if !h.Required || !h.Patient {
			errs = append(errs, fmt.Errorf("%s holds node %s still", h.Name, h.Node))
		}
	}
	for _, p := range c.store.sortedPods() {
		if p.leaves() {
			errs = append(errs, fmt.Errorf("%s leaves still", p.Name))
		}
	}
	for _, o := range c.objects {
		if o.pending() && o.asks() && c.store.pods[o.UID] != nil {
			if err := c.stranded(o); err != nil {
				errs = append(errs, fmt.Errorf("pod %s (%s, in the scheduler's queue: %s): %w", o.Name, c.store.pods[o.UID].state, o.stage, err))
			}
		}
		if _, held := c.store.Holds().Of(o.UID); o.Claim != nil && !o.gone && !o.Terminal && !held && o.known() {
			errs = append(errs, fmt.Errorf("pod %s carries a claim of a hold that is over", o.Name))
		}
	}
	return errors.Join(errs...)
}

// stranded tells whether a pod that could run, or make others go, does not.
func (c *cluster) stranded(o *object) error {
	p := c.store.pods[o.UID]
	if o.RequiredNode != "" && (p.app != nil || o.Foreign) {
		return c.strandedThere(o)
	}
	if p.app == nil {
		if c.store.Explain(o.UID).None() {
			return errors.New("has no queue and nobody says why")
		}
		return nil
	}
	if c.store.judge(p.app, p.Request, queues.OnCommitted).OK() {
		for _, node := range slices.Sorted(maps.Keys(c.nodes)) {
			if c.filter(o, node) == passes {
				return fmt.Errorf("could run on node %s", node)
			}
		}
	}
	if !c.spec.PreemptionEnabled || c.limited(o.UID) {
		return nil
	}
	w := c.portrait(o.UID)
	ask := c.askIn(w, o)
	d := victims.Plan(w, ask, victims.Params{StrictGuarantee: c.options.StrictGuarantee, Fits: c.fitsFor(o, w)})
	if d.Outcome != victims.Refuse {
		return fmt.Errorf("nobody makes room for it, and this is lawful: %s", d)
	}
	return nil
}

// clear deletes all pods: nothing may be left.
func (c *cluster) clear() error {
	for _, o := range c.objects {
		if !o.gone {
			c.remove(o)
		}
	}
	if err := c.settle(); err != nil {
		return err
	}
	s := c.store
	if u := s.Snapshot().Root().Usage; !sameUsage(u, queues.Usage{}) {
		return fmt.Errorf("root has %+v", u)
	}
	if s.holds.Held() || len(s.asking.watching) > 0 || s.asking.due.Len() > 0 || s.asking.current != nil || len(s.pods) > 0 || len(s.owned) > 0 {
		return fmt.Errorf("held %v, watching %d, due %d, pods %d, owners %d", s.holds.Held(), len(s.asking.watching), s.asking.due.Len(), len(s.pods), len(s.owned))
	}
	for name, n := range s.nodes {
		if c.nodes[name] == nil || len(n.pods) > 0 {
			return fmt.Errorf("node %s is remembered", name)
		}
	}
	return nil
}
