package store

import (
	"fmt"
	"hash/maphash"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
)

// keys has the sort keys of admitted pods. The scheduler's heap asks for some forty of
// them whenever a pod is taken out, and mostly nothing of that is in a cache of the
// processor by then; so what it has to look at for one is short: a place in a table,
// and what is there. One writer at a time, who has the store's lock; readers need none.
type keys struct {
	seed  maphash.Seed
	table atomic.Pointer[keyTable]
	n     int
	items items // who was asked for by what the heap has
}

// keyTable has chains of keys by the hash of the UID; its length is a power of two.
type keyTable []atomic.Pointer[keyed]

// keyed is the key of one pod. All but next stays as it is.
type keyed struct {
	uid  types.UID
	key  Key
	next atomic.Pointer[keyed]
}

// fewKeys is the size of a table for as many pods as the window has at first.
const fewKeys = 128

func newKeys() *keys {
	k := &keys{seed: maphash.MakeSeed()}
	k.items.begin(fewItems)
	table := make(keyTable, fewKeys)
	k.table.Store(&table)
	return k
}

// chain is where the keys begin whose hash is that of a UID.
func (k *keys) chain(table keyTable, uid types.UID) *atomic.Pointer[keyed] {
	return &table[maphash.String(k.seed, string(uid))&uint64(len(table)-1)]
}

// get returns the key of a pod and whether it has one.
func (k *keys) get(uid types.UID) (Key, bool) {
	for e := k.chain(*k.table.Load(), uid).Load(); e != nil; e = e.next.Load() {
		if e.uid == uid {
			return e.key, true
		}
	}
	return Key{}, false
}

// add gives a pod a key, unless it has one.
func (k *keys) add(uid types.UID, key Key) {
	if _, has := k.get(uid); has {
		return
	}
	if k.n++; k.n > len(*k.table.Load()) {
		k.grow()
	}
	k.put(*k.table.Load(), uid, key)
}

func (k *keys) put(table keyTable, uid types.UID, key Key) {
	head, e := k.chain(table, uid), &keyed{uid: uid, key: key}
	e.next.Store(head.Load())
	head.Store(e)
}

// grow makes a table of twice the size. Who reads the one before finds in it what
// was there.
func (k *keys) grow() {
	table := make(keyTable, 2*len(*k.table.Load()))
	for e := range k.all {
		k.put(table, e.uid, e.key)
	}
	k.table.Store(&table)
}

// remove takes the key of a pod away, if it has one. Who reads it goes on from there
// to what is behind it.
func (k *keys) remove(uid types.UID) {
	defer k.items.remove(uid)
	for at := k.chain(*k.table.Load(), uid); at.Load() != nil; at = &at.Load().next {
		if e := at.Load(); e.uid == uid {
			at.Store(e.next.Load())
			k.n--
			return
		}
	}
}

// all yields every key, in no order.
func (k *keys) all(yield func(*keyed) bool) {
	table := *k.table.Load()
	for i := range table {
		for e := table[i].Load(); e != nil; e = e.next.Load() {
			if !yield(e) {
				return
			}
		}
	}
}

// checkKeys verifies that the keys are as many as counted and found where they are
// looked for, and that each is of a pod there is.
func (s *Store) checkKeys() []error {
	var errs []error
	n := 0
	for e := range s.keys.all {
		n++
		if found, ok := s.keys.get(e.uid); !ok || found != e.key {
			errs = append(errs, fmt.Errorf("sort key of %s: %+v is kept, %+v is found", e.uid, e.key, found))
		}
		if s.pods[e.uid] == nil {
			errs = append(errs, fmt.Errorf("sort key of %s, which is gone", e.uid))
		}
	}
	if n != s.keys.n {
		errs = append(errs, fmt.Errorf("%d sort keys counted, %d found", s.keys.n, n))
	}
	return append(errs, s.keys.items.check(s.keys.get)...)
}
