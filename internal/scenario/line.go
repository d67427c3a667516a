package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-scheduler/paddock/pkg/planner"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// line is the content of a line about a node, pod, asker or budget.
type line struct {
	Pod
	flags   []string
	allowed int64
}

func (s *Story) read(words []string) (*line, error) {
	x := &line{Pod: Pod{Ask: Ask{Name: words[0], Request: Amounts{}}, Age: time.Hour}}
	for _, word := range words[1:] {
		key, value, has := strings.Cut(word, "=")
		var err error
		switch {
		case slices.Contains(Types(), key):
			x.Request[key], err = queuestest.Amount(key, value)
		case !has:
			x.flags = append(x.flags, word)
		default:
			err = s.readKey(x, key, value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
	}
	if x.App == "" {
		x.App = x.Queue
	}
	return x, nil
}

func (s *Story) readKey(x *line, key, value string) error {
	var err error
	missing := false
	switch key {
	case "queue":
		q := s.Queue(value)
		x.Queue, missing = value, q == nil || !q.Leaf
	case "node":
		x.Node, missing = value, !slices.ContainsFunc(s.Nodes, func(n Node) bool { return n.Name == value })
	case "budget":
		x.Budgets = append(x.Budgets, value)
		missing = !slices.ContainsFunc(s.Budgets, func(b Budget) bool { return b.Name == value })
	case "app":
		x.App, x.OwnApp = value, true
	case "prio":
		var n int64
		n, err = strconv.ParseInt(value, 10, 32)
		x.Priority = int32(n)
	case "age":
		x.Age, err = time.ParseDuration(value)
	case "allowed":
		x.allowed, err = strconv.ParseInt(value, 10, 64)
	default:
		err = x.Place.read(key, value)
	}
	if missing {
		err = fmt.Errorf("there is no such %s", key)
	}
	return err
}

func (x *line) flag(name string) bool {
	i := slices.Index(x.flags, name)
	if i >= 0 {
		x.flags = slices.Delete(x.flags, i, i+1)
	}
	return i >= 0
}

// add adds the content of a line to the scenario.
func (s *Story) add(kind string, words []string) error {
	x, err := s.read(words)
	if err != nil {
		return err
	}
	switch kind {
	case "node":
		if _, named := x.Request[resources.Pods]; !named {
			x.Request[resources.Pods] = 110
		}
		s.Nodes = append(s.Nodes, Node{x.Name, x.Request})
	case "budget":
		s.Budgets = append(s.Budgets, Budget{x.Name, x.allowed})
	case "place":
		s.start(x.Name, x.Node)
	default:
		x.Request[resources.Pods] = 1
		s.addPod(kind, x)
	}
	if len(x.flags) > 0 {
		return fmt.Errorf("what is %v", x.flags)
	}
	return nil
}

func (s *Story) addPod(kind string, x *line) {
	switch kind {
	case "ask":
		x.Never = x.flag("never")
		s.asks[x.Name] = x.Ask
	case "waiting":
		s.Waiting = append(s.Waiting, Waiting{x.Ask, x.Node})
	case "pods":
		x.OptedOut, x.Originator = x.flag("optout"), x.flag("originator")
		for i, name := range []string{"", "daemonset", "static", "leaving", "binding", "foreign"} {
			if x.flag(name) {
				x.Protection = planner.Protection(i)
			}
		}
		s.Pods = append(s.Pods, x.Pod)
	}
}
