package inventory

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/paddock-scheduler/paddock/pkg/queues"
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/reasons"
	"github.com/paddock-scheduler/paddock/pkg/reservations"
	"github.com/paddock-scheduler/paddock/pkg/store/output"
)

// bite is how many changes are taken at a time: what a scheduling cycle may have
// to wait for, about 50 us.
const bite = 256

// Source is where changes come from; a store. The inventory is its only consumer.
type Source interface {
	TakeChanges(limit int) output.Changes
	Whys(uids []types.UID) []reasons.Reason
	Snapshot() *queues.Snapshot
	Spec() *config.Spec
}

// Inventory follows a source. Make one with New.
type Inventory struct {
	source Source

	mu        sync.Mutex // guards the rest; taken before the lock of the source
	pods      map[types.UID]*Pod
	apps      map[uint64]*application
	nodes     map[string]*node
	unplaced  map[types.UID]*Pod
	preempted map[types.UID]*Pod
	stale     stale
	view      *View
}

// application is an application that is put together anew when it is stale.
type application struct {
	record *output.AppRecord // nil before it was told
	pods   members
	made   *Application // as it was last; nil for never
	stale  bool
}

// node is the same for a node.
type node struct {
	record *output.NodeRecord // nil for a node that is not known
	pods   members
	made   *Node
	stale  bool
}

// stale says what of the view is old.
type stale struct {
	apps  []*application
	nodes []*node
	// The lists of applications and nodes have others than before, or those have
	// another place.
	appList, nodeList   bool
	unplaced, preempted bool
}

// New returns an inventory that has taken nothing yet.
func New(source Source) *Inventory {
	return &Inventory{
		source: source, pods: map[types.UID]*Pod{}, apps: map[uint64]*application{}, nodes: map[string]*node{},
		unplaced: map[types.UID]*Pod{}, preempted: map[types.UID]*Pod{}, view: &View{},
	}
}

// View returns everything as it is now.
func (i *Inventory) View() *View {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.lockedView()
}

// Pods returns all pods that are known as they are now, those of no queue and of no
// known node included, in no order.
func (i *Inventory) Pods() []*Pod {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.lockedView()
	out := make([]*Pod, 0, len(i.pods))
	for _, p := range i.pods {
		out = append(out, p)
	}
	return out
}

func (i *Inventory) lockedView() *View {
	for {
		c := i.source.TakeChanges(bite)
		i.apply(&c)
		if c.Rest != nil {
			i.renew(c.Rest)
			return i.view
		}
	}
}

// Find returns the pod of a name as it is now; nil if there is none. Of several, one of
// which was made anew and the end of the first was not reported yet, it is the youngest.
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

// Whys says of each pod why it does not run; none for those that do.
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
		delete(i.apps, serial)
		i.stale.appList = true
	}
	for _, name := range c.GoneNodes {
		n := i.nodeOf(name)
		n.record = nil
		i.stale.nodeList = true
		i.dropNode(name)
	}
	for _, r := range c.Nodes {
		n := i.nodeOf(r.Name)
		i.stale.nodeList = i.stale.nodeList || n.record == nil
		n.record = r
		i.touchNode(n)
	}
	for _, r := range c.Apps {
		a := i.appOf(r.Serial)
		// The place of an application depends on when it was submitted.
		i.stale.appList = i.stale.appList || a.record == nil || !a.record.Submitted.Equal(r.Submitted)
		a.record = r
		i.touchApp(a)
	}
	for _, p := range c.Pods {
		i.takeOut(i.pods[p.UID])
		i.putIn(&Pod{PodRecord: p})
	}
}

// putIn adds a pod wherever it belongs.
func (i *Inventory) putIn(p *Pod) {
	i.pods[p.UID] = p
	if p.App != 0 {
		a := i.appOf(p.App)
		a.pods.add(p)
		i.touchApp(a)
	}
	if p.Node != "" {
		n := i.nodeOf(p.Node)
		n.pods.add(p)
		i.touchNode(n)
	}
	if p.App == 0 && !p.Foreign {
		i.unplaced[p.UID] = p
		i.stale.unplaced = true
	}
	if p.Preempted {
		i.preempted[p.UID] = p
		i.stale.preempted = true
	}
}

// takeOut removes a pod from wherever it is; nil for one that is not there.
func (i *Inventory) takeOut(p *Pod) {
	if p == nil {
		return
	}
	delete(i.pods, p.UID)
	if a := i.apps[p.App]; a != nil {
		a.pods.remove(p)
		i.touchApp(a)
	}
	if n := i.nodes[p.Node]; n != nil {
		n.pods.remove(p)
		i.touchNode(n)
		i.dropNode(p.Node)
	}
	if _, there := i.unplaced[p.UID]; there {
		i.stale.unplaced = true
		if delete(i.unplaced, p.UID); len(i.unplaced) == 0 {
			i.unplaced = map[types.UID]*Pod{} // a map does not shrink, and at the start all are in it
		}
	}
	if _, there := i.preempted[p.UID]; there {
		delete(i.preempted, p.UID)
		i.stale.preempted = true
	}
}

func (i *Inventory) appOf(serial uint64) *application {
	a := i.apps[serial]
	if a == nil {
		a = &application{pods: members{place: inApp}}
		i.apps[serial] = a
	}
	return a
}

func (i *Inventory) nodeOf(name string) *node {
	n := i.nodes[name]
	if n == nil {
		n = &node{pods: members{place: inNode}}
		i.nodes[name] = n
	}
	return n
}

// dropNode forgets a node that is not known and has no pods.
func (i *Inventory) dropNode(name string) {
	if n := i.nodes[name]; n.record == nil && len(n.pods.list) == 0 {
		delete(i.nodes, name)
	}
}

func (i *Inventory) touchApp(a *application) {
	if !a.stale {
		a.stale = true
		i.stale.apps = append(i.stale.apps, a)
	}
}

func (i *Inventory) touchNode(n *node) {
	if !n.stale {
		n.stale = true
		i.stale.nodes = append(i.stale.nodes, n)
	}
}

// same tells whether nothing happened since the view before.
func (i *Inventory) same(rest *output.Rest) bool {
	s, was := &i.stale, &i.view.Rest
	return len(s.apps)+len(s.nodes) == 0 && !s.appList && !s.nodeList && !s.unplaced && !s.preempted &&
		i.view.Generation > 0 && rest.Started == was.Started && rest.Queues == was.Queues && rest.Holds == was.Holds && rest.HoldTimeout == was.HoldTimeout &&
		rest.Spec == was.Spec && slices.Equal(rest.Finished, was.Finished)
}

// renew makes the view of now: what is old anew, the rest as it was.
func (i *Inventory) renew(rest *output.Rest) {
	if i.same(rest) {
		return
	}
	for _, a := range i.stale.apps {
		if a.stale = false; a.record != nil {
			a.made = a.make()
		}
	}
	for _, n := range i.stale.nodes {
		if n.stale = false; n.record != nil {
			n.made = n.make()
		}
	}
	v := *i.view
	v.Rest, v.Generation = *rest, v.Generation+1
	if i.stale.appList || len(i.stale.apps) > 0 {
		v.Applications = i.applications()
	}
	if i.stale.nodeList || len(i.stale.nodes) > 0 {
		v.Nodes = i.listNodes()
	}
	if i.stale.unplaced {
		v.Unplaced = sortedPods(slices.Collect(maps.Values(i.unplaced)))
	}
	if i.stale.preempted {
		v.Preempted = sortedPods(slices.Collect(maps.Values(i.preempted)))
	}
	v.Holders = i.holders(rest.Holds)
	i.stale = stale{}
	i.view = &v
}

// holders are the askers that hold a node.
func (i *Inventory) holders(holds *reservations.View) map[types.UID]*Pod {
	out := map[types.UID]*Pod{}
	for _, h := range holds.All() {
		if p := i.pods[h.Asker]; p != nil {
			out[h.Asker] = p
		}
	}
	return out
}

// applications lists them as they are now, in place where none came or went.
func (i *Inventory) applications() []*Application {
	out := make([]*Application, 0, len(i.apps))
	if !i.stale.appList {
		for _, a := range i.view.Applications {
			out = append(out, i.apps[a.Serial].made)
		}
		return out
	}
	for _, a := range i.apps {
		if a.record != nil {
			out = append(out, a.made)
		}
	}
	slices.SortFunc(out, firstSubmitted)
	return out
}

func (i *Inventory) listNodes() []*Node {
	out := make([]*Node, 0, len(i.nodes))
	if !i.stale.nodeList {
		for _, n := range i.view.Nodes {
			out = append(out, i.nodes[n.Name].made)
		}
		return out
	}
	for _, n := range i.nodes {
		if n.record != nil {
			out = append(out, n.made)
		}
	}
	slices.SortFunc(out, func(a, b *Node) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func (a *application) make() *Application {
	out := &Application{AppRecord: a.record}
	for _, p := range sortedPods(a.pods.list) {
		if p.Node != "" {
			out.Allocations = append(out.Allocations, p)
		} else {
			out.Requests = append(out.Requests, p)
		}
	}
	return out
}

func (n *node) make() *Node {
	out := &Node{NodeRecord: *n.record}
	for _, p := range sortedPods(n.pods.list) {
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

// Spec returns the configuration as it is now; the lock of the store is held for a moment.
func (i *Inventory) Spec() *config.Spec { return i.source.Spec() }

// Queues returns the queues as they are now. It takes no lock.
func (i *Inventory) Queues() *queues.Snapshot { return i.source.Snapshot() }
