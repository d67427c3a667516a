package inventory

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/internal/locks"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// bite is how many changes are taken at a time. A cycle may wait for one bite: 0.14 ms
// (decision 110), up to 0.4 ms on a loaded machine (docs/performance.md).
const bite = 256

// Source is where changes come from; a store. The inventory is its only consumer.
type Source interface {
	TakeChanges(limit int) output.Changes
	Whys(uids []types.UID) []reasons.Reason
}

// Inventory follows a source. Make one with New.
type Inventory struct {
	source Source

	mu    locks.Mutex // guards the rest; taken before the lock of the source
	pods  map[types.UID]*Pod
	apps  parts[uint64, output.AppRecord, Application] // those without an application are in noApp
	nodes parts[string, output.NodeRecord, Node]
	view  *View
}

// noApp stands for the application of pods of queues that have none.
const noApp = 0

// New returns an inventory that has taken nothing yet.
func New(source Source) *Inventory {
	return &Inventory{
		source: source, pods: map[types.UID]*Pod{},
		apps: parts[uint64, output.AppRecord, Application]{
			by: map[uint64]*part[output.AppRecord, Application]{}, place: inApp, make: applicationOf, compare: firstSubmitted,
		},
		nodes: parts[string, output.NodeRecord, Node]{
			by: map[string]*part[output.NodeRecord, Node]{}, place: inNode, make: nodeOf,
			compare: func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) },
		},
		view: &View{},
	}
}

// View returns everything as it is now.
func (i *Inventory) View() *View {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.lockedView()
}

// Pods returns all known pods as they are now, by UID, in a map of the caller. It includes pods
// without a queue and pods on nodes that are not known.
func (i *Inventory) Pods() map[types.UID]*Pod {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lockedView()
	return maps.Clone(i.pods)
}

func (i *Inventory) lockedView() *View {
	for {
		c := i.source.TakeChanges(bite)
		i.apply(&c)
		if c.Rest != nil {
			i.refresh(c.Rest)
			return i.view
		}
	}
}

// Find returns the pod of a name as it is now; nil if there is none. It returns the youngest
// of several: a pod can be recreated before the end of the first is reported.
func (i *Inventory) Find(namespace, name string) *Pod {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lockedView()
	var found *Pod
	for _, p := range i.pods {
		if p.Namespace == namespace && p.Name == name && (found == nil || oldestFirst(found, p) < 0) {
			found = p
		}
	}
	return found
}

// Whys returns for each pod why it does not run; no reason for a pod that runs.
func (i *Inventory) Whys(pods []*Pod) []reasons.Reason {
	uids := make([]types.UID, len(pods))
	for at, p := range pods {
		uids[at] = p.UID
	}
	return i.source.Whys(uids)
}

func (i *Inventory) apply(c *output.Changes) {
	for _, uid := range c.GonePods {
		i.takeOut(i.pods[uid])
	}
	for _, serial := range c.GoneApps {
		delete(i.apps.by, serial)
		i.apps.moved = true
	}
	for _, name := range c.GoneNodes {
		i.nodes.get(name).record = nil
		i.nodes.moved = true
		i.dropNode(name)
	}
	for _, r := range c.Nodes {
		n := i.nodes.get(r.Name)
		i.nodes.moved = i.nodes.moved || n.record == nil
		n.record = r
		i.nodes.touch(n)
	}
	for _, r := range c.Apps {
		a := i.apps.get(r.Serial)
		// The place of an application depends on when it was submitted.
		i.apps.moved = i.apps.moved || a.record == nil || !a.record.Submitted.Equal(r.Submitted)
		a.record = r
		i.apps.touch(a)
	}
	for _, p := range c.Pods {
		i.takeOut(i.pods[p.UID])
		i.putIn(&Pod{PodRecord: p})
	}
}

// putIn adds a pod wherever it belongs.
func (i *Inventory) putIn(p *Pod) {
	i.pods[p.UID] = p
	if p.App != noApp || !p.Foreign {
		a := i.apps.get(p.App)
		a.pods.add(p)
		i.apps.touch(a)
	}
	if p.Node != "" {
		n := i.nodes.get(p.Node)
		n.pods.add(p)
		i.nodes.touch(n)
	}
}

// takeOut removes a pod from wherever it is; nil for one that is not there.
func (i *Inventory) takeOut(p *Pod) {
	if p == nil {
		return
	}
	delete(i.pods, p.UID)
	if a := i.apps.by[p.App]; a != nil && a.pods.has(p) {
		a.pods.remove(p)
		i.apps.touch(a)
	}
	if n := i.nodes.by[p.Node]; n != nil {
		n.pods.remove(p)
		i.nodes.touch(n)
		i.dropNode(p.Node)
	}
}

// dropNode forgets a node that is not known and has no pods.
func (i *Inventory) dropNode(name string) {
	if n := i.nodes.by[name]; n.record == nil && len(n.pods.list) == 0 {
		delete(i.nodes.by, name)
	}
}

// same tells whether nothing changed since the last view.
func (i *Inventory) same(rest *output.Rest) bool {
	was := &i.view.Rest
	return i.apps.same() && i.nodes.same() &&
		rest.Started == was.Started && rest.Queues == was.Queues && rest.Holds == was.Holds && maps.Equal(rest.Until, was.Until) &&
		rest.Spec == was.Spec && slices.Equal(rest.Finished, was.Finished)
}

// refresh replaces the view. Lists that changed are rebuilt, the others are kept.
func (i *Inventory) refresh(rest *output.Rest) {
	if i.same(rest) {
		return
	}
	v := *i.view
	v.Rest = *rest
	if unplaced := i.apps.get(noApp); unplaced.stale {
		v.Unplaced = slices.SortedFunc(slices.Values(unplaced.pods.list), oldestFirst)
	}
	v.Applications, v.Nodes = i.apps.refresh(v.Applications), i.nodes.refresh(v.Nodes)
	v.InHolds = i.inHolds(rest.Holds)
	i.view = &v
}

// inHolds returns the pods that holds are about.
func (i *Inventory) inHolds(holds *reservations.View) map[types.UID]*Pod {
	out := map[types.UID]*Pod{}
	for _, h := range holds.All() {
		for _, uid := range slices.Concat([]types.UID{h.Asker}, h.Chosen, h.Awaited) {
			if p := i.pods[uid]; p != nil {
				out[uid] = p
			}
		}
	}
	return out
}

func applicationOf(r *output.AppRecord, pods []*Pod) *Application {
	out := &Application{AppRecord: r}
	for _, p := range pods {
		if p.Node != "" {
			out.Allocations = append(out.Allocations, p)
		} else {
			out.Requests = append(out.Requests, p)
		}
	}
	return out
}

func nodeOf(r *output.NodeRecord, pods []*Pod) *Node {
	out := &Node{NodeRecord: *r}
	for _, p := range pods {
		if p.Foreign {
			out.Foreign = append(out.Foreign, p)
			out.Occupied = out.Occupied.Add(p.Request)
		} else {
			out.Allocations = append(out.Allocations, p)
			out.Allocated = out.Allocated.Add(p.Request)
		}
	}
	return out
}
