package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
)

// Decide decides about an asker in a state, and returns the text to print. With strict,
// argument strictGuarantee is set. The state must not be changed.
type Decide func(s *State, a Ask, strict bool) (Outcome, string, error)

// Story is the state of a file that is being read: the one after the commands so far.
// It is for one goroutine.
type Story struct {
	State
	decide  Decide
	asks    map[string]Ask // could be planned
	left    map[string]Pod // by name
	last    Outcome
	started int // pods that started during the scenario
}

// Tell begins a scenario in which decide decides.
func Tell(decide Decide) *Story { return &Story{decide: decide} }

// Command follows one command of a file and returns its output.
func (s *Story) Command(d *datadriven.TestData) (string, error) {
	var args []string
	for _, a := range d.CmdArgs {
		args = append(args, strings.TrimSuffix(a.Key+"="+strings.Join(a.Vals, ","), "="))
	}
	switch d.Cmd {
	case "queues":
		return "", s.begin(d.Input)
	case "apply":
		return s.apply()
	case "usage":
		return s.usage(), nil
	case "pods", "waiting":
		for _, text := range strings.Split(d.Input, "\n") {
			if err := s.add(d.Cmd, strings.Fields(text)); err != nil {
				return "", fmt.Errorf("%s: %w", text, err)
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
	case "node", "budget", "ask", "place":
		return "", s.add(d.Cmd, args)
	}
	return "", fmt.Errorf("what is %s", d.Cmd)
}

func (s *Story) begin(tree string) error {
	spec, err := queuestest.Tree(tree)
	if err != nil {
		return err
	}
	*s = Story{State: State{Root: spec.Root}, decide: s.decide, asks: map[string]Ask{}, left: map[string]Pod{}}
	return nil
}

func (s *Story) plan(name string, strict bool) (string, error) {
	a, ok := s.asks[name]
	if !ok {
		return "", fmt.Errorf("%s does not ask", name)
	}
	o, text, err := s.decide(&s.State, a, strict)
	o.Asker, s.last = name, o
	return text, err
}

// start puts an asker on a node.
func (s *Story) start(name, node string) {
	s.started++
	s.Pods = append(s.Pods, Pod{Ask: s.asks[name], Node: node, Age: -time.Duration(s.started) * time.Second})
	delete(s.asks, name)
}

func (s *Story) apply() (string, error) {
	if s.last.Kind == planner.Refuse {
		return "", fmt.Errorf("the last plan refused")
	}
	for _, name := range s.last.Victims {
		i := slices.IndexFunc(s.Pods, func(p Pod) bool { return p.Name == name })
		if i < 0 {
			return "", fmt.Errorf("there is no victim %s", name)
		}
		s.left[name] = s.Pods[i]
		s.Pods = slices.Delete(s.Pods, i, i+1)
	}
	s.start(s.last.Asker, s.last.Node)
	return s.usage(), nil
}

func (s *Story) restart(name string) error {
	p, ok := s.left[name]
	if !ok {
		return fmt.Errorf("%s did not leave", name)
	}
	p.Name += "'"
	s.asks[p.Name] = p.Ask
	return nil
}
