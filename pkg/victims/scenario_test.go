package victims_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
	"github.com/paddock-scheduler/paddock/pkg/victims"
)

// TestScenarios runs the files of testdata. Commands:
//
//	queues                    the tree of the input, see queuestest.Tree; forgets everything else
//	node NAME TYPE=N ...      a node; pods=110 unless it says otherwise
//	budget NAME allowed=N     a PodDisruptionBudget
//	pods                      pods on nodes, one a line:
//	  NAME queue=PATH node=NAME TYPE=N ... [app=NAME] [prio=N] [age=DURATION] [budget=NAME]
//	       [optout] [originator] [daemonset|static|leaving|binding|foreign]
//	waiting                   askers with a plan or hold: NAME queue=PATH TYPE=N ... [node=NAME]
//	ask NAME queue=PATH TYPE=N ... [app=NAME] [prio=N] [never]
//	plan NAME [strict]        decides, and prints the decision
//	apply                     does what was decided: the victims leave, the asker runs
//	restart NAME              a pod that left is created again, and asks, as NAME'
//	place NAME node=NAME      an asker runs without preemption
//	usage                     prints what queues use of what they guarantee or limit
//
// An app is the queue's name unless given; an age is 1h. After each plan, brute
// force, Lawful and a world in another order are asked too; a line that begins
// with !! tells of what they would have done otherwise.
func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		s := &scenario{planner: real}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			out, err := s.command(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

// TestScenariosNoticeAWrongPlanner shows when the second opinions speak up.
func TestScenariosNoticeAWrongPlanner(t *testing.T) {
	s := &scenario{planner: buggy("law 2")}
	if err := s.queues("root\n  prod guaranteed.vcore=2\n  test guaranteed.vcore=3"); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"node n1 vcore=4", "pods t1 queue=root.test vcore=2 node=n1", "pods t2 queue=root.test vcore=2 node=n1",
		"ask p1 queue=root.prod vcore=2",
	} {
		kind, rest, _ := strings.Cut(line, " ")
		if err := s.line(kind, strings.Fields(rest)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := s.plan("p1", false)
	if err != nil || !strings.Contains(out, "victim t1") || !strings.Contains(out, "!! outcome is preempt") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// scenario is a model with the asks that could be planned, and what was decided.
type scenario struct {
	m       *model
	asks    map[string]mask
	budgets []string
	left    map[string]*mpod
	last    victims.Decision
	planner planner
	now     int // seconds; grows with each pod that starts
}

// types are the resource types of all scenarios.
var types = []string{resources.CPU, resources.Memory, "gpu", resources.Pods}

func (s *scenario) command(d *datadriven.TestData) (string, error) {
	var args []string
	for _, a := range d.CmdArgs {
		args = append(args, strings.TrimSuffix(a.Key+"="+strings.Join(a.Vals, ","), "="))
	}
	switch d.Cmd {
	case "queues":
		return "", s.queues(d.Input)
	case "apply":
		return s.apply()
	case "usage":
		return s.usage(), nil
	case "pods", "waiting":
		for _, line := range strings.Split(d.Input, "\n") {
			if err := s.line(d.Cmd, strings.Fields(line)); err != nil {
				return "", fmt.Errorf("%s: %w", line, err)
			}
		}
		return "", nil
	}
	if len(args) == 0 {
		return "", fmt.Errorf("%s wants a name", d.Cmd)
	}
	switch name := args[0]; d.Cmd {
	case "plan":
		return s.plan(name, slices.Contains(args, "strict"))
	case "restart":
		return "", s.restart(name)
	default:
		return "", s.line(d.Cmd, args)
	}
}

func (s *scenario) queues(text string) error {
	spec, err := queuestest.Tree(text)
	if err != nil {
		return err
	}
	*s = scenario{m: &model{types: types}, asks: map[string]mask{}, left: map[string]*mpod{}, planner: s.planner, now: 1_000_000}
	var add func(q *config.Queue, parent int)
	add = func(q *config.Queue, parent int) {
		i := s.m.addQueue(parent, q.Name)
		s.m.queues[i].policies = q.Policies
		for t, name := range types {
			if g, ok := q.Guaranteed.Get(name); ok {
				s.m.queues[i].guaranteed[t] = int64(g)
			}
			if most, ok := q.Max.Get(name); ok {
				s.m.queues[i].max[t] = int64(most)
			}
		}
		for _, c := range q.Children {
			add(c, i)
		}
	}
	add(spec.Root, -1)
	return nil
}

// thing is what a line says of a node, pod, asker or budget.
type thing struct {
	mpod
	amounts []int64
	named   []bool
	flags   []string
	allowed int64
}

func (s *scenario) read(words []string) (*thing, error) {
	x := &thing{amounts: make([]int64, len(types)), named: make([]bool, len(types))}
	x.uid, x.queue, x.node, x.created = words[0], -1, -1, s.now-3600
	for _, word := range words[1:] {
		key, value, has := strings.Cut(word, "=")
		var err error
		switch t := slices.Index(types, key); {
		case t >= 0:
			var a resources.Amount
			a, err = queuestest.Amount(key, value)
			x.amounts[t], x.named[t] = int64(a), true
		case !has:
			x.flags = append(x.flags, word)
		default:
			err = s.readKey(x, key, value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
	}
	if x.app == "" && x.queue >= 0 {
		x.app = s.m.queues[x.queue].path
	}
	return x, nil
}

func (s *scenario) readKey(x *thing, key, value string) error {
	var err error
	missing := false
	switch key {
	case "queue":
		x.queue = s.m.find(value)
		missing = x.queue < 0 || !s.m.isLeaf(x.queue)
	case "node":
		x.node = slices.IndexFunc(s.m.nodes, func(n *mnode) bool { return n.name == value })
		missing = x.node < 0
	case "budget":
		x.budgets = append(x.budgets, slices.Index(s.budgets, value))
		missing = x.budgets[0] < 0
	case "app":
		x.app = value
	case "prio":
		var n int64
		n, err = strconv.ParseInt(value, 10, 32)
		x.priority = int32(n)
	case "age":
		var age time.Duration
		age, err = time.ParseDuration(value)
		x.created = s.now - int(age.Seconds())
	case "allowed":
		x.allowed, err = strconv.ParseInt(value, 10, 64)
	default:
		err = fmt.Errorf("what is %q", key)
	}
	if missing {
		err = fmt.Errorf("there is no such %s", key)
	}
	return err
}

func (x *thing) flag(name string) bool {
	i := slices.Index(x.flags, name)
	if i >= 0 {
		x.flags = slices.Delete(x.flags, i, i+1)
	}
	return i >= 0
}

func (s *scenario) line(kind string, words []string) error {
	x, err := s.read(words)
	if err != nil {
		return err
	}
	switch pods := slices.Index(types, resources.Pods); kind {
	case "node":
		if !x.named[pods] {
			x.amounts[pods] = 110
		}
		s.m.nodes = append(s.m.nodes, &mnode{x.uid, x.amounts})
	case "budget":
		s.budgets, s.m.budgets = append(s.budgets, x.uid), append(s.m.budgets, x.allowed)
	case "ask":
		x.amounts[pods] = 1
		s.asks[x.uid] = mask{x.app, x.queue, x.amounts, x.priority, x.flag("never")}
	case "waiting":
		x.amounts[pods] = 1
		s.m.waiting = append(s.m.waiting, mwaiting{x.queue, x.node, x.amounts})
	case "pods":
		x.amounts[pods] = 1
		p := x.mpod
		p.request = x.amounts
		p.optedOut, p.originator = x.flag("optout"), x.flag("originator")
		for i, name := range []string{"", "daemonset", "static", "leaving", "binding", "foreign"} {
			if x.flag(name) {
				p.protection = victims.Protection(i)
			}
		}
		s.m.pods = append(s.m.pods, &p)
	case "place":
		s.start(x.uid, x.node)
	default:
		return fmt.Errorf("what is %s", kind)
	}
	if len(x.flags) > 0 {
		return fmt.Errorf("what is %v", x.flags)
	}
	return nil
}

// start puts an asker on a node.
func (s *scenario) start(name string, node int) {
	a := s.asks[name]
	delete(s.asks, name)
	s.now++
	s.m.pods = append(s.m.pods, &mpod{
		uid: name, app: a.app, queue: a.queue, node: node, request: a.request, priority: a.priority, created: s.now,
	})
}

func (s *scenario) plan(name string, strict bool) (string, error) {
	a, ok := s.asks[name]
	if !ok {
		return "", fmt.Errorf("%s does not ask", name)
	}
	s.m.ask, s.m.strict = a, strict
	_, s.last, _ = s.planner(s.m, nil)
	s.last.Ask.Name = name
	out := s.show()
	for seed := range uint64(3) {
		if err := check(s.m, s.planner, seed); err != nil {
			return out + "!! " + strings.ReplaceAll(err.Error(), "\n", "\n!! ") + "\n", nil
		}
	}
	return out, nil
}

func (s *scenario) show() string {
	var b strings.Builder
	switch d := s.last; d.Outcome {
	case victims.Hold:
		fmt.Fprintf(&b, "hold %s\n", d.Node)
	case victims.Refuse:
		fmt.Fprintf(&b, "refused: %s\n", d.Stopped)
		for _, r := range d.Rejected {
			fmt.Fprintf(&b, "  %d of %s\n", r.Pods, r.Rule)
		}
	case victims.Preempt:
		fmt.Fprintf(&b, "preempt for %s on %s, short of %s\n", d.Ask.Name, d.Node, strings.Join(d.Contested, " "))
		for _, v := range d.Victims {
			fmt.Fprintf(&b, "  victim %s of %s", v.Name, v.Queue)
			if v.Node != d.Node {
				fmt.Fprintf(&b, " on %s", v.Node)
			}
			b.WriteByte('\n')
		}
		if d.OptedOut > 0 {
			fmt.Fprintf(&b, "  opted out: %d\n", d.OptedOut)
		}
		if d.Violations > 0 {
			fmt.Fprintf(&b, "  budgets violated: %d\n", d.Violations)
		}
		for _, c := range d.Changes {
			name := resources.Format(c.Type, c.Used) + " - " + resources.Format(c.Type, c.Taken)
			if c.Ask {
				name += " + " + resources.Format(c.Type, c.Asked)
			}
			fmt.Fprintf(&b, "  %s %s %s, guaranteed %s\n", c.Queue, c.Type, name, resources.Format(c.Type, c.Guaranteed))
		}
	}
	return b.String()
}

func (s *scenario) apply() (string, error) {
	if s.last.Outcome == victims.Refuse {
		return "", fmt.Errorf("the last plan refused")
	}
	for _, v := range s.last.Victims {
		i := slices.IndexFunc(s.m.pods, func(p *mpod) bool { return p.uid == v.UID })
		s.left[v.UID] = s.m.pods[i]
		s.m.pods = slices.Delete(s.m.pods, i, i+1)
	}
	s.start(s.last.Ask.Name, slices.IndexFunc(s.m.nodes, func(n *mnode) bool { return n.name == s.last.Node }))
	return s.usage(), nil
}

func (s *scenario) restart(name string) error {
	p := s.left[name]
	if p == nil {
		return fmt.Errorf("%s did not leave", name)
	}
	s.asks[name+"'"] = mask{p.app, p.queue, p.request, p.priority, false}
	return nil
}

// usage tells what the queues use of what they guarantee or limit.
func (s *scenario) usage() string {
	o := newOracle(s.m)
	var b strings.Builder
	for i, q := range s.m.queues {
		var words []string
		for t, name := range types {
			a := func(n int64) string { return resources.Format(name, resources.Amount(n)) }
			if q.guaranteed[t] != unnamed {
				words = append(words, fmt.Sprintf("%s %s of %s guaranteed", name, a(o.used[i][t]), a(q.guaranteed[t])))
			}
			if q.max[t] != unnamed {
				words = append(words, fmt.Sprintf("%s %s of max %s", name, a(o.used[i][t]), a(q.max[t])))
			}
		}
		if len(words) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", q.path, strings.Join(words, ", "))
		}
	}
	return b.String()
}
