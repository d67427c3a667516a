package store

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
)

// executor writes what the store decided, as package evict does: the work of one
// asker in order, one write at a time.
type executor struct{ lanes []*workLane }

// workLane is the work of one asker.
type workLane struct {
	asker   types.UID
	waiting []Work
	now     *Work // under way
	written bool  // its claim is
	going   []Victim
	commits bool // it was committed
	begun   bool // somebody went
}

// take puts what the store has into the lanes.
func (e *executor) take(c *cluster) bool {
	items := c.live.TakeWork()
	for _, w := range items {
		i := slices.IndexFunc(e.lanes, func(l *workLane) bool { return l.asker == w.UID })
		if i < 0 {
			i = len(e.lanes)
			e.lanes = append(e.lanes, &workLane{asker: w.UID})
		}
		e.lanes[i].add(w)
	}
	return len(items) > 0
}

func (l *workLane) add(w Work) {
	same := func(o Work) bool { return o.Kind == w.Kind && o.Hold.Since.Equal(w.Hold.Since) }
	if i := slices.IndexFunc(l.waiting, same); i >= 0 {
		l.waiting[i] = w
		return
	}
	l.waiting = append(l.waiting, w)
}

// over tells whether the hold that is worked on has ended.
func (l *workLane) over() bool {
	return slices.ContainsFunc(l.waiting, func(w Work) bool { return w.Kind == WorkRelease })
}

// work takes what there is and does all of it; fails of 0 lets a delete fail.
func (e *executor) work(c *cluster, fails int) bool {
	moved := e.take(c)
	for e.step(c, 0, fails) {
		moved = true
	}
	return moved
}

// step makes the next write in one of the lanes.
func (e *executor) step(c *cluster, choice, fails int) bool {
	if len(e.lanes) == 0 {
		return false
	}
	i := choice % len(e.lanes)
	l := e.lanes[i]
	if l.now == nil {
		if len(l.waiting) == 0 {
			e.lanes = slices.Delete(e.lanes, i, i+1)
			return true
		}
		l.now, l.written, l.commits, l.begun, l.going = &l.waiting[0], false, false, false, nil
		l.waiting = slices.Clone(l.waiting[1:])
	}
	if l.do(c, fails) {
		l.now = nil
	}
	return true
}

// do makes the next write; it tells whether the work is done.
func (l *workLane) do(c *cluster, fails int) bool {
	w := l.now
	asker := c.object(w.UID)
	if asker == nil || asker.gone || asker.Deleting {
		return true
	}
	switch {
	case w.Kind == WorkTell:
		return true
	case w.Kind == WorkRelease:
		if asker.Claim != nil && !asker.Claim.Since.After(w.Hold.Since) {
			asker.Claim = nil
			c.changed(asker)
			c.progress++
		}
		return true
	case w.Kind == WorkRecord || !l.written:
		claim := w.Hold.Claim()
		asker.Claim = &claim
		c.changed(asker)
		l.written = true
		return w.Kind == WorkRecord || l.over()
	case l.over():
		return true
	case !l.commits:
		return !l.commit(c, asker)
	case len(l.going) == 0:
		c.live.Disrupted(w.UID, c.now)
		return true
	}
	v := l.going[0]
	l.going = l.going[1:]
	if o := c.object(v.UID); o != nil && o.stage == binding && !c.site(v.UID).permit {
		fails = 0 // it left Permit a moment ago, and is being bound
		if w.Hold.Required && !l.begun {
			c.live.CallOff(w.UID, reasons.New(reasons.HoldGivenUp, "%s is being bound", v.Name), c.now)
			return true
		}
	}
	if fails == 0 {
		c.live.GiveUp(w.UID, reasons.New(reasons.HoldGivenUp, "%s cannot be deleted", v.Name), c.now)
		return true
	}
	c.letGo(v.UID)
	l.begun = true
	return false
}

// commit has the plan judged again, by the store and by the laws.
func (l *workLane) commit(c *cluster, asker *object) bool {
	held, ok := c.store.Holds().Of(l.asker)
	var verdict error
	needless, beyond := false, false
	c.lookInPermit()
	if ok && held.Required {
		l.going, l.commits = c.commitRequired(asker, held), true
		return l.going != nil
	}
	if ok {
		verdict, needless, beyond = c.lawful(asker, held), c.needless(asker, held), c.beyond(asker, held)
	}
	going, why := c.live.Commit(l.asker, c.inPermit, c.now)
	l.going, l.commits = going, true
	switch {
	case !ok:
		if why.None() {
			c.fault("commit of %s: it holds nothing", asker.Name)
		}
	case !why.None() && verdict == nil && needless: // nobody is to go in vain
	case why.None() != (verdict == nil && !beyond):
		c.fault("commit of %s: the store says %q, the laws %w", asker.Name, why.Text, orNothing(verdict))
	}
	if left := c.left(held); why.None() && !slices.EqualFunc(going, left, func(v Victim, uid types.UID) bool { return v.UID == uid }) {
		c.fault("commit of %s: %v are to go, %v are left", asker.Name, going, left)
	}
	return why.None()
}

type nothing struct{}

func (nothing) Error() string { return "nothing" }

func orNothing(err error) error {
	if err == nil {
		return nothing{}
	}
	return err
}

// letGo deletes a victim, or turns it away in Permit.
func (c *cluster) letGo(uid types.UID) {
	v := c.object(uid)
	switch {
	case v == nil || v.gone || v.Deleting:
	case v.stage == binding && c.site(uid).permit:
		c.bind(v, true)
	default:
		v.Deleting = true
		c.changed(v)
	}
	c.progress++
}

func (c *cluster) object(uid types.UID) *object {
	for _, o := range c.objects {
		if o.UID == uid {
			return o
		}
	}
	return nil
}

// left are the pods chosen for a hold that were not deleted, as the store was told.
func (c *cluster) left(h reservations.Hold) []types.UID {
	var out []types.UID
	for _, uid := range h.Chosen {
		if m := c.mirrored(c.object(uid)); m.on != "" && !m.Deleting {
			out = append(out, uid)
		}
	}
	return out
}
