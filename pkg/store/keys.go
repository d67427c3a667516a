package store

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// keys has the sort key of each pod that was let through, until the scheduler no longer
// has the pod. The scheduler's heap reads keys without the store's lock; changes need the
// lock.
type keys struct {
	byUID sync.Map // types.UID to Key
}

// get returns the key of a pod and whether it has one.
func (k *keys) get(uid types.UID) (Key, bool) {
	key, ok := k.byUID.Load(uid)
	if !ok {
		return Key{}, false
	}
	return key.(Key), true
}

// add sets the key of a pod, unless it has one.
func (k *keys) add(uid types.UID, key Key) { k.byUID.LoadOrStore(uid, key) }

// remove deletes the key of a pod, if it has one.
func (k *keys) remove(uid types.UID) { k.byUID.Delete(uid) }

// check verifies that each key is of a pod that exists.
func (k *keys) check(exists func(types.UID) bool) []error {
	var errs []error
	k.byUID.Range(func(uid, _ any) bool {
		if !exists(uid.(types.UID)) {
			errs = append(errs, fmt.Errorf("sort key of %s, which is gone", uid))
		}
		return true
	})
	return errs
}
