package daemonset_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/planner/daemonset"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// TestStories runs the scenarios of testdata. A file is a sequence of commands, each with
// its output below a line of dashes:
//
//	node NAME TYPE=N ...   a node; pods=110 by default. Pods and askers that follow
//	                       are of the last node that was named
//	budget NAME allowed=N  a PodDisruptionBudget
//	pods                   pods on the node, one per line:
//	  NAME TYPE=N ... [prio=N] [age=DURATION] [budget=NAME] [port=N] [optout] [originator]
//	       [daemonset|static|leaving|binding] [foreign|peer] [slow]
//	ask NAME TYPE=N ...    a node-bound pod: [prio=N] [port=N] [never] [overmax]
//	settings               [selection=single,multiple] [deviation=PERCENT] [maxvictims=N]
//	                       [order=YuniKorn] [foreign] [delay=DURATION]; replaces earlier ones
//	plan NAME              decides, and prints the decision. If it holds the node, the
//	                       asker is from then on a holder before the later ones
//	apply                  the victims of the last decision leave
//	gone                   leaving pods are gone
//	wait DURATION          time passes
//	place NAME             the asker runs on its node
//
// An age is 1h by default. After each plan, the test also runs brute force, Judge and the
// planner on the input in another order. A line that begins with !! reports a difference.
func TestStories(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		s := &story{plan: real, nodes: map[string]*place{}, asks: map[string]*asker{}}
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			out, err := s.command(d)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out
		})
	})
}

// TestStoriesNoticeAWrongPlanner shows that these checks report differences.
func TestStoriesNoticeAWrongPlanner(t *testing.T) {
	s := &story{plan: buggy("free"), nodes: map[string]*place{}, asks: map[string]*asker{}}
	out := ""
	datadriven.RunTestFromString(t, `
node n1 vcore=10
----

pods
a vcore=2
b vcore=2
c vcore=2
----

ask logs vcore=5
----

plan logs
----
`, func(t *testing.T, d *datadriven.TestData) string {
		out = expect.Get(s.command(d))(t)
		return ""
	})
	if !strings.Contains(out, "!! victims") {
		t.Fatal(out)
	}
}

// types are the resource types of all scenarios.
var types = []string{resources.CPU, resources.Memory, "gpu", resources.Pods}

// story is the current state of a scenario.
type story struct {
	plan     planFunc
	nodes    map[string]*place
	asks     map[string]*asker
	here     *place
	budgets  []string
	allowed  []int64
	settings settings
	now      time.Duration
	last     *daemonset.Decision
	lastAt   *place
}

// place is a node.
type place struct {
	name        string
	allocatable []int64
	pods        []*mpod
	holders     []*asker
}

type asker struct {
	mask
	name  string
	place *place
	since time.Duration
}

func (s *story) command(d *datadriven.TestData) (string, error) {
	line := d.Cmd
	for _, arg := range d.CmdArgs {
		line += " " + arg.String()
	}
	words := strings.Fields(strings.NewReplacer("(", "", ")", "", ", ", ",").Replace(line))[1:]
	switch d.Cmd {
	case "pods":
		for _, line := range strings.Split(strings.TrimSpace(d.Input), "\n") {
			if err := s.pod(strings.Fields(line)); err != nil {
				return "", err
			}
		}
		return "", nil
	case "node", "ask", "budget":
		return "", s.add(d.Cmd, words)
	case "settings":
		return "", s.set(words)
	case "plan":
		a := s.asks[words[0]]
		if a == nil {
			return "", fmt.Errorf("no pod named %s asks", words[0])
		}
		return s.decide(a), nil
	}
	return "", s.step(d.Cmd, words)
}

// pair is a word like key=value; without a value it is a flag.
func pair(word string) (key, value string) {
	key, value, _ = strings.Cut(word, "=")
	return key, value
}

func (s *story) add(kind string, words []string) error {
	amounts := make([]int64, len(types))
	a := &asker{name: words[0], place: s.here}
	for _, word := range words[1:] {
		key, value := pair(word)
		n, err := strconv.ParseInt(value, 10, 32)
		switch {
		case slices.Contains(types, key):
			var amount resources.Amount
			amount, err = queuestest.Amount(key, value)
			amounts[slices.Index(types, key)] = int64(amount)
		case kind == "budget" && key == "allowed":
			s.budgets, s.allowed = append(s.budgets, words[0]), append(s.allowed, n)
		case kind == "ask" && key == "prio":
			a.priority = int32(n)
		case kind == "ask" && key == "port":
			a.ports = append(a.ports, int(n))
		case kind == "ask" && (key == "never" || key == "overmax"):
			a.never, a.overMax, err = a.never || key == "never", a.overMax || key == "overmax", nil
		default:
			err = fmt.Errorf("what is %q", word)
		}
		if err != nil {
			return err
		}
	}
	pods := slices.Index(types, resources.Pods)
	switch kind {
	case "node":
		if amounts[pods] == 0 {
			amounts[pods] = 110
		}
		s.here = &place{name: words[0], allocatable: amounts}
		s.nodes[words[0]] = s.here
	case "ask":
		amounts[pods] = 1
		a.request = amounts
		s.asks[a.name] = a
	}
	return nil
}

func (s *story) pod(words []string) error {
	p := &mpod{uid: words[0], request: make([]int64, len(types)), created: -3600}
	p.request[slices.Index(types, resources.Pods)] = 1
	protections := []string{"", "daemonset", "static", "leaving", "binding"}
	for _, word := range words[1:] {
		key, value := pair(word)
		n, err := strconv.ParseInt(value, 10, 32)
		switch {
		case slices.Contains(types, key):
			var amount resources.Amount
			amount, err = queuestest.Amount(key, value)
			p.request[slices.Index(types, key)] = int64(amount)
		case key == "prio":
			p.priority = int32(n)
		case key == "port":
			p.port = int(n)
		case key == "age":
			var age time.Duration
			age, err = time.ParseDuration(value)
			p.created = -int(age.Seconds())
		case key == "budget" && slices.Contains(s.budgets, value):
			p.budgets, err = append(p.budgets, slices.Index(s.budgets, value)), nil
		case value != "":
			err = fmt.Errorf("what is %q", word)
		default:
			err = s.flag(p, key, protections)
		}
		if err != nil {
			return err
		}
	}
	s.here.pods = append(s.here.pods, p)
	return nil
}

func (s *story) flag(p *mpod, flag string, protections []string) error {
	switch {
	case flag == "optout":
		p.optedOut = true
	case flag == "originator":
		p.originator = true
	case flag == "foreign" || flag == "peer":
		p.foreign, p.peer = true, flag == "peer"
	case flag == "slow":
		p.slow = true
	case slices.Contains(protections, flag):
		p.protection = planner.Protection(slices.Index(protections, flag))
	default:
		return fmt.Errorf("what is %q", flag)
	}
	return nil
}

func (s *story) set(words []string) error {
	s.settings = settings{}
	for _, word := range words {
		key, value := pair(word)
		n, err := strconv.ParseInt(value, 10, 32)
		number := int32(n)
		switch key {
		case "selection":
			for _, name := range strings.Split(value, ",") {
				s.settings.selection = append(s.settings.selection, daemonset.Selection(name))
			}
			err = nil
		case "deviation":
			s.settings.deviation = &number
		case "maxvictims":
			s.settings.victims = &number
		case "order":
			s.settings.order, err = daemonset.ClassOrder(value), nil
		case "foreign":
			s.settings.foreign, err = true, nil
		case "delay":
			var delay time.Duration
			delay, err = time.ParseDuration(value)
			s.settings.delay = int(delay.Seconds())
		default:
			err = fmt.Errorf("what is %q", word)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step is a command other than a decision.
func (s *story) step(what string, words []string) error {
	switch what {
	case "apply":
		for _, v := range s.last.Victims {
			i := slices.IndexFunc(s.lastAt.pods, func(p *mpod) bool { return p.uid == v.UID })
			s.lastAt.pods[i].protection = planner.Leaving
		}
	case "gone":
		for _, n := range s.nodes {
			n.pods = slices.DeleteFunc(n.pods, func(p *mpod) bool { return p.protection == planner.Leaving })
		}
	case "wait":
		d, err := time.ParseDuration(words[0])
		s.now += d
		return err
	case "place":
		a := s.asks[words[0]]
		a.place.holders = slices.DeleteFunc(a.place.holders, func(b *asker) bool { return a == b })
		a.place.pods = append(a.place.pods, &mpod{uid: a.name, request: a.request, priority: a.priority, protection: planner.DaemonSet})
	default:
		return fmt.Errorf("what is %q", what)
	}
	return nil
}

// decide plans, holds the node if so decided, and prints.
func (s *story) decide(a *asker) string {
	m := &model{
		node: a.place.name, types: types, allocatable: a.place.allocatable, pods: a.place.pods,
		budgets: s.allowed, ask: a.mask, settings: s.settings, filters: len(a.ports) > 0,
	}
	holds := slices.Contains(a.place.holders, a)
	if holds {
		m.ask.held = int((s.now - a.since).Seconds())
	}
	for _, h := range a.place.holders {
		if h == a || holds && slices.Index(a.place.holders, h) > slices.Index(a.place.holders, a) {
			continue
		}
		if h.priority >= a.priority {
			m.before = append(m.before, h.request)
		}
	}
	_, d, _ := s.plan(m, nil)
	d.Ask.Name = a.name
	if held := d.Outcome == planner.Hold || d.Outcome == planner.Preempt; held && !holds {
		a.since = s.now
		a.place.holders = append(a.place.holders, a)
	}
	s.last, s.lastAt = &d, a.place
	out := d.String() + "\n"
	for _, n := range d.Need {
		if n.Short > 0 {
			out += fmt.Sprintf("  need %s = %s - %s\n", n.Type+" "+resources.Format(n.Type, n.Short), resources.Format(n.Type, n.Request), resources.Format(n.Type, n.Free))
		}
	}
	for i, v := range d.Victims {
		note := d.VictimNote(i)
		out += fmt.Sprintf("  %s %s: %s\n", d.Selection, v.Name, note[strings.Index(note, "class"):])
	}
	if err := check(m, s.plan, 1); err != nil {
		out += "!! " + strings.ReplaceAll(err.Error(), "\n", "\n!! ") + "\n"
	}
	return out
}
