package retrial

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
	"github.com/paddock-scheduler/paddock/pkg/victims/required"
)

// Case is a decision that was put into force, and what there was right after. Of
// Queue and Required one is there.
type Case struct {
	// Victims are those that are let go, as they were without the decision: their
	// Protection does not say that they leave for it.
	Victims  []Victim
	Queue    *Queue
	Required *Required
}

// Victim is a pod that is let go.
type Victim struct {
	*victims.Pod
	Node string
}

// Queue is the case of a queue that takes back what it is guaranteed.
type Queue struct {
	Ask  *victims.Ask
	Node string
	// World has the node of the asker and those of the victims, at least.
	World  *victims.World
	Params victims.Params
}

// Required is the case of a pod that can run on one node only.
type Required struct {
	// Ask says of OverMax what is so now; it is found out again for before.
	Ask *required.Ask
	// Queues are the queues as they are; its Leaf says which is the asker's.
	Queues   queues.View
	Node     *required.Node
	Params   required.Params
	Decision required.Decision
}

// Violation is a rule that was broken.
type Violation struct {
	// Law is its number, such as "2" or "D4"; "victims" where somebody is let go who
	// may never be, "room" where there is not enough afterwards.
	Law  string
	Text string
}

// Judge returns the rules that the decision broke; none is how it should be.
func (c *Case) Judge() []Violation {
	var err error
	switch {
	case c.Queue != nil:
		err = c.lawful()
	case c.Required != nil:
		err = c.judge()
	}
	return violations(err)
}

// lawful judges the case of a queue.
func (c *Case) lawful() error {
	q := c.Queue
	w := *q.World
	d := victims.Decision{Ask: q.Ask, Outcome: victims.Preempt, Node: q.Node}
	for _, v := range c.Victims {
		d.Victims = append(d.Victims, victims.Victim{Pod: v.Pod, Node: v.Node})
	}
	b, err := c.queuesBefore(q.World.Queues, q.Ask, w.Types)
	if err != nil {
		return err
	}
	w.Queues = b
	w.Nodes = make([]*victims.Node, 0, len(q.World.Nodes))
	for _, n := range q.World.Nodes {
		w.Nodes = append(w.Nodes, c.nodeBefore(n))
	}
	return victims.Lawful(&w, d, q.Params)
}

// queuesBefore are the queues as they were while nobody was chosen. It fails where
// less left or arrived than the decision says.
func (c *Case) queuesBefore(now queues.View, ask *victims.Ask, types []string) (*before, error) {
	b := &before{View: now, changed: map[queues.ID]*queues.Queue{}}
	for _, v := range c.Victims {
		request := vectorOf(v.Request, types)
		b.change(v.Leaf, func(u *queues.Usage) { u.Leaving = u.Leaving.Sub(request) })
	}
	request := vectorOf(ask.Request, types)
	b.change(ask.Leaf, func(u *queues.Usage) { u.Arriving = u.Arriving.Sub(request) })
	return b, b.check(ask.Leaf, c.Victims)
}

// nodeBefore is a node as it was while nobody was chosen.
func (c *Case) nodeBefore(n *victims.Node) *victims.Node {
	out := &victims.Node{Name: n.Name, Allocatable: n.Allocatable, Free: slices.Clone(n.Free)}
	for _, p := range n.Pods {
		if v := c.victim(p.UID); v != nil {
			p = v.Pod
			for t, amount := range p.Request {
				for len(out.Free) <= t {
					out.Free = append(out.Free, 0)
				}
				out.Free[t] = int64(resources.Amount(out.Free[t]).Sub(resources.Amount(amount)))
			}
		}
		out.Pods = append(out.Pods, p)
	}
	return out
}

func (c *Case) victim(uid string) *Victim {
	for i := range c.Victims {
		if c.Victims[i].UID == uid {
			return &c.Victims[i]
		}
	}
	return nil
}

// judge judges the case of a pod that requires a node.
func (c *Case) judge() error {
	r := c.Required
	n := *r.Node
	n.Pods = slices.Clone(r.Node.Pods)
	for i := range n.Pods {
		if v := c.victim(n.Pods[i].UID); v != nil {
			n.Pods[i].Pod = v.Pod
		}
	}
	d := r.Decision
	d.Victims = nil
	for _, v := range c.Victims {
		at := slices.IndexFunc(r.Decision.Victims, func(d required.Victim) bool { return d.UID == v.UID })
		if at < 0 {
			return fmt.Errorf("victim %s/%s was never chosen", v.Namespace, v.Name)
		}
		d.Victims = append(d.Victims, r.Decision.Victims[at])
	}
	b, err := c.queuesBefore(r.Queues, r.Ask.Ask, n.Types)
	if err != nil {
		return err
	}
	ask := *r.Ask
	ask.OverMax = b.overMax(ask.Leaf, vectorOf(ask.Request, n.Types))
	return required.Judge(&n, &ask, r.Params, d)
}

// overMax is the path of the queue whose max a request would exceed, from a leaf
// up; empty for none. Root is none (LAWS, words).
func (b *before) overMax(leaf queues.ID, request resources.Vector) string {
	for q := b.Queue(leaf); q != nil && !q.IsRoot(); q = b.Queue(q.Parent) {
		if !q.Max.Allows(q.Expected(), request) {
			return q.Path
		}
	}
	return ""
}

// before is the queues as they were while nobody was chosen.
type before struct {
	queues.View
	changed map[queues.ID]*queues.Queue
}

// Queue returns a queue; nil if there is none.
func (b *before) Queue(id queues.ID) *queues.Queue {
	if q := b.changed[id]; q != nil {
		return q
	}
	return b.View.Queue(id)
}

// change changes what is used in a queue and in all above it.
func (b *before) change(id queues.ID, change func(*queues.Usage)) {
	for q := b.Queue(id); q != nil; q = b.Queue(q.Parent) {
		c := *q
		change(&c.Usage)
		b.changed[q.ID] = &c
	}
}

// check finds queues in which less left or arrived than what the decision says.
func (b *before) check(ask queues.ID, gone []Victim) error {
	leaves := []queues.ID{ask}
	for _, v := range gone {
		leaves = append(leaves, v.Leaf)
	}
	for _, id := range leaves {
		for q := b.Queue(id); q != nil; q = b.Queue(q.Parent) {
			if q.Leaving.HasNegative() || q.Arriving.HasNegative() {
				return fmt.Errorf("the books of queue %s do not have what leaves and arrives by the decision: without it %v leaves, %v arrives", q.Path, q.Leaving, q.Arriving)
			}
		}
	}
	return nil
}

func vectorOf(a victims.Amounts, names []string) resources.Vector {
	var entries []resources.Entry
	for t, amount := range a {
		if t < len(names) {
			entries = append(entries, resources.Entry{Name: names[t], Amount: resources.Amount(amount)})
		}
	}
	return resources.VectorOf(entries...)
}

// violations tells which laws the lines of an error are about.
func violations(err error) []Violation {
	if err == nil {
		return nil
	}
	var out []Violation
	for _, one := range flatten(err) {
		out = append(out, Violation{Law: lawOf(one.Error()), Text: one.Error()})
	}
	return out
}

// flatten lists the errors that were joined; a list that was wrapped is one error.
func flatten(err error) []error {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []error{err}
	}
	if _, itself := err.(interface{ Unwrap() []error }); !itself {
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, flatten(e)...)
	}
	return out
}

// Laws are all that Violation.Law may be.
var Laws = []string{"2", "3", "4", "5", "6", "7", "P3", "D1", "D2", "D3", "D4", "D5", "D6", "D7", "books", "room", "victims"}

// lawOf is the law that a sentence names.
func lawOf(text string) string {
	for _, law := range Laws {
		mark := law + ":"
		if law[0] >= '0' && law[0] <= '9' {
			mark = "law " + mark
		}
		if strings.HasPrefix(text, mark) || strings.Contains(text, " "+mark) {
			return law
		}
	}
	switch {
	case strings.Contains(text, "books"):
		return "books"
	case strings.HasPrefix(text, "victim "):
		return "victims"
	}
	return "room"
}
