package queues

import (
	"maps"
	"slices"

	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// Draft is the tree while it is being changed. It shares everything with the
// snapshots it published and copies a queue, and the chunk it lies in, the
// first time it changes after a publication:
//
//	Draft ──Publish──► Snapshot n        (pointer swap; the draft now owns nothing)
//	  │ Update leaf..root                 (copies: the path and its chunks)
//	  └────Publish──► Snapshot n+1
//
// A draft has one writer and no lock; its owner guards it.
type Draft struct {
	epoch          uint64 // what carries it is not shared with a published snapshot
	treeGeneration uint64
	tree
	sharedTop bool // the slice of chunks is shared with a published snapshot
	dirty     bool
	free      []ID // below next
	next      ID
	capacity  resources.Vector
	dynamic   dynamicCounts
}

// NewDraft returns a draft with an empty active root.
func NewDraft(root Settings) *Draft {
	d := &Draft{epoch: 1, tree: tree{visits: new(0)}, dirty: true, next: RootID + 1}
	root.Parent = NoQueue
	d.put(&Queue{ID: RootID, Settings: &root, epoch: d.epoch})
	d.treeGeneration++
	return d
}

// Visits counts the calls of Queue, which all methods use to reach a queue. Tests show with
// it that the work of an event does not grow with the number of queues.
func (d *Draft) Visits() int { return *d.visits }

// Add makes a queue below its settings' Parent and returns its ID. It panics if there is no such
// parent, or if the name exists there already.
func (d *Draft) Add(s Settings) ID {
	parent := d.Queue(s.Parent)
	if parent == nil {
		panic("add queue " + s.Path + ": its parent does not exist")
	}
	i, exists := findChild(d, parent, s.Name)
	if exists {
		panic("add queue " + s.Path + ": it exists already")
	}
	id := d.next
	if n := len(d.free); n > 0 {
		id, d.free = d.free[n-1], d.free[:n-1]
	} else {
		d.next++
	}
	d.put(&Queue{ID: id, Settings: &s, epoch: d.epoch})
	d.dynamic.add(&s, 1)
	p := d.writable(s.Parent)
	p.Children = slices.Insert(slices.Clone(p.Children), i, id)
	d.treeGeneration++
	return id
}

// Remove takes a queue out of the tree, and tells whether it did: only an empty one that is
// not the root.
func (d *Draft) Remove(id ID) bool {
	q := d.Queue(id)
	if q == nil || q.IsRoot() || !q.Empty() {
		return false
	}
	p := d.writable(q.Parent)
	p.Children = slices.DeleteFunc(slices.Clone(p.Children), func(c ID) bool { return c == id })
	d.ownChunk(id).queues[int(id)%chunkSize] = nil
	d.free = append(d.free, id)
	d.dynamic.add(q.Settings, -1)
	d.treeGeneration++
	return true
}

// SetSettings replaces the settings of a queue.
func (d *Draft) SetSettings(id ID, s Settings) {
	q := d.writable(id)
	d.dynamic.add(q.Settings, -1)
	d.dynamic.add(&s, 1)
	q.Settings = &s
	d.treeGeneration++
}

// Update changes the usage of a queue and of all its ancestors by f.
func (d *Draft) Update(id ID, f func(*Usage)) {
	for id != NoQueue {
		q := d.writable(id)
		f(&q.Usage)
		id = q.Parent
	}
}

// SetCapacity sets the sum of what the nodes can hold.
func (d *Draft) SetCapacity(capacity resources.Vector) {
	d.capacity, d.dirty = capacity, true
}

// TreeGeneration counts the changes of structure and settings.
func (d *Draft) TreeGeneration() uint64 { return d.treeGeneration }

// Changed tells whether anything changed since the last publication.
func (d *Draft) Changed() bool { return d.dirty }

// Fork returns a draft with the queues of this one, which changes independently of it.
// Call it right after Publish, when this draft owns nothing.
func (d *Draft) Fork() *Draft {
	f := *d
	f.free, f.dynamic.by, f.visits = slices.Clone(d.free), maps.Clone(d.dynamic.by), new(*d.visits)
	return &f
}

// Publish freezes the current state. It returns the previous snapshot when
// nothing changed since; pass nil the first time.
func (d *Draft) Publish(previous *Snapshot) *Snapshot {
	if !d.dirty && previous != nil {
		return previous
	}
	d.epoch++
	d.sharedTop, d.dirty = true, false
	return &Snapshot{tree: tree{chunks: d.chunks}, capacity: d.capacity}
}

// writable returns the queue as a copy that no snapshot shares.
func (d *Draft) writable(id ID) *Queue {
	q := d.Queue(id)
	if q.epoch == d.epoch {
		return q
	}
	c := *q
	c.epoch = d.epoch
	d.put(&c)
	return &c
}

func (d *Draft) put(q *Queue) { d.ownChunk(q.ID).queues[int(q.ID)%chunkSize] = q }

// ownChunk returns the chunk of the ID as a copy that no snapshot shares.
func (d *Draft) ownChunk(id ID) *chunk {
	d.dirty = true
	i := int(id) / chunkSize
	if i < len(d.chunks) && d.chunks[i].epoch == d.epoch {
		return d.chunks[i]
	}
	if d.sharedTop {
		d.chunks = slices.Clone(d.chunks)
		d.sharedTop = false
	}
	if i == len(d.chunks) {
		d.chunks = append(d.chunks, &chunk{epoch: d.epoch})
		return d.chunks[i]
	}
	c := *d.chunks[i]
	c.epoch = d.epoch
	d.chunks[i] = &c
	return &c
}
