package audit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-scheduler/paddock/pkg/inventory"
	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

const (
	// ownerLooks is how many checks in a row must find the same difference in the charges of a
	// user or group before it counts as wrong. Usage and pods are read at different moments, so a
	// single difference proves nothing.
	ownerLooks = 5
	ownersBite = 256
)

// Books checks that every application, queue, user and group is charged with the sum of its
// pods. It reads views only, without a lock of the store.
type Books struct {
	Inventory *inventory.Inventory
	// Owners returns the charges of users and groups, and the number of all of them. It is
	// called for ownersBite of them at a time.
	Owners func(of []queues.Charged) (usage []queues.OwnerUsage, all int)

	differ map[queues.Charged]ownerDifference // in the last check
}

// Check returns an error with the wrong charges; nil if there are none. One goroutine calls it.
func (b *Books) Check() error {
	var lines []string
	v := b.Inventory.View()
	for _, a := range v.Applications {
		allocated, pending := requested(a.Allocations), requested(a.Requests)
		if text := cmp.Or(charged("allocated", a.Usage.Allocated, allocated), charged("pending", a.Usage.Pending, pending)); text != "" {
			lines = append(lines, fmt.Sprintf("application %s of queue %s: %s", a.ID, a.Queue, text))
		}
	}
	sums := sumsOf(v)
	for q := range v.Queues.All() {
		if text := usageDiffers(q.Usage, sums[q.ID]); text != "" {
			lines = append(lines, fmt.Sprintf("queue %s: %s", q.Path, text))
		}
	}
	return firstOf(append(lines, b.owners(v)...))
}

// sumsOf returns the correct charge of each queue: the sum of its applications. Allocated is
// the requests of their pods that have a node.
func sumsOf(v *inventory.View) map[queues.ID]queues.Usage {
	sums := map[queues.ID]queues.Usage{}
	for _, a := range v.Applications {
		own := a.Usage
		own.Allocated, own.Applications = requested(a.Allocations), 1
		if a.Counted {
			own.Running = 1
		}
		for q := range v.Queues.Ancestors(a.Leaf) {
			sums[q.ID] = sums[q.ID].Add(own)
		}
	}
	return sums
}

// requested returns the sum of the requests of pods.
func requested(pods []*inventory.Pod) (sum resources.Vector) {
	for _, p := range pods {
		sum = sum.Add(p.Request)
	}
	return sum
}

func usageDiffers(got, want queues.Usage) string {
	counts := ""
	if got.Applications != want.Applications || got.Running != want.Running {
		counts = fmt.Sprintf("it is charged %d applications, %d of them running, and has %d and %d", got.Applications, got.Running, want.Applications, want.Running)
	}
	return cmp.Or(
		charged("allocated", got.Allocated, want.Allocated), charged("admitted", got.Admitted, want.Admitted), charged("pending", got.Pending, want.Pending),
		charged("leaving", got.Leaving, want.Leaving), charged("arriving", got.Arriving, want.Arriving),
		charged("preempted", got.Preempted, want.Preempted), counts)
}

func charged(what string, got, want resources.Vector) string {
	if got.Equal(want) {
		return ""
	}
	return fmt.Sprintf("it is charged %v as %s, its pods make %v", got, what, want)
}

// ownerDifference is the difference between the charge of an owner and the sum of its pods.
type ownerDifference struct {
	text  string
	extra string // the charge less the sum; the same in each look, although pods come and go
	looks int    // how many in a row have found it
}

// owners compares users and groups.
func (b *Books) owners(v *inventory.View) []string {
	var lines []string
	found := b.ownersDiffer(v)
	for k, d := range found {
		if d.looks = 1; b.differ[k].extra == d.extra {
			d.looks += b.differ[k].looks
		}
		if found[k] = d; d.looks >= ownerLooks {
			lines = append(lines, d.text)
		}
	}
	b.differ = found
	slices.Sort(lines)
	return lines
}

func (b *Books) ownersDiffer(v *inventory.View) map[queues.Charged]ownerDifference {
	want := queues.NewLedger()
	for _, a := range v.Applications {
		want.Update(v.Queues, a.Leaf, queues.Owner{User: a.User, Group: a.Group}, func(u *queues.OwnerUsage) {
			*u = u.Add(a.Usage)
			if a.Counted {
				u.Running++
			}
		})
	}
	out := map[queues.Charged]ownerDifference{}
	_, all := b.Owners(nil)
	for keys := range slices.Chunk(want.Charged(), ownersBite) {
		var got []queues.OwnerUsage
		got, all = b.Owners(keys)
		for i, k := range keys {
			if w := want.Usage(k.Queue, k.Group, k.Name); !got[i].Equal(w) {
				out[k] = ownerDiffers(v, k, got[i], w)
			}
		}
	}
	if all != want.Len() {
		out[queues.Charged{}] = ownerDifference{
			text:  fmt.Sprintf("%d users and groups are charged, each counted for each queue, and %d use something", all, want.Len()),
			extra: fmt.Sprint(all - want.Len()),
		}
	}
	return out
}

func ownerDiffers(v *inventory.View, k queues.Charged, got, want queues.OwnerUsage) ownerDifference {
	kind := "user"
	if k.Group {
		kind = "group"
	}
	text := cmp.Or(charged("allocated", got.Allocated, want.Allocated), charged("admitted", got.Admitted, want.Admitted), charged("arriving", got.Arriving, want.Arriving),
		fmt.Sprintf("it is charged %d running applications, and has %d", got.Running, want.Running))
	return ownerDifference{
		text:  fmt.Sprintf("%s %s in queue %s: %s", kind, k.Name, v.Queues.Queue(k.Queue).Path, text),
		extra: fmt.Sprint(got.Allocated.Sub(want.Allocated), got.Admitted.Sub(want.Admitted), got.Arriving.Sub(want.Arriving), got.Running-want.Running),
	}
}

// mendBooks is the remedy for wrong books.
const mendBooks = "restart the scheduler, which rebuilds its books, and please report this"

// firstOf returns an error with the first lines about books, the number of further lines and
// the remedy; nil if there is no line.
func firstOf(lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	text, more := lines, ""
	if len(lines) > namedInCheck {
		text, more = lines[:namedInCheck], fmt.Sprintf("; and %d more", len(lines)-namedInCheck)
	}
	return errors.New(strings.Join(text, "; ") + more + "; " + mendBooks)
}
