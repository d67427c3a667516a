package store

import (
	"fmt"
	"math/bits"
	"reflect"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"
)

// items are sort keys by what the scheduler's heap has of a pod, an item, which is the
// same for as long as the pod is there. The UID of the pod is three pointers away from
// it; here one look into memory, at one place in a table, is enough. A table has not
// always room for all: who is not found is to be looked for by the UID.
//
// Who reads needs no lock. Who writes has mu, and asks for no other lock then.
type items struct {
	table atomic.Pointer[itemTable]

	mu sync.Mutex
	// of has the items of pods that were learned, also where the table had no room; it
	// keeps their addresses from being used again. pods is the same the other way round.
	of   map[types.UID]any
	pods map[any]types.UID
}

// itemTable has items in rows, by a hash of their addresses; its length is a power of two.
type itemTable []itemPlace

// itemPlace is the key of an item. A key is written before the item, and Seq, which no
// two pods have in common, before and after the rest of it.
type itemPlace struct {
	item       atomic.Uintptr // 0 for none
	seq        atomic.Uint64  // 0 while it is written
	rank, time atomic.Int64
}

const (
	fewItems = 256
	itemRow  = 4
)

// begin empties the items, of which nobody knows yet.
func (m *items) begin(size int) {
	m.of, m.pods = map[types.UID]any{}, map[any]types.UID{}
	m.table.Store(newItemTable(size))
}

func newItemTable(size int) *itemTable {
	t := make(itemTable, size)
	return &t
}

func address(item any) uintptr { return reflect.ValueOf(item).Pointer() }

// row is where an item may be.
func (t itemTable) row(item uintptr) []itemPlace {
	const golden = 0x9E3779B97F4A7C15
	rows := len(t) / itemRow
	at := int(uint64(item) * golden >> (64 - bits.TrailingZeros(uint(rows))))
	return t[at*itemRow : (at+1)*itemRow]
}

// get returns the key of an item and whether it is found.
func (m *items) get(item any) (Key, bool) {
	a := address(item)
	row := m.table.Load().row(a)
	for i := range row {
		p := &row[i]
		if p.item.Load() != a {
			continue
		}
		k := Key{Seq: p.seq.Load(), Rank: p.rank.Load(), Time: p.time.Load()}
		// It may have been taken away meanwhile, and another one written there.
		return k, k.Seq != 0 && p.item.Load() == a && p.seq.Load() == k.Seq
	}
	return Key{}, false
}

// learn lets the key of a pod be found by an item, and by no other, unless that would
// have to wait. No other pod's is found by it from then on.
func (m *items) learn(item any, uid types.UID, of func(types.UID) (Key, bool)) {
	if !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	key, ok := of(uid)
	if !ok {
		return // it went before this was locked
	}
	m.unlearn(uid)
	m.unlearn(m.pods[item])
	m.of[uid], m.pods[item] = item, uid
	if size := len(*m.table.Load()); 2*len(m.of) > size {
		m.grow(2*size, of)
		return
	}
	m.table.Load().put(address(item), key)
}

// put writes the key of an item into its row, in the place of another one if need be.
func (t itemTable) put(item uintptr, key Key) {
	row := t.row(item)
	p := &row[key.Seq%itemRow]
	for i := range row {
		if row[i].item.Load() == 0 {
			p = &row[i]
			break
		}
	}
	p.item.Store(0)
	p.seq.Store(0)
	p.rank.Store(key.Rank)
	p.time.Store(key.Time)
	p.seq.Store(key.Seq)
	p.item.Store(item)
}

// grow makes another table.
func (m *items) grow(size int, of func(types.UID) (Key, bool)) {
	t := newItemTable(size)
	for uid, item := range m.of {
		if key, ok := of(uid); ok {
			t.put(address(item), key)
		}
	}
	m.table.Store(t)
}

// remove forgets the item of a pod, whose key is gone.
func (m *items) remove(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unlearn(uid)
}

func (m *items) unlearn(uid types.UID) {
	item, known := m.of[uid]
	if !known {
		return
	}
	delete(m.of, uid)
	delete(m.pods, item)
	a := address(item)
	row := m.table.Load().row(a)
	for i := range row {
		if row[i].item.Load() == a {
			row[i].item.Store(0)
		}
	}
}

// check verifies that what is found by an item is what is found by the pod.
func (m *items) check(of func(types.UID) (Key, bool)) []error {
	m.mu.Lock()
	defer m.mu.Unlock()
	var errs []error
	if len(m.of) != len(m.pods) {
		errs = append(errs, fmt.Errorf("sort keys by item: %d pods have %d items", len(m.of), len(m.pods)))
	}
	found := 0
	for uid, item := range m.of {
		byPod, has := of(uid)
		byItem, is := m.get(item)
		if is {
			found++
		}
		if !has || is && byItem != byPod {
			errs = append(errs, fmt.Errorf("sort key of %s: %+v, by its item %+v", uid, byPod, byItem))
		}
	}
	table := *m.table.Load()
	for i := range table {
		if table[i].item.Load() != 0 {
			found--
		}
	}
	if found != 0 {
		errs = append(errs, fmt.Errorf("sort keys by items of nobody: %d", -found))
	}
	return errs
}
