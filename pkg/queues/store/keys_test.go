package store

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// keyStep gives a pod a key or takes it away.
type keyStep struct {
	pod int
	add bool
}

// lawOfKeys: keys come and go as in a map that keeps the first of each pod.
func lawOfKeys(k *keys, steps []keyStep) error {
	want := map[types.UID]Key{}
	for i, s := range steps {
		uid := types.UID(fmt.Sprint("pod-", s.pod))
		if !s.add {
			delete(want, uid)
			k.remove(uid)
		} else {
			if _, has := want[uid]; !has {
				want[uid] = Key{Seq: uint64(i)}
			}
			k.add(uid, Key{Seq: uint64(i)})
		}
		if got, ok := k.get(uid); ok != s.add || got != want[uid] {
			return fmt.Errorf("step %d: %+v, %t, want %+v, %t", i, got, ok, want[uid], s.add)
		}
		found := 0
		for e := range k.all {
			if found++; want[e.uid] != e.key {
				return fmt.Errorf("step %d: %s has %+v, want %+v", i, e.uid, e.key, want[e.uid])
			}
		}
		if found != len(want) || k.n != len(want) {
			return fmt.Errorf("step %d: %d keys counted, %d found, want %d", i, k.n, found, len(want))
		}
	}
	return nil
}

// fewPlaces are keys in a table so small that it grows and that chains are long.
func fewPlaces() *keys {
	k := newKeys()
	table := make(keyTable, 2)
	k.table.Store(&table)
	return k
}

var keySteps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) keyStep {
	return keyStep{rapid.IntRange(0, 11).Draw(t, "pod"), rapid.Bool().Draw(t, "add")}
}), 0, 60)

func TestKeysProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if err := lawOfKeys(fewPlaces(), keySteps.Draw(t, "steps")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestLawOfKeysFindsPlantedBugs(t *testing.T) {
	for name, plant := range map[string]func(k *keys){
		"a count that is off":  func(k *keys) { k.n++ },
		"a key that was there": func(k *keys) { k.put(*k.table.Load(), "pod-0", Key{Rank: 1}) },
		"a key of nobody":      func(k *keys) { k.put(*k.table.Load(), "nobody", Key{Rank: 1}) },
	} {
		k := fewPlaces()
		plant(k)
		if lawOfKeys(k, []keyStep{{pod: 0, add: true}, {pod: 1, add: true}, {pod: 0}}) == nil {
			t.Errorf("%s: the law holds", name)
		}
	}
}

// Who reads the key of a pod that keeps it finds it, whatever becomes of the others.
func TestKeysAreReadWhileOthersComeAndGo(t *testing.T) {
	k := fewPlaces()
	k.add("stays", Key{Seq: 7})
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				if got, ok := k.get("stays"); !ok || got.Seq != 7 {
					t.Errorf("key %+v, %t", got, ok)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for i := range 3000 {
		k.add(types.UID(fmt.Sprint(i)), Key{Seq: uint64(i)})
		if i >= 20 {
			k.remove(types.UID(fmt.Sprint(i - 20)))
		}
	}
	close(done)
	readers.Wait()
}
