package simulation_test

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/objects"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// judgeHoldTimes finds a hold that is over and does not end. Its time counts from its begin, and if pods
// were chosen for it again from when they are told to go, and from when a pod that it waits for is gone
// or has lost its place; that of members of a PodGroup from the last of them, which may be at Permit. It
// is over two time-outs after its begin in any case, or after that of the first of the PodGroup. A
// process that has no configuration in force yet ends no hold: the time counts from when it has one.
// Processes are not judged that may have been without the lease. The caller holds the lock of the API
// server.
func (w *interceptor) judgeHoldTimes() {
	defer holding(&w.mu)()
	s, now := w.in.sim, time.Now()
	if s.elects || w.in.dead.Load() {
		return
	}
	if !w.in.store().Ready() {
		clear(w.begun)
		return
	}
	// By PodGroup, or by pod:
	last := map[types.NamespacedName]time.Time{}  // from when its holds count
	first := map[types.NamespacedName]time.Time{} // when the first of them began
	left := map[types.NamespacedName]time.Time{}  // when a holder last lost its place
	var holds []reservations.Hold
	for _, h := range w.Holds().All() {
		key := begin{h.Asker, h.Since}
		if w.begun[key].IsZero() {
			w.begun[key] = now
		}
		if asker, known := w.pods[h.Asker]; !known || asker.Node != "" {
			continue
		}
		if _, pending := w.pendingPod(h.Asker); pending && !w.isLodged(h.Asker) {
			w.judgeNodeRefuses(&h, key, now)
			holds = append(holds, h)
		}
		from := w.begun[key]
		if h.NodeBound {
			from = from.Add(time.Duration(s.settings.startDelay) * time.Second)
		}
		group := w.timedWith(h.Asker)
		if at, ok := first[group]; !ok || from.Before(at) {
			first[group] = from
		}
		last[group] = latest(last[group], from)
		if at := w.committed[h.Asker]; len(h.Chosen) > 0 || !at.IsZero() { // otherwise no pod was told to go
			last[group] = latest(last[group], at, w.wentAt[h.Asker])
		}
		left[group] = latest(left[group], w.leftAt[h.Asker])
	}
	for _, h := range holds {
		group := w.timedWith(h.Asker)
		due := last[group]
		if most := first[group].Add(s.timeout(group)); most.Before(due) {
			due = most
		}
		due = latest(due.Add(s.timeout(group)), left[group]) // it kept its hold while it had a place
		if over := now.Sub(due); over > time.Second {
			s.fault("%s holds node %s for longer than it may for %s, which counts with %s: for %v, %v too long", w.in.name, h.Node, h.Name, group, now.Sub(h.Since), over)
		}
	}
	w.judgeOwnTimes(holds, now)
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// judgeTimedOut finds holds of a PodGroup that time out before the one of its last member may:
// a time-out from the begin of that, or two from the begin of the first. Once the PodGroup has started
// each hold has its own time.
func (w *interceptor) judgeTimedOut(work []output.Work) {
	var ended []reservations.Hold
	minMembers := map[types.UID]int{}
	for i := range work {
		if h := work[i].Hold; work[i].Kind == output.WorkRelease && work[i].Ended == reservations.TimedOut && !h.NodeBound {
			ended = append(ended, h)
			minMembers[h.Asker] = leastMember(w.in.sim.minMembers(h.Asker))
		}
	}
	defer holding(&w.mu)()
	bySince := func(a, b reservations.Hold) int { return a.Since.Compare(b.Since) }
	for _, h := range ended {
		group, timeout := w.timedWith(h.Asker), reservationTimeout*time.Second
		if !strings.HasPrefix(group.Name, "PodGroup ") || w.started(group, minMembers[h.Asker]) {
			continue
		}
		w.in.sim.count(groupTimedOut)
		others := func(o reservations.Hold) bool { return w.timedWith(o.Asker) != group || o.NodeBound }
		holds := slices.DeleteFunc(slices.Concat(ended, w.Holds().All()), others)
		first, last := slices.MinFunc(holds, bySince).Since, slices.MaxFunc(holds, bySince)
		if early := min(last.Since.Sub(first), timeout) + timeout - time.Since(first); early > 0 {
			w.in.sim.fault("%s lets the hold of %s time out for %s, %v too early: %s holds since %v", w.in.name, group, h.Name, early, last.Name, last.Since)
		}
	}
}

// judgeOwnTimes finds a node that the holds of a namespace close for longer than one time-out in
// six while they wait for pods of that namespace (D4). The caller holds mu.
func (w *interceptor) judgeOwnTimes(holds []reservations.Hold, now time.Time) {
	closed, timeout := map[nodeOf]bool{}, time.Duration(w.in.sim.settings.timeout)*time.Second
	for _, h := range holds {
		at := nodeOf{h.Node, h.Namespace}
		if !h.NodeBound || !slices.ContainsFunc(h.Awaited, func(uid types.UID) bool { return w.pods[uid].Namespace == h.Namespace }) {
			continue
		}
		closed[at] = true
		if o := w.ownTimes[at]; o == nil || !o.closed && now.Sub(o.began) >= 6*timeout {
			w.ownTimes[at] = &ownTime{began: now}
		}
		if !w.ownTimes[at].closed {
			w.in.sim.count(heldForOwn)
		}
	}
	for at, o := range w.ownTimes {
		if o.closed && closed[at] {
			o.used += now.Sub(o.last)
		}
		o.closed, o.last = closed[at], now
		if most := timeout + time.Second; o.used > most {
			w.in.sim.fault("%s closes node %s for pods of namespace %s itself: for %v since %v, at most %v are allowed", w.in.name, at.node, at.namespace, o.used, o.began, most)
		}
	}
}

// timedWith is the PodGroup with which the hold of a pod times out, or the pod itself.
func (w *interceptor) timedWith(asker types.UID) types.NamespacedName {
	p := w.pods[asker]
	if w.apart(&p) && p.RequiredNode == "" {
		return types.NamespacedName{Namespace: p.Namespace, Name: "PodGroup " + p.Labels[objects.PodGroupLabel]}
	}
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// started tells whether so many members of a PodGroup have a node as it needs to start; minMember 0: it
// cannot start. The caller holds mu.
func (w *interceptor) started(group types.NamespacedName, minMember int) bool {
	placed := 0
	for uid := range w.pods {
		if x, known := w.Explanation(uid, time.Now()); known && (x.State == "Assumed" || x.State == "Bound") && w.timedWith(uid) == group {
			placed++
		}
	}
	return minMember > 0 && placed >= minMember
}

// judgeNodeRefuses finds a pod that still holds a node some time after the process has seen a
// taint that the pod does not tolerate, or that a label which it requires is gone. A member of
// a PodGroup that lacks others is not tried, so its hold ends with its time. A process that
// starts tries no pod. The callers hold the lock of the API server and mu.
func (w *interceptor) judgeNodeRefuses(h *reservations.Hold, key begin, now time.Time) {
	n, p := w.in.sim.api.node(h.Node), w.pods[h.Asker]
	pod := w.in.sim.api.podOf(h.Asker)
	if n == nil || pod == nil || !refuses(n, pod) || !h.NodeBound && w.apart(&p) || !w.Ready() || !w.in.triesPods() {
		delete(w.refused, key)
		return
	}
	what := "match its label"
	if dirty(n) {
		what = "tolerate its taint"
	}
	if w.refused[key].IsZero() {
		if w.in.sim.api.knows(w.in, w.in.sim.api.nodes) < versionOf(n) {
			return
		}
		w.refused[key] = now
	}
	most := refusedFor * time.Second
	if w.in.sim.trouble.Load() > 0 {
		most = refusedInTrouble * time.Second
	}
	if since := now.Sub(w.refused[key]); since > most {
		w.in.sim.fault("%s holds node %s for %s, which does not %s for %v", w.in.name, h.Node, h.Name, what, since)
	}
}
