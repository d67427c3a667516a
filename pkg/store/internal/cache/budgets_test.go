package cache_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

// boundless is what Left says of pods that budgets do not limit.
const boundless = int64(1) << 40

func coversTier(labels map[string]string) bool { return labels["tier"] == "db" }

// kind is how a pod counts: not as healthy, as healthy, or as a healthy victim.
type kind int

const (
	out kind = iota
	healthy
	chosen
)

func replica(name string, k kind) cache.Guarded {
	p := &objects.Pod{Identity: objects.Identity{Namespace: "ns", Name: name, Labels: map[string]string{"tier": "db"}}, Status: objects.Status{Health: objects.Ready}}
	if k == out {
		p.Health = objects.Unready
	}
	return cache.Guarded{Pod: p, Chosen: k == chosen}
}

// TestBudgetsLeft checks what a budget of three pods, two of which must be healthy,
// allows while a plan is made and its victim goes.
func TestBudgetsLeft(t *testing.T) {
	counted := objects.Budget{
		Namespace: "ns", Name: "db", Generation: 1, Observed: 1, Matches: coversTier, Allowed: 1, Healthy: 3, Desired: 2,
	}
	with := func(change func(*objects.Budget)) objects.Budget {
		b := counted
		change(&b)
		return b
	}
	seen := with(func(b *objects.Budget) { b.Allowed, b.Healthy = 0, 2 })
	three := []kind{healthy, healthy, healthy}
	for _, c := range []struct {
		name                    string
		budget                  objects.Budget
		pods                    []kind
		ready, unready, without int64 // without plans in force
	}{
		{"as the status says", counted, three, 1, boundless, 1},
		{"a victim is chosen", counted, []kind{chosen, healthy, healthy}, 0, boundless, 1},
		{"two victims are chosen", counted, []kind{chosen, chosen, healthy}, 0, 0, 1},
		{"a victim is deleted, the status lacks it", counted, []kind{out, healthy, healthy}, 0, boundless, 0},
		{"the status has it", seen, []kind{out, healthy, healthy}, 0, boundless, 0},
		{"the status has it, the pods lag behind", seen, three, 0, boundless, 0},
		{"a replacement is ready, the status has both", counted, []kind{out, healthy, healthy, healthy}, 1, boundless, 1},
		{"a replacement is ready, the status has neither", seen, []kind{out, healthy, healthy, healthy}, 0, boundless, 0},
		{"the status is of an older spec", with(func(b *objects.Budget) { b.Generation = 2 }), three, 0, boundless, 0},
		{"too few are healthy", with(func(b *objects.Budget) { b.Allowed, b.Healthy = 0, 1 }), []kind{healthy}, 0, 0, 0},
		{"too few are healthy, and AlwaysAllow", with(func(b *objects.Budget) { b.Allowed, b.Healthy, b.AlwaysAllow = 0, 1, true }), []kind{healthy}, 0, boundless, 0},
		{"none has to be healthy", with(func(b *objects.Budget) { b.Allowed, b.Desired = 3, 0 }), three, 3, 3, 3},
	} {
		p := cache.NewProtection()
		p.UpsertBudget(c.budget)
		var pods []cache.Guarded
		for i, k := range c.pods {
			pods = append(pods, replica(string(rune('a'+i)), k))
		}
		got, without := p.Left(slices.Values(pods), true), p.Left(slices.Values(pods), false)
		expect.Same(t, c.name+": left for ready and other pods, and for ready ones without plans in force",
			[]int64{c.ready, c.unready, c.without}, []int64{got[0], got[1], without[0]})
	}
}

func TestBudgetsOf(t *testing.T) {
	p := cache.NewProtection()
	any := func(map[string]string) bool { return true }
	for _, b := range []objects.Budget{
		{Namespace: "other", Name: "x", Matches: any}, {Namespace: "ns", Name: "none"}, {Namespace: "ns", Name: "any", Matches: any},
		{Namespace: "ns", Name: "db", Matches: coversTier}, {Namespace: "ns", Name: "listed", Matches: any, DisruptedPods: map[string]bool{"a": true}},
	} {
		p.UpsertBudget(b)
	}
	for _, c := range []struct {
		name, pod, tier string
		health          objects.Health
		want            []int
	}{
		{"ready", "a", "db", objects.Ready, []int{4, 6}},
		{"not ready", "a", "db", objects.Unready, []int{5, 7}},
		{"not started", "a", "db", objects.NotStarted, nil},
		{"not disrupted", "b", "db", objects.Ready, []int{4, 6, 8}},
		{"other labels", "a", "web", objects.Ready, []int{4}},
		{"no labels", "b", "", objects.Ready, nil},
	} {
		g := replica(c.pod, healthy)
		g.Health, g.Labels["tier"] = c.health, c.tier
		if c.tier == "" {
			g.Labels = nil
		}
		expect.Same(t, c.name+": counts against", c.want, p.Budgets(g))
	}
}

// TestBudgetsCount makes random changes of budgets and pods. The maintained sums must equal a new count.
func TestBudgetsCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, pods := cache.NewProtection(), map[string]cache.Guarded{}
		all := func() iter.Seq[cache.Guarded] { return maps.Values(pods) }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			switch rapid.SampledFrom([]string{"pod", "pod", "pod", "gone", "budget", "no budget", "recount"}).Draw(t, "step") {
			case "pod":
				before := pods[name]
				pods[name] = replica(name, kind(rapid.IntRange(0, 2).Draw(t, "kind")))
				p.PodChanged(before, pods[name])
			case "gone":
				p.PodChanged(pods[name], cache.Guarded{})
				delete(pods, name)
			case "budget":
				b := objects.Budget{Namespace: "ns", Name: name, Generation: rapid.Int64Range(0, 2).Draw(t, "generation")}
				if b.Generation != 1 {
					b.Matches = coversTier
				}
				if rapid.Bool().Draw(t, "disrupted") {
					b.DisruptedPods = map[string]bool{"a": true}
				}
				p.UpsertBudget(b)
			case "no budget":
				p.DeleteBudget("ns", name)
			case "recount":
				p.Left(all(), false)
			}
			if err := p.Check(all()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestOptedOut checks law 1: the pod's own setting counts before its PriorityClass.
func TestOptedOut(t *testing.T) {
	p := cache.NewProtection()
	expect.That(t, p.SetClass("gold", true) && !p.SetClass("gold", true) && !p.SetClass("none", false),
		"SetClass does not tell changes")
	for _, c := range []struct {
		class        string
		own          objects.OptOut
		ignore, want bool
	}{
		{class: "gold", want: true}, {class: "none"},
		{class: "gold", own: objects.OptOutNo}, {class: "none", own: objects.OptOutYes, want: true},
		{class: "gold", own: objects.OptOutNo, ignore: true, want: true},
		{class: "none", own: objects.OptOutYes, ignore: true},
	} {
		pod := &objects.Pod{Spec: objects.Spec{Class: c.class, OptOut: c.own}}
		expect.Same(t, fmt.Sprintf("%+v: opted out", c), c.want, p.OptedOut(pod, c.ignore))
	}
	gold := &objects.Pod{Spec: objects.Spec{Class: "gold"}}
	expect.That(t, p.SetClass("gold", false) && !p.OptedOut(gold, false), "it opts out after it is gone")
}
