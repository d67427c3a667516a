package store

import (
	"iter"
	"slices"
	"testing"

	"github.com/paddock-scheduler/paddock/pkg/objects"

	"pgregory.net/rapid"
)

func coversTier(labels map[string]string) bool { return labels["tier"] == "db" }

func replica(name string, part part) guarded {
	return guarded{namespace: "ns", name: name, labels: map[string]string{"tier": "db"}, part: part}
}

// TestDisruptionsLeft checks what a budget of three pods, two of which must be healthy,
// allows while a plan is made and its victim goes.
func TestDisruptionsLeft(t *testing.T) {
	counted := objects.Budget{
		Namespace: "ns", Name: "db", Generation: 1, Observed: 1, Matches: coversTier, Allowed: 1, Healthy: 3, Desired: 2,
	}
	with := func(change func(*objects.Budget)) objects.Budget {
		b := counted
		change(&b)
		return b
	}
	seen := with(func(b *objects.Budget) { b.Allowed, b.Healthy = 0, 2 })
	three := []part{isHealthy, isHealthy, isHealthy}
	for _, c := range []struct {
		name                    string
		budget                  objects.Budget
		pods                    []part
		ready, unready, without int64 // without plans in force
	}{
		{"as the status says", counted, three, 1, boundless, 1},
		{"a victim is chosen", counted, []part{isChosen, isHealthy, isHealthy}, 0, boundless, 1},
		{"two victims are chosen", counted, []part{isChosen, isChosen, isHealthy}, 0, 0, 1},
		{"a victim is deleted, the status lacks it", counted, []part{inNoSum, isHealthy, isHealthy}, 0, boundless, 0},
		{"the status has it", seen, []part{inNoSum, isHealthy, isHealthy}, 0, boundless, 0},
		{"the status has it, the pods lag behind", seen, three, 0, boundless, 0},
		{"a replacement is ready, the status has both", counted, []part{inNoSum, isHealthy, isHealthy, isHealthy}, 1, boundless, 1},
		{"a replacement is ready, the status has neither", seen, []part{inNoSum, isHealthy, isHealthy, isHealthy}, 0, boundless, 0},
		{"the status is of an older spec", with(func(b *objects.Budget) { b.Generation = 2 }), three, 0, boundless, 0},
		{"too few are healthy", with(func(b *objects.Budget) { b.Allowed, b.Healthy = 0, 1 }), []part{isHealthy}, 0, 0, 0},
		{"too few are healthy, and AlwaysAllow", with(func(b *objects.Budget) { b.Allowed, b.Healthy, b.AlwaysAllow = 0, 1, true }), []part{isHealthy}, 0, boundless, 0},
		{"none has to be healthy", with(func(b *objects.Budget) { b.Allowed, b.Desired = 3, 0 }), three, 3, 3, 3},
	} {
		d := newDisruptions()
		d.upsert(c.budget)
		pods := func() (list []guarded) {
			for i, part := range c.pods {
				list = append(list, replica(string(rune('a'+i)), part))
			}
			return list
		}()
		d.recount(slices.Values(pods))
		got, without := d.left(true), d.left(false)
		if got[0] != c.ready || got[1] != c.unready || without[0] != c.without {
			t.Errorf("%s: %v, and %v without plans in force; want %d for ready and %d for other pods, and %d", c.name, got, without, c.ready, c.unready, c.without)
		}
	}
}

// TestDisruptionsOver checks which indexes a pod counts against.
func TestDisruptionsOver(t *testing.T) {
	d := newDisruptions()
	any := func(map[string]string) bool { return true }
	for _, b := range []objects.Budget{
		{Namespace: "other", Name: "x", Matches: any}, {Namespace: "ns", Name: "none"}, {Namespace: "ns", Name: "any", Matches: any},
		{Namespace: "ns", Name: "db", Matches: coversTier}, {Namespace: "ns", Name: "listed", Matches: any, Disrupted: map[string]bool{"a": true}},
	} {
		d.upsert(b)
	}
	for _, c := range []struct {
		name   string
		pod    guarded
		health objects.Health
		want   []int
	}{
		{"ready", replica("a", isHealthy), objects.Ready, []int{4, 6}},
		{"not ready", replica("a", inNoSum), objects.Unready, []int{5, 7}},
		{"not started", replica("a", inNoSum), objects.NotStarted, nil},
		{"not disrupted", replica("b", isHealthy), objects.Ready, []int{4, 6, 8}},
		{"other labels", guarded{namespace: "ns", name: "a", labels: map[string]string{"tier": "web"}}, objects.Ready, []int{4}},
		{"no labels", guarded{namespace: "ns", name: "b"}, objects.Ready, nil},
	} {
		if got := d.over(c.pod, c.health); !slices.Equal(got, c.want) {
			t.Errorf("%s: counts against %v, want %v", c.name, got, c.want)
		}
	}
}

// TestDisruptionsCount makes random changes of budgets and pods. The maintained sums must
// equal a new count.
func TestDisruptionsCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, pods := newDisruptions(), map[string]guarded{}
		all := func() iter.Seq[guarded] {
			return func(yield func(guarded) bool) {
				for _, p := range pods {
					if !yield(p) {
						return
					}
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name")
			switch rapid.SampledFrom([]string{"pod", "pod", "pod", "gone", "budget", "no budget", "recount"}).Draw(t, "step") {
			case "pod":
				d.count(pods[name], -1)
				pods[name] = replica(name, part(rapid.IntRange(0, 2).Draw(t, "part")))
				d.count(pods[name], 1)
			case "gone":
				d.count(pods[name], -1)
				delete(pods, name)
			case "budget":
				b := objects.Budget{Namespace: "ns", Name: name, Generation: rapid.Int64Range(0, 2).Draw(t, "generation")}
				if b.Generation != 1 {
					b.Matches = coversTier
				}
				if rapid.Bool().Draw(t, "disrupted") {
					b.Disrupted = map[string]bool{"a": true}
				}
				d.upsert(b)
			case "no budget":
				d.remove("ns", name)
			case "recount":
				d.recount(all())
			}
			for _, err := range d.check(all()) {
				t.Error(err)
			}
		}
	})
}
