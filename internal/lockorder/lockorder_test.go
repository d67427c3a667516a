package lockorder

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-scheduler/paddock/internal/expect"
)

type (
	lockOf_a_mu struct{} //nolint:revive // named as the overlay names them
	lockOf_b_mu struct{} //nolint:revive // the same
	lockOf_c_mu struct{} //nolint:revive // the same
)

func inOrder(locks ...sync.Locker) {
	for _, l := range locks {
		l.Lock()
	}
	for _, l := range slices.Backward(locks) {
		l.Unlock()
	}
}

func TestOrders(t *testing.T) {
	for _, test := range []struct {
		name  string
		takes func(a, a2, b, c sync.Locker)
		want  []Order
	}{
		{"one after the other", func(a, _, b, c sync.Locker) { inOrder(a); inOrder(b); inOrder(a); inOrder(c) }, nil},
		{"always the same order", func(a, _, b, c sync.Locker) { inOrder(a, b, c); inOrder(a, c); inOrder(b, c) }, []Order{{mu("a"), mu("b")}, {mu("a"), mu("c")}, {mu("b"), mu("c")}}},
		{"two orders", func(a, _, b, _ sync.Locker) { inOrder(a, b); inOrder(b, a) }, []Order{{mu("a"), mu("b")}, {mu("b"), mu("a")}}},
		{"a circle of three", func(a, _, b, c sync.Locker) { inOrder(a, b); inOrder(b, c); inOrder(c, a) }, []Order{{mu("a"), mu("b")}, {mu("b"), mu("c")}, {mu("c"), mu("a")}}},
		{"another one of the same field", func(a, a2, _, _ sync.Locker) { inOrder(a, a2) }, []Order{{mu("a"), mu("a")}}},
		{"a lock of others, told twice", func(a, _, _, _ sync.Locker) {
			defer Enter("theirs")()
			defer Enter("theirs")()
			inOrder(a)
		}, []Order{{"theirs", mu("a")}}},
		{"a lock of others", func(a, _, _, _ sync.Locker) {
			done := Enter("theirs")
			inOrder(a)
			done()
			a.Lock()
			Enter("theirs")()
			a.Unlock()
		}, []Order{{mu("a"), "theirs"}, {"theirs", mu("a")}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			Reset()
			defer Reset()
			test.takes(&Mutex[lockOf_a_mu]{}, &Mutex[lockOf_a_mu]{}, &Mutex[lockOf_b_mu]{}, &RWMutex[lockOf_c_mu]{})
			if got := seenOrders(); !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// mu is the name of one of the locks above.
func mu(letter string) string { return "lockorder." + letter + ".mu" }

func seenOrders() (orders []Order) {
	for _, s := range Seen() {
		orders = append(orders, s.Order)
	}
	return orders
}

// Orders count even if the goroutines never meet.
func TestOrdersOfDifferentGoroutines(t *testing.T) {
	Reset()
	defer Reset()
	var a Mutex[lockOf_a_mu]
	var b Mutex[lockOf_b_mu]
	for _, order := range [][]sync.Locker{{&a, &b}, {&b, &a}} {
		var done sync.WaitGroup
		done.Go(func() { inOrder(order...) })
		done.Wait()
	}
	if got := seenOrders(); !slices.Equal(got, []Order{{mu("a"), mu("b")}, {mu("b"), mu("a")}}) {
		t.Errorf("got %v, want both orders", got)
	}
}

// TestJudge plants every kind of difference.
func TestJudge(t *testing.T) {
	declared := []Order{{"a", "b"}, {"b", "c"}}
	saw := func(orders ...Order) (seen []Sighting) {
		for _, o := range orders {
			seen = append(seen, Sighting{Order: Order{Lock: o.Before}}, Sighting{Order: Order{Lock: o.Lock}}, Sighting{Order: o, Program: "some.test"})
		}
		return seen
	}
	for _, test := range []struct {
		name  string
		seen  []Sighting
		wrong string // empty for nothing
	}{
		{"what is declared", saw(declared...), ""},
		{"what follows, too", saw(Order{"a", "b"}, Order{"b", "c"}, Order{"a", "c"}), ""},
		{"the other way round", saw(Order{"a", "b"}, Order{"b", "c"}, Order{"c", "a"}), "c before a is not declared, nor does it follow; some.test saw it"},
		{"one within another of its kind", saw(Order{"a", "b"}, Order{"b", "c"}, Order{"a", "a"}), "a before a is not declared"},
		{"a lock that is not declared", saw(Order{"a", "b"}, Order{"b", "c"}, Order{"c", "d"}), "c before d is not declared"},
		{"less than is declared", saw(Order{"a", "b"}, Order{"a", "c"}), "b before c is declared, and no run took it"},
		{"nothing", nil, "a before b is declared, and no run took it"},
		{"a lock that no run takes", saw(declared...)[1:], "no run took a"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := Judge(test.seen, declared, []string{"a", "b", "c"})
			if (err == nil) != (test.wrong == "") || err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("got %v, want %q", err, test.wrong)
			}
		})
	}
}

// circle returns the orders that are part of a circle or lead to one; none if there is none.
func circle(orders []Order) []Order {
	for {
		rest := slices.DeleteFunc(slices.Clone(orders), func(o Order) bool {
			return !slices.ContainsFunc(orders, func(next Order) bool { return next.Before == o.Lock })
		})
		if len(rest) == len(orders) {
			return rest
		}
		orders = rest
	}
}

// TestDeclared: the declared orders have no circle, so the inverse of one does not follow.
func TestDeclared(t *testing.T) {
	if found := circle(Declared); len(found) > 0 {
		t.Errorf("a circle is declared: %v", found)
	}
	for _, inverse := range []Order{{"store.core.mu", UpstreamQueue}, {"store.core.mu", "store.core.mu"}} {
		if len(circle(append(slices.Clone(Declared), inverse))) == 0 {
			t.Errorf("%v was planted, and no circle is found", inverse)
		}
	}
	for _, o := range Declared {
		if inverse := (Order{o.Lock, o.Before}); inverse.Follows(Declared) {
			t.Errorf("%v follows, and so does %v", o, inverse)
		}
	}
}

// TestPage: the page has the declared orders, and no others in such a list.
func TestPage(t *testing.T) {
	page := expect.Get(os.ReadFile("../../docs/survival.md"))(t)
	if !has(string(page), Declared) {
		t.Errorf("docs/survival.md is to have this list:\n%s", list(Declared))
	}
	for _, other := range [][]Order{Declared[1:], Declared[:len(Declared)-1], Simulated} {
		if has(string(page), other) {
			t.Errorf("the page has a list that is wrong:\n%s", list(other))
		}
	}
}

// list is the format of orders in docs/survival.md: a line for each lock that is held.
func list(orders []Order) string {
	var b strings.Builder
	before := ""
	for _, o := range orders {
		if o.Before != before {
			before = o.Before
			fmt.Fprintf(&b, "\n* %s before ", before)
		} else {
			b.WriteString(", ")
		}
		b.WriteString(o.Lock)
	}
	return b.String() + "\n"
}

// has tells whether a page has exactly this list, between two empty lines.
func has(page string, orders []Order) bool {
	return strings.Contains(page, "\n"+list(orders)+"\n")
}

// TestSightings: sightings that several programs write at a time arrive once and
// unbroken.
func TestSightings(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seen")
	t.Setenv(variable, path)
	Reset()
	defer Reset()
	var a Mutex[lockOf_a_mu]
	var b Mutex[lockOf_b_mu]
	var done sync.WaitGroup
	for range 20 {
		done.Go(func() { inOrder(&a, &b) })
	}
	done.Wait()
	sightings, err := ReadSightings(path)
	var got []string
	for _, s := range sightings {
		got = append(got, s.Order.String())
		if s.Before != "" && !strings.Contains(s.Stack, "inOrder") {
			t.Errorf("the stack is not that of the goroutine that took the lock:\n%s", s.Stack)
		}
	}
	if slices.Sort(got); err != nil || !slices.Equal(got, []string{" before lockorder.a.mu", " before lockorder.b.mu", "lockorder.a.mu before lockorder.b.mu"}) {
		t.Errorf("got %q, %v", got, err)
	}
}
