package store

import (
	"fmt"
	"maps"
	"runtime"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// itemStep gives a pod a key or takes it away, and asks for it with an item.
type itemStep struct {
	pod, item int
	add       bool
}

var itemSteps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) itemStep {
	return itemStep{rapid.IntRange(0, 39).Draw(t, "pod"), rapid.IntRange(0, 39).Draw(t, "item"), rapid.IntRange(0, 3).Draw(t, "kind") > 0}
}), 0, 200)

// itemKeys is what the law calls; a planted bug stands in between.
type itemKeys interface {
	get(uid types.UID) (Key, bool)
	add(uid types.UID, key Key)
	remove(uid types.UID)
	learn(item any, uid types.UID)
	ofItem(item any) (Key, bool)
}

type soundKeys struct{ *keys }

func (k soundKeys) learn(item any, uid types.UID) { k.items.learn(item, uid, k.get) }
func (k soundKeys) ofItem(item any) (Key, bool)   { return k.items.get(item) }

// Keys with a bug.
type (
	forgetful struct{ soundKeys } // items are never learned
	clinging  struct{ soundKeys } // an item stays when its pod's key goes
	outdated  struct{ soundKeys } // an item has a key of before
)

func (forgetful) learn(any, types.UID) {}

func (k clinging) remove(uid types.UID) {
	delete(k.items.of, uid) // but not from the table
	k.keys.remove(uid)
}

func (k outdated) learn(item any, uid types.UID) {
	k.items.learn(item, uid, func(types.UID) (Key, bool) {
		key, ok := k.get(uid)
		return Key{Rank: key.Rank, Time: key.Time - 1, Seq: key.Seq}, ok
	})
}

// lawOfItems: an item has the key of the pod that it was asked for with, as long as the
// pod has it and until another item is. It need not be found; in is whether it has to,
// where there is room for all.
func lawOfItems(k itemKeys, steps []itemStep, in bool) error {
	var all [40]struct{ bytes [64]byte }
	of := map[int]types.UID{}
	serial := uint64(0)
	for i, s := range steps {
		uid := types.UID(fmt.Sprint("pod-", s.pod))
		if s.add {
			serial++
			k.add(uid, Key{Rank: int64(s.pod), Time: int64(i), Seq: serial})
		} else {
			k.remove(uid)
			maps.DeleteFunc(of, func(_ int, pod types.UID) bool { return pod == uid })
		}
		if k.learn(&all[s.item], uid); s.add {
			maps.DeleteFunc(of, func(item int, pod types.UID) bool { return pod == uid || item == s.item })
			of[s.item] = uid
		}
		for item := range all {
			got, found := k.ofItem(&all[item])
			want, has := k.get(of[item])
			if found && (!has || got != want) || has && in && !found {
				return fmt.Errorf("step %d: item %d: %+v, %t, want that of %q: %+v", i, item, got, found, of[item], want)
			}
		}
	}
	return nil
}

// fewRows are keys with room for so few items that they push each other out and that
// the table grows.
func fewRows() *keys {
	k := newKeys()
	k.items.begin(2 * itemRow)
	return k
}

func TestItemsProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := lawOfItems(soundKeys{fewRows()}, itemSteps.Draw(t, "steps"), false); err != nil {
			t.Fatal(err)
		}
	})
}

// One item after the other is found, where a row has room for all there are.
func TestItemsAreFound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := itemSteps.Draw(t, "steps")
		for i := range steps {
			steps[i].pod, steps[i].item = steps[i].pod%itemRow, steps[i].item%itemRow
		}
		if err := lawOfItems(soundKeys{newKeys()}, steps, true); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLawOfItemsFindsPlantedBugs(t *testing.T) {
	steps := []itemStep{{pod: 1, item: 1, add: true}, {pod: 2, item: 2, add: true}, {pod: 1, item: 3}, {pod: 1, item: 0, add: true}}
	sound := soundKeys{newKeys()}
	if err := lawOfItems(sound, steps, true); err != nil {
		t.Fatal(err)
	}
	for _, k := range []itemKeys{forgetful{soundKeys{newKeys()}}, clinging{soundKeys{newKeys()}}, outdated{soundKeys{newKeys()}}} {
		if lawOfItems(k, steps, true) == nil {
			t.Errorf("%T: the law holds", k)
		}
	}
}

// Who reads the key of an item has that of its pod or none, whatever becomes of others.
func TestItemsAreReadWhileOthersComeAndGo(t *testing.T) {
	k := fewRows()
	k.add("stays", Key{Rank: 7, Time: 7, Seq: 7})
	var stays, moves [64]byte
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				k.items.learn(&stays, "stays", k.get)
				if got, ok := k.items.get(&stays); ok && got != (Key{Rank: 7, Time: 7, Seq: 7}) {
					t.Errorf("key %+v", got)
					return
				}
				if got, ok := k.items.get(&moves); ok && (got.Rank != got.Time || uint64(got.Rank) != got.Seq) {
					t.Errorf("key %+v is of two", got)
					return
				}
				select {
				case <-done:
					return
				default:
					runtime.Gosched() // the writer waits for nobody's time slice
				}
			}
		})
	}
	for i := int64(100); i < 3000; i++ {
		k.add("moves", Key{Rank: i, Time: i, Seq: uint64(i)})
		k.items.learn(&moves, "moves", k.get)
		k.remove("moves")
	}
	close(done)
	readers.Wait()
	k.add("moves", Key{Rank: 9, Time: 9, Seq: 9})
	for uid, item := range map[types.UID]*[64]byte{"stays": &stays, "moves": &moves} {
		k.items.learn(item, uid, k.get)
		if got, ok := k.items.get(item); !ok || got != mustKey(t, k, uid) {
			t.Errorf("key of %s, which nobody else reads or writes now: %+v, found: %t", uid, got, ok)
		}
	}
}

func mustKey(t *testing.T, k *keys, uid types.UID) Key {
	t.Helper()
	key, ok := k.get(uid)
	if !ok {
		t.Fatalf("no key of %s", uid)
	}
	return key
}
