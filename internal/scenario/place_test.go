package scenario

import (
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/planner"
)

func TestFit(t *testing.T) {
	pod := func(name, node string, p Place) Pod { return Pod{Ask: Ask{Name: name, Place: p}, Node: node} }
	leaving := pod("leaving", "n3", Place{Port: 80, Group: "web"})
	leaving.Protection = planner.Leaving
	w := &World{
		Nodes: []Node{{Name: "n1"}, {Name: "n2"}, {Name: "n3"}},
		Pods: []Pod{
			pod("a", "n1", Place{Port: 80}), pod("b", "n1", Place{Group: "web"}), pod("c", "n1", Place{Group: "web"}),
			pod("d", "n2", Place{Group: "web"}), pod("e", "n2", Place{Apart: "db"}), leaving,
		},
	}
	web := Place{Group: "web", Spread: "web"}
	for _, test := range []struct {
		place   Place
		node    string
		without []string
		want    planner.Fit
	}{
		{Place{}, "n1", nil, planner.Passes},
		{Place{Port: 80}, "n1", nil, planner.Fails},
		{Place{Port: 80}, "n1", []string{"b"}, planner.Fails},
		{Place{Port: 80}, "n1", []string{"a"}, planner.Passes},
		{Place{Port: 80}, "n2", nil, planner.Passes},
		{Place{Port: 80}, "n3", nil, planner.Passes}, // once it left
		{Place{Port: 81}, "n1", nil, planner.Passes},
		{Place{Apart: "web"}, "n1", []string{"b"}, planner.Fails},
		{Place{Apart: "web"}, "n1", []string{"b", "c"}, planner.Passes},
		{Place{Apart: "db"}, "n2", nil, planner.Passes},
		{Place{Group: "db"}, "n1", nil, planner.Passes},
		{Place{Group: "db"}, "n2", nil, planner.Fails}, // the other has no such requirement
		{Place{Group: "db"}, "n2", []string{"e"}, planner.Passes},
		{Place{Beside: "web"}, "n1", []string{"b"}, planner.Passes},
		{Place{Beside: "web"}, "n1", []string{"b", "c"}, planner.Never},
		{Place{Beside: "web"}, "n3", nil, planner.Never}, // it is leaving
		{Place{Beside: "db"}, "n1", nil, planner.Never},
		{web, "n3", nil, planner.Passes}, // 1, 2 and 1
		{web, "n2", nil, planner.Fails},  // 2, 2 and 0 or more
		{web, "n1", []string{"b"}, planner.Fails},
		{Place{Spread: "web"}, "n2", nil, planner.Passes}, // it does not add to them
		{Place{Spread: "web"}, "n1", nil, planner.Fails},
		{Place{Spread: "web"}, "n1", []string{"c"}, planner.Passes},
	} {
		if got := w.Fit(&Ask{Place: test.place}, test.node, test.without); got != test.want {
			t.Errorf("%+v on %s without %v: %v, want %v", test.place, test.node, test.without, got, test.want)
		}
	}
}
