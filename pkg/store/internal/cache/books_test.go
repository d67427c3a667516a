package cache_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
	"github.com/paddock-scheduler/paddock/pkg/store/internal/cache"
)

func books(t testing.TB, tree string) (cache.Books, func(path, user string) *cache.App) {
	b := cache.NewBooks(queues.NewDraftFrom(queuestest.MustTree(t, tree)))
	return b, func(path, user string) *cache.App {
		leaf := idOf(t, b.Tree(), path)
		a := cache.NewApp(cache.AppName{}, leaf, queues.Owner{User: user}, nil, epoch)
		b.AddApplications(leaf, 1)
		return &a
	}
}

func idOf(t testing.TB, tree *queues.Draft, path string) queues.ID {
	q, ok := tree.Find(path)
	if !ok {
		t.Fatalf("no queue %s", path)
	}
	return q.ID
}

// TestChargeOfALeavingPod: that a pod is to go matters to orders and to plans.
func TestChargeOfALeavingPod(t *testing.T) {
	b, app := books(t, "root\n  a max.vcore=4")
	p, two := madePod(&objects.Pod{Identity: objects.Identity{UID: "p"}}), queuestest.Vector("vcore=2")
	app("root.a", "u").Join(p)
	b.Charge(p, two, cache.Allocated)
	c := b.Charge(p, two, cache.Allocated|cache.Leaving)
	expect.That(t, c.ChangesOrder() && c.ForPlans(), "%+v does not matter to orders, or to plans", c)
}

func madePod(event *objects.Pod) *cache.Pod {
	p := cache.NewPod(event)
	return &p
}

// TestBooks makes random changes of pods, applications and quotas. The books and the originators must
// equal the sums over the pods, and originators those found by the rule itself.
func TestBooks(t *testing.T) {
	tree := "root limit=u;max.vcore=30\n  a\n  b"
	rapid.Check(t, func(rt *rapid.T) {
		b, app := books(t, tree)
		pods := map[types.UID]*cache.Pod{}
		originators := cache.NewOriginators(func(uid types.UID) *cache.Pod { return pods[uid] })
		apps, of := []*cache.App{}, map[*cache.Pod]*cache.App{}
		for i := range 60 {
			uid := types.UID(fmt.Sprintf("p%d", rapid.IntRange(0, 5).Draw(rt, "pod")))
			p := pods[uid]
			switch step := rapid.SampledFrom([]string{"add", "add", "charge", "charge", "delete", "gone", "rebuild"}).Draw(rt, "step"); {
			case step == "add" && p == nil:
				p = madePod(&objects.Pod{
					Identity: objects.Identity{
						UID: uid, Namespace: "ns", Name: string(uid), Created: epoch.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "age")) * time.Second),
						Owners: rapid.SampledFrom([][]types.UID{nil, nil, {"p0"}, {"p1", "p2"}}).Draw(rt, "owners"),
					},
					Spec: objects.Spec{Originator: rapid.SampledFrom([]objects.Originator{objects.OriginatorUnsaid, objects.OriginatorUnsaid, objects.OriginatorNo, objects.OriginatorByRole}).Draw(rt, "role")},
				})
				pods[uid] = p
				var a *cache.App
				if n := rapid.IntRange(0, len(apps)).Draw(rt, "app"); n < len(apps) {
					a = apps[n]
				} else {
					a = app(rapid.SampledFrom([]string{"root.a", "root.b"}).Draw(rt, "queue"), rapid.SampledFrom([]string{"u", "v"}).Draw(rt, "user"))
					apps = append(apps, a)
				}
				a.Join(p)
				of[p] = a
				originators.SetLives(p, true)
			case p == nil:
			case step == "charge":
				in := cache.Columns(rapid.IntRange(0, 63).Draw(rt, "columns"))
				b.Charge(p, queuestest.Vector(fmt.Sprintf("vcore=%d", i%4)), in)
			case step == "delete":
				p.Deleting = true
				originators.SetLives(p, false)
			case step == "gone":
				a := of[p]
				b.Charge(p, p.Amount(), 0)
				originators.SetLives(p, false)
				if a.Leave(p) {
					b.AddApplications(a.Leaf, -1)
					apps = slices.DeleteFunc(apps, func(o *cache.App) bool { return o == a })
					b.UpdateCounted(a)
				}
				delete(pods, uid)
				delete(of, p)
			case step == "rebuild":
				b.Rebuild(slices.Values(apps))
			}
			for _, a := range apps {
				b.UpdateCounted(a)
			}
			if err := errors.Join(b.Check(maps.Values(pods)), originators.Check(maps.Values(pods))); err != nil {
				rt.Fatal(err)
			}
			for _, p := range pods {
				if got, want := originators.Is(p), isOriginator(p, of); got != want {
					rt.Fatalf("pod %s is an originator: %v, want %v", p.Name, got, want)
				}
			}
		}
	})
}

// isOriginator is the rule of originators in another form: by all pods of the application.
func isOriginator(p *cache.Pod, of map[*cache.Pod]*cache.App) bool {
	rank := func(p *cache.Pod) int {
		owns := false
		for o, a := range of {
			owns = owns || a == of[p] && !o.Deleting && slices.Contains(o.Owners, p.UID)
		}
		switch {
		case p.Originator == objects.OriginatorByRole:
			return 1
		case p.Originator == objects.OriginatorNo:
			return 9
		case owns:
			return 2
		}
		return 3
	}
	if p.Deleting || rank(p) == 9 {
		return false
	}
	others := 0
	for o, a := range of {
		if a != of[p] || o == p || o.Deleting {
			continue
		}
		others++
		if rank(o) < rank(p) || rank(p) == 3 && rank(o) == 3 && o.Created.Before(p.Created) {
			return false
		}
	}
	return rank(p) != 3 || others > 0 // a pod that is alone is none by its age
}

func TestBooksCheck(t *testing.T) {
	for want, plant := range map[string]func(b *cache.Books, a *cache.App, p *cache.Pod){
		"queue root.a: books say": func(b *cache.Books, a *cache.App, _ *cache.Pod) {
			b.Tree().Update(a.Leaf, func(u *queues.Usage) { u.Leaving = queuestest.Vector("vcore=1") })
		},
		"the usage of users and groups": func(b *cache.Books, _ *cache.App, _ *cache.Pod) { *b = cache.NewBooks(b.Tree()) },
		"an application has 2 pods": func(_ *cache.Books, a *cache.App, _ *cache.Pod) {
			a.Join(madePod(&objects.Pod{Identity: objects.Identity{UID: "other"}}))
		},
		"Applications:2": func(b *cache.Books, a *cache.App, _ *cache.Pod) { b.AddApplications(a.Leaf, 1) },
		"pod / is charged without an application": func(_ *cache.Books, a *cache.App, p *cache.Pod) { a.Leave(p) },
	} {
		b, app := books(t, "root limit=u;max.vcore=30\n  a")
		a, p := app("root.a", "u"), madePod(&objects.Pod{Identity: objects.Identity{UID: "p"}})
		a.Join(p)
		b.Charge(p, queuestest.Vector("vcore=1"), cache.Allocated)
		b.UpdateCounted(a)
		pods := slices.Values([]*cache.Pod{p})
		expect.OK(t, b.Check(pods))
		plant(&b, a, p)
		expect.Fails(t, b.Check(pods), want)
	}
}
