package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/paddock-scheduler/paddock/internal/expect"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/queues/queuestest"
)

// The files in testdata have these commands:
//
//	books      what was recorded: a line "nodes T=N ..." and one line a queue that uses or
//	           awaits something: PATH T=N ... [pending T=N ...] [dynamic [max.T=N guaranteed.T=N ...]]
//	           [draining]; what queues below it use is added to what a queue uses
//	forecast   the queues as in queuestest.Tree, with "no preemption" in front where it is
//	           off: everything that is expected of the books with them
//	change     two trees with a line ==== between them: the comparison of the forecasts
func TestForecast(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		var b Books
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "books":
				b = books(t, d.Input)
				return ""
			case "forecast":
				return show(forecast(t, b, tree(t, d.Input)))
			case "change":
				first, second, _ := strings.Cut(d.Input, "====\n")
				before, after := tree(t, first), tree(t, second)
				c := Compare(forecast(t, b, before), forecast(t, b, before, after))
				return show(c) + fmt.Sprintf("worse: %v\n", c.Worse())
			}
			d.Fatalf(t, "unknown command %s", d.Cmd)
			return ""
		})
	})
}

func tree(t *testing.T, text string) *config.Spec {
	t.Helper()
	text, off := strings.CutPrefix(text, "no preemption\n")
	spec := queuestest.MustTree(t, text)
	spec.PreemptionEnabled = !off
	return spec
}

// forecast judges the tree that the books have after the last specification.
func forecast(t *testing.T, b Books, specs ...*config.Spec) Forecast {
	t.Helper()
	s, _, err := b.Under(specs[0], specs[1:]...)
	expect.OK(t, err)
	return Of(s, specs[len(specs)-1].PreemptionEnabled)
}

func books(t *testing.T, text string) Books {
	t.Helper()
	var b Books
	entries := map[string]*Entry{}
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.Fields(line)
		if words[0] == "nodes" {
			b.Capacity = queuestest.Vector(strings.Join(words[1:], " "))
			continue
		}
		e := entry(t, words)
		segments := strings.Split(e.Path, ".")
		for n := range segments {
			path := strings.Join(segments[:n+1], ".")
			if entries[path] == nil {
				entries[path] = &Entry{Path: path, Managed: e.Managed}
			}
			entries[path].Allocated = entries[path].Allocated.Add(e.Allocated)
			entries[path].Pending = entries[path].Pending.Add(e.Pending)
		}
		own := entries[e.Path]
		own.Leaf, own.Managed, own.Draining, own.Guaranteed, own.Max = true, e.Managed, e.Draining, e.Guaranteed, e.Max
	}
	for _, e := range entries {
		b.Entries = append(b.Entries, *e)
	}
	slices.SortFunc(b.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return b
}

func entry(t *testing.T, words []string) Entry {
	t.Helper()
	e := Entry{Path: words[0], Managed: true}
	amounts, quotas := &e.Allocated, "root"
	for _, w := range words[1:] {
		switch {
		case w == "pending":
			amounts = &e.Pending
		case w == "dynamic":
			e.Managed = false
		case w == "draining":
			e.Draining = true
		case strings.HasPrefix(w, "max."), strings.HasPrefix(w, "guaranteed."):
			quotas += " " + w
		default:
			*amounts = amounts.Add(queuestest.Vector(w))
		}
	}
	root := queuestest.MustTree(t, quotas).Root
	e.Guaranteed, e.Max = root.Guaranteed, root.Max
	return e
}

func show(f Forecast) string {
	var b strings.Builder
	line := func(status Status, finding fmt.Stringer) {
		if status != "" {
			fmt.Fprintf(&b, "[%s] ", status)
		}
		fmt.Fprintln(&b, finding)
	}
	for _, o := range f.OverMax {
		line(o.Status, o)
	}
	for _, u := range f.Unmet {
		line(u.Status, u)
	}
	for _, s := range f.Stranded {
		line(s.Status, s)
	}
	for _, l := range f.Losers {
		line(l.Status, l)
	}
	return cmp.Or(b.String(), "nothing\n")
}

func TestBooksThatAreNone(t *testing.T) {
	spec := queuestest.MustTree(t, "root\n  a\n")
	for _, path := range []string{"", "a", "other.a", "root.", "root..b", "root.a."} {
		if _, _, err := (Books{Entries: []Entry{{Path: path}}}).Under(spec); err == nil {
			t.Errorf("%q is taken for a queue", path)
		}
	}
}

func TestBooksOfAnotherConfigurationAreNoticed(t *testing.T) {
	b := books(t, `root.a vcore=1
root.b.c vcore=1
root.d vcore=1 dynamic
root.e vcore=1 draining
root.f vcore=1 max.vcore=2 guaranteed.vcore=1
root.g vcore=1 max.vcore=2
root.h vcore=1 guaranteed.vcore=2`)
	spec := queuestest.MustTree(t, `root
  a
  f max.vcore=2 guaranteed.vcore=1
  g max.vcore=3
  h
`)
	_, other, err := b.Under(spec)
	expect.OK(t, err)
	expect.Same(t, "not as in the configuration", []string{"root.b", "root.b.c", "root.g", "root.h"}, other)
}
