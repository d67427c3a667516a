package preemption

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Undeletable has the pods that the API server refused for good to delete: a webhook or a policy
// refuses it, or the pod is too large to be written. Such a pod is no victim for the retry
// interval, doubled with each further refusal as after a lost hold. Otherwise each plan would
// choose it again. A refusal during that time prolongs it but is not counted, because the same plan
// is still retrying. The pod is forgotten when it is gone.
//
//	chosen ──► refused ──► no victim ──► the time is over ──► chosen ──► refused ──► no victim for twice as long
type Undeletable struct {
	pods    map[types.UID]*undeletable
	due     time.Time // when the first time is over; zero for never
	changed bool      // due is computed again
}

type undeletable struct {
	refusals int
	until    time.Time // zero once the time is over
	why      string
}

// mostWhy bounds the answers of webhooks, in bytes.
const mostWhy = 300

// Refuse notes that a pod could not be deleted. The time for which it is no victim begins
// at from.
func (u *Undeletable) Refuse(pod types.UID, why string, o *Options, from time.Time) {
	if u.pods == nil {
		u.pods = map[types.UID]*undeletable{}
	}
	x := u.pods[pod]
	if x == nil {
		x = &undeletable{}
		u.pods[pod] = x
	}
	if x.until.IsZero() {
		x.refusals++
	}
	x.until = Latest(x.until, from.Add(o.Pause(x.refusals)))
	x.why = OneLine(strings.ToValidUTF8(why[:min(len(why), mostWhy)], ""))
	u.changed = true
}

// Why returns for how long a pod is no victim, and why; empty if it may be one.
func (u *Undeletable) Why(pod types.UID) string {
	x := u.pods[pod]
	if x == nil || x.until.IsZero() {
		return ""
	}
	return fmt.Sprintf("until %s: %s", x.until.UTC().Format(time.RFC3339), x.why)
}

// Due is when the first pod may be a victim again; zero for never. It is computed again only
// if something changed since the last call.
func (u *Undeletable) Due() time.Time {
	if !u.changed {
		return u.due
	}
	u.due, u.changed = time.Time{}, false
	for _, x := range u.pods {
		if !x.until.IsZero() && (u.due.IsZero() || x.until.Before(u.due)) {
			u.due = x.until
		}
	}
	return u.due
}

// Expire returns the pods that may be victims again, in order. How often they were refused
// stays known.
func (u *Undeletable) Expire(now time.Time) (pods []types.UID) {
	if due := u.Due(); due.IsZero() || now.Before(due) {
		return nil
	}
	u.changed = true
	for uid, x := range u.pods {
		if !x.until.IsZero() && !now.Before(x.until) {
			x.until = time.Time{}
			pods = append(pods, uid)
		}
	}
	slices.Sort(pods)
	return pods
}

// Forget forgets a pod that is gone.
func (u *Undeletable) Forget(pod types.UID) {
	if u.pods[pod] != nil {
		delete(u.pods, pod)
		u.changed = true
	}
}

// All yields the pods that were refused.
func (u *Undeletable) All() iter.Seq[types.UID] { return maps.Keys(u.pods) }
