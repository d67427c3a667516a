package planner_test

import (
	"math"
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/scenario"
	"github.com/paddock-scheduler/paddock/pkg/planner"
)

// places tells whether some pod has requirements on a node beside room.
func places(state *scenario.State, a *scenario.Ask) bool {
	return a.Place != scenario.Place{} || slices.ContainsFunc(state.Pods, func(p scenario.Pod) bool { return p.Place != scenario.Place{} })
}

// fit is the filters' answer for an asker on a node, amounts aside, without the named
// pods and the leaving pods of the node. Pods that wait for a held node are ignored.
func fit(state *scenario.State, a *scenario.Ask, node string, without []string) planner.Fit {
	stays := func(p *scenario.Pod) bool {
		return p.Protection != planner.Leaving && (p.Node != node || !slices.Contains(without, p.Name))
	}
	inTheWay := func(p scenario.Pod) bool {
		return p.Node == node && stays(&p) && (excludes(&a.Place, &p.Place) || excludes(&p.Place, &a.Place))
	}
	members := func(group, node string) (n int) {
		for i := range state.Pods {
			if p := &state.Pods[i]; p.Node == node && p.Group == group && stays(p) {
				n++
			}
		}
		return n
	}
	switch {
	case slices.ContainsFunc(state.Pods, inTheWay):
		return planner.Fails
	case a.Beside != "" && members(a.Beside, node) == 0:
		return planner.Never // no leaving pod brings it there
	case a.Spread == "":
		return planner.Passes
	}
	most := math.MaxInt
	for i := range state.Nodes {
		most = min(most, 1+members(a.Spread, state.Nodes[i].Name))
	}
	now := members(a.Spread, node)
	if a.Group == a.Spread {
		now++
	}
	if now > most {
		return planner.Fails
	}
	return planner.Passes
}

// excludes tells whether a pod may not be on the node of another.
func excludes(p, other *scenario.Place) bool {
	return p.Port != 0 && p.Port == other.Port || p.Group != "" && p.Group == other.Apart
}

func TestFitOfPlaces(t *testing.T) {
	pod := func(name, node string, p scenario.Place) scenario.Pod {
		return scenario.Pod{Ask: scenario.Ask{Name: name, Place: p}, Node: node}
	}
	leaving := pod("leaving", "n3", scenario.Place{Port: 80, Group: "web"})
	leaving.Protection = planner.Leaving
	state := &scenario.State{
		Nodes: []scenario.Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}},
		Pods: []scenario.Pod{
			pod("a", "n1", scenario.Place{Port: 80}), pod("b", "n1", scenario.Place{Group: "web"}), pod("c", "n1", scenario.Place{Group: "web"}),
			pod("d", "n2", scenario.Place{Group: "web"}), pod("e", "n2", scenario.Place{Apart: "db"}), leaving,
		},
	}
	web := scenario.Place{Group: "web", Spread: "web"}
	for _, test := range []struct {
		place   scenario.Place
		node    string
		without []string
		want    planner.Fit
	}{
		{scenario.Place{}, "n1", nil, planner.Passes},
		{scenario.Place{Port: 80}, "n1", nil, planner.Fails},
		{scenario.Place{Port: 80}, "n1", []string{"b"}, planner.Fails},
		{scenario.Place{Port: 80}, "n1", []string{"a"}, planner.Passes},
		{scenario.Place{Port: 80}, "n2", nil, planner.Passes},
		{scenario.Place{Port: 80}, "n3", nil, planner.Passes}, // once it left
		{scenario.Place{Port: 81}, "n1", nil, planner.Passes},
		{scenario.Place{Apart: "web"}, "n1", []string{"b"}, planner.Fails},
		{scenario.Place{Apart: "web"}, "n1", []string{"b", "c"}, planner.Passes},
		{scenario.Place{Apart: "db"}, "n2", nil, planner.Passes},
		{scenario.Place{Group: "db"}, "n1", nil, planner.Passes},
		{scenario.Place{Group: "db"}, "n2", nil, planner.Fails}, // the other has no such requirement
		{scenario.Place{Group: "db"}, "n2", []string{"e"}, planner.Passes},
		{scenario.Place{Beside: "web"}, "n1", []string{"b"}, planner.Passes},
		{scenario.Place{Beside: "web"}, "n1", []string{"b", "c"}, planner.Never},
		{scenario.Place{Beside: "web"}, "n3", nil, planner.Never}, // it is leaving
		{scenario.Place{Beside: "db"}, "n1", nil, planner.Never},
		{web, "n3", nil, planner.Passes}, // 1, 2 and 1
		{web, "n2", nil, planner.Fails},  // 2, 2 and 0 or more
		{web, "n1", []string{"b"}, planner.Fails},
		{scenario.Place{Spread: "web"}, "n2", nil, planner.Passes}, // it does not add to them
		{scenario.Place{Spread: "web"}, "n1", nil, planner.Fails},
		{scenario.Place{Spread: "web"}, "n1", []string{"c"}, planner.Passes},
	} {
		if got := fit(state, &scenario.Ask{Place: test.place}, test.node, test.without); got != test.want {
			t.Errorf("%+v on %s without %v: %v, want %v", test.place, test.node, test.without, got, test.want)
		}
	}
}
