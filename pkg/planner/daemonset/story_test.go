package daemonset_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"k8s.io/utils/ptr"

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
		s := &story{plan: real, asks: map[string]*asker{}}
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
	s, out := &story{plan: buggy("free"), asks: map[string]*asker{}}, ""
	datadriven.RunTest(t, "testdata/d7_need.txt", func(t *testing.T, d *datadriven.TestData) string {
		out += expect.Get(s.command(d))(t)
		return d.Expected
	})
	expect.Says(t, out, "!! victims")
}

// types are the resource types of all scenarios.
var types = []string{resources.CPU, resources.Memory, "gpu", resources.Pods}

// story is the current state of a scenario.
type story struct {
	plan     planFunc
	nodes    []*place // the last one is that of pods and askers that follow
	asks     map[string]*asker
	budgets  []string
	allowed  []int64
	settings daemonset.Params
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

// line is a line about a node, pod, asker, budget or the settings: a name, amounts, and other
// words, which are a flag or key=value.
type line struct {
	name    string
	amounts []int64
	words   map[string][]string
	err     error
}

func read(name string, words []string) *line {
	x := &line{name: name, amounts: make([]int64, len(types)), words: map[string][]string{}}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		t := slices.Index(types, key)
		if t < 0 {
			x.words[key] = append(x.words[key], value)
			continue
		}
		amount, err := queuestest.Amount(key, value)
		x.amounts[t], x.err = int64(amount), errors.Join(x.err, err)
	}
	return x
}

// take takes a word out of the line, and returns its values.
func (x *line) take(key string) []string {
	defer delete(x.words, key)
	return x.words[key]
}

func (x *line) flag(key string) bool { return len(x.take(key)) > 0 }

func (x *line) numbers(key string) (out []int32) {
	for _, value := range x.take(key) {
		n, err := strconv.ParseInt(value, 10, 32)
		out, x.err = append(out, int32(n)), errors.Join(x.err, err)
	}
	return out
}

// number returns nil if the line does not have it.
func (x *line) number(key string) *int32 {
	if all := x.numbers(key); len(all) > 0 {
		return &all[0]
	}
	return nil
}

func (x *line) duration(key, unlessSaid string) time.Duration {
	d, err := time.ParseDuration(cmp.Or(strings.Join(x.take(key), ""), unlessSaid))
	x.err = errors.Join(x.err, err)
	return d
}

func (s *story) command(d *datadriven.TestData) (string, error) {
	words := []string{""}
	for _, a := range d.CmdArgs {
		words = append(words, strings.TrimSuffix(a.Key+"="+strings.Join(a.Vals, ","), "="))
	}
	switch name := words[min(1, len(words)-1)]; d.Cmd {
	case "pods":
		for _, text := range strings.Split(strings.TrimSpace(d.Input), "\n") {
			words := strings.Fields(text)
			if err := s.add(d.Cmd, read(words[0], words[1:])); err != nil {
				return "", err
			}
		}
		return "", nil
	case "node", "ask", "budget":
		return "", s.add(d.Cmd, read(name, words[2:]))
	case "settings":
		return "", s.add(d.Cmd, read("", words[1:]))
	case "plan":
		if s.asks[name] == nil {
			return "", fmt.Errorf("no pod named %s asks", name)
		}
		return s.decide(s.asks[name]), nil
	default:
		return "", s.step(d.Cmd, name)
	}
}

func (s *story) add(kind string, x *line) error {
	pods := slices.Index(types, resources.Pods)
	switch kind {
	case "node":
		x.amounts[pods] = cmp.Or(x.amounts[pods], 110)
		s.nodes = append(s.nodes, &place{name: x.name, allocatable: x.amounts})
	case "ask":
		x.amounts[pods] = 1
		s.asks[x.name] = &asker{name: x.name, place: s.nodes[len(s.nodes)-1], mask: mask{
			request: x.amounts, priority: ptr.Deref(x.number("prio"), 0), ports: x.numbers("port"),
			never: x.flag("never"), overMax: x.flag("overmax"),
		}}
	case "budget":
		s.budgets, s.allowed = append(s.budgets, x.name), append(s.allowed, int64(*x.number("allowed")))
	case "settings":
		s.settings = daemonset.Params{
			SingleDeviationPercent: x.number("deviation"), MaxVictims: x.number("maxvictims"),
			ClassOrder:     daemonset.ClassOrder(strings.Join(x.take("order"), "")),
			PreemptForeign: x.flag("foreign"), StartDelay: x.duration("delay", "0s"),
		}
		for _, names := range x.take("selection") {
			for _, name := range strings.Split(names, ",") {
				s.settings.Selection = append(s.settings.Selection, daemonset.Selection(name))
			}
		}
	case "pods":
		x.amounts[pods] = 1
		here := s.nodes[len(s.nodes)-1]
		here.pods = append(here.pods, s.pod(x))
	}
	if len(x.words) > 0 {
		return fmt.Errorf("what is %v", x.words)
	}
	return x.err
}

func (s *story) pod(x *line) *mpod {
	p := &mpod{
		uid: x.name, request: x.amounts, priority: ptr.Deref(x.number("prio"), 0),
		created: -int(x.duration("age", "1h").Seconds()),
		port:    ptr.Deref(x.number("port"), 0), peer: x.flag("peer"), slow: x.flag("slow"),
		optedOut: x.flag("optout"), originator: x.flag("originator"),
	}
	p.foreign = x.flag("foreign") || p.peer
	for i, name := range []string{"", "daemonset", "static", "leaving", "binding"} {
		if x.flag(name) {
			p.protection = planner.Protection(i)
		}
	}
	for _, name := range x.take("budget") {
		i := slices.Index(s.budgets, name)
		if i < 0 {
			x.err = errors.Join(x.err, fmt.Errorf("there is no budget %q", name))
		}
		p.budgets = append(p.budgets, i)
	}
	return p
}

// step is a command other than a decision.
func (s *story) step(what, name string) error {
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
		d, err := time.ParseDuration(name)
		s.now += d
		return err
	case "place":
		a := s.asks[name]
		a.place.holders = slices.DeleteFunc(a.place.holders, func(b *asker) bool { return a == b })
		placed := &mpod{uid: name, request: a.request, priority: a.priority, protection: planner.DaemonSet}
		a.place.pods = append(a.place.pods, placed)
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
	at := slices.Index(a.place.holders, a)
	if at >= 0 {
		m.ask.held = s.now - a.since
	}
	for i, h := range a.place.holders {
		if (at < 0 || i < at) && h.priority >= a.priority {
			m.before = append(m.before, h.request)
		}
	}
	_, d, _ := s.plan(m, nil)
	d.Ask.Name = a.name
	if held := d.Outcome == planner.Hold || d.Outcome == planner.Preempt; held && at < 0 {
		a.since = s.now
		a.place.holders = append(a.place.holders, a)
	}
	s.last, s.lastAt = &d, a.place
	out := d.String() + "\n"
	for _, n := range d.Need {
		if n.Short > 0 {
			out += fmt.Sprintf("  need %s %s = %s - %s\n", n.Type,
				resources.Format(n.Type, n.Short), resources.Format(n.Type, n.Request), resources.Format(n.Type, n.Free))
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
