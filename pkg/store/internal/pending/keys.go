package pending

import (
	"cmp"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Key is the sort key of an admitted pod in the scheduler's queue: higher Rank first,
// then earlier Time, then lower Seq. It does not change while the pod is in that queue.
type Key struct {
	Rank int64
	Time int64 // Unix nanoseconds of the admission
	Seq  uint64
}

// Compare is negative if the scheduler's queue has a pod of this key before one of the
// other key.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(o.Rank, k.Rank), cmp.Compare(k.Time, o.Time), cmp.Compare(k.Seq, o.Seq))
}

// Keys has the sort key of each pod that was let through, until the scheduler no longer
// has the pod. The scheduler's heap reads keys without the store's lock; changes need the
// lock.
type Keys struct {
	byUID sync.Map // types.UID to Key
	seq   uint64   // of the latest key
}

// Get returns the key of a pod and whether it has one.
func (k *Keys) Get(uid types.UID) (Key, bool) {
	value, ok := k.byUID.Load(uid)
	key, _ := value.(Key)
	return key, ok
}

// Tried tells whether the scheduler tried pod w before pod p, which it tries now: w was let
// through before p, and the scheduler's queue had w before p. A pod without a key was not.
func (k *Keys) Tried(w, p types.UID) bool {
	first, one := k.Get(w)
	second, other := k.Get(p)
	return one && other && first.Seq < second.Seq && first.Compare(second) < 0
}

// Add sets the key of a pod, unless it has one. Each call uses up a number of Seq.
func (k *Keys) Add(uid types.UID, rank, nanoseconds int64) {
	k.seq++
	k.byUID.LoadOrStore(uid, Key{Rank: rank, Time: nanoseconds, Seq: k.seq})
}

// Remove deletes the key of a pod, if it has one.
func (k *Keys) Remove(uid types.UID) { k.byUID.Delete(uid) }

// Check verifies that each key is of a pod that exists, and that keys differ.
func (k *Keys) Check(exists func(types.UID) bool) []error {
	var errs []error
	bySeq := map[uint64]types.UID{}
	k.byUID.Range(func(uid, key any) bool {
		if !exists(uid.(types.UID)) {
			errs = append(errs, fmt.Errorf("sort key of %s, which is gone", uid))
		}
		seq := key.(Key).Seq
		if o, known := bySeq[seq]; known || seq > k.seq {
			errs = append(errs, fmt.Errorf("sort key of %s: number %d, which %s has or nothing had", uid, seq, o))
		}
		bySeq[seq] = uid.(types.UID)
		return true
	})
	return errs
}
