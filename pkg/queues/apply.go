package queues

import (
	"github.com/paddock-scheduler/paddock/pkg/queues/config"
	"github.com/paddock-scheduler/paddock/pkg/resources"
)

// RecoveryPath is the hidden leaf for running pods with a queue that is gone and cannot
// be made again. It has no quota and no access list.
const RecoveryPath = "root.@recovery@"

// NewDraftFrom returns a draft with the queues of a specification.
func NewDraftFrom(spec *config.Spec) *Draft {
	d := NewDraft(managedSettings(spec.Root, nil, RootID))
	d.Apply(spec)
	return d
}

// Apply makes the tree follow a specification, as in YuniKorn:
// queues are added and changed; a dynamic queue that the specification now
// names becomes managed; managed queues it does not name any more begin to
// drain, with everything below them; a draining queue it names again is active.
// Usage is not touched.
func (d *Draft) Apply(spec *config.Spec) {
	d.SetSettings(RootID, managedSettings(spec.Root, nil, RootID))
	d.applyChildren(spec.Root, RootID)
}

func (d *Draft) applyChildren(spec *config.Queue, id ID) {
	named := make(map[string]bool, len(spec.Children))
	for _, c := range spec.Children {
		named[c.Name] = true
		d.applyChildren(c, d.applyQueue(c, id))
	}
	for _, c := range d.Queue(id).Children {
		if q := d.Queue(c); !named[q.Name] {
			if q.Managed {
				d.drain(c)
			} else {
				d.refresh(c)
			}
		}
	}
}

func (d *Draft) applyQueue(spec *config.Queue, parent ID) ID {
	s := managedSettings(spec, d.Queue(parent), parent)
	if i, ok := findChild(d, d.Queue(parent), spec.Name); ok {
		id := d.Queue(parent).Children[i]
		d.SetSettings(id, s)
		return id
	}
	id, err := d.Add(s)
	if err != nil { // the name was just looked up and the parent exists
		panic(err)
	}
	return id
}

// drain marks a managed queue that left the configuration, and all below it.
func (d *Draft) drain(id ID) {
	s := *d.Queue(id).Settings
	s.State = Draining
	d.SetSettings(id, s)
	d.refresh(id)
}

// refresh recomputes what a queue that the specification does not name, and
// all below it, take from their ancestors.
func (d *Draft) refresh(id ID) {
	q := d.Queue(id)
	s := *q.Settings
	parent := d.Queue(s.Parent)
	inherit(&s, parent)
	if !s.Managed && !s.Leaf {
		s.Template = parent.Template
	}
	d.SetSettings(id, s)
	for _, c := range d.Queue(id).Children {
		if d.Queue(c).Managed {
			d.drain(c)
		} else {
			d.refresh(c)
		}
	}
}

// inherit computes the fields that depend on the ancestors.
func inherit(s *Settings, parent *Queue) {
	s.PathMax, s.PathLimited = s.Max, len(s.Limits) > 0
	if parent != nil {
		s.PathMax = s.Max.Min(parent.PathMax)
		s.PathLimited = s.PathLimited || parent.PathLimited
	}
}

func managedSettings(spec *config.Queue, parent *Queue, parentID ID) Settings {
	s := Settings{
		Name: spec.Name, Path: spec.Path, Parent: parentID,
		Leaf: spec.Leaf, Managed: true,
		Guaranteed: spec.Guaranteed, Max: spec.Max, MaxApplications: spec.MaxApplications,
		Properties: spec.Properties, Policies: spec.Policies,
		SubmitACL: spec.SubmitACL, AdminACL: spec.AdminACL,
		Template: spec.Template, Limits: spec.Limits,
	}
	if parent == nil {
		s.Parent = NoQueue
	}
	inherit(&s, parent)
	return s
}

// AddDynamic makes the queues that are missing on the way to a leaf, the last
// one a leaf configured by the nearest template, as in YuniKorn, and
// returns the leaf. A queue that exists is returned as it is. The namespace is that of the
// pod for which they are made.
func (d *Draft) AddDynamic(path, namespace string) (ID, error) {
	parent, missing := d.deepest(path)
	for i, name := range missing {
		s := dynamicSettings(d.Queue(parent), parent, name, i == len(missing)-1)
		s.MadeFor = namespace
		id, err := d.Add(s)
		if err != nil {
			return NoQueue, err
		}
		parent = id
	}
	return parent, nil
}

func dynamicSettings(parent *Queue, parentID ID, name string, leaf bool) Settings {
	s := Settings{
		Name: name, Path: parent.Path + "." + name, Parent: parentID,
		Leaf: leaf, Policies: config.DefaultPolicies(),
	}
	if !leaf {
		s.Template = parent.Template
	}
	if t := parent.Template; leaf && t != nil && s.Path != RecoveryPath {
		s.Guaranteed, s.Max, s.MaxApplications = t.Guaranteed, t.Max, t.MaxApplications
		s.Properties, s.Policies = t.Properties, t.Policies
	}
	inherit(&s, parent)
	return s
}

// NamespaceQuota is what a namespace's annotations say of a dynamic leaf.
type NamespaceQuota struct {
	// Guaranteed and Max replace the leaf's when either of them is set; the one
	// that is not set is then cleared. MaxApplications replaces it when above 0.
	Guaranteed      resources.Guarantee
	Max             resources.Limit
	MaxApplications uint64
}

// SetNamespaceQuota gives a dynamic leaf the quota of a namespace; nil takes it
// away, and the template's is back. Leaves that do not heed it are left alone. One leaf
// has what the namespace is guaranteed: with each further one a user that may name
// queues would be guaranteed that much more.
func (d *Draft) SetNamespaceQuota(id ID, namespace string, quota *NamespaceQuota) {
	q := d.Queue(id)
	if !heeds(q, namespace) {
		return
	}
	parent := d.Queue(q.Parent)
	s := dynamicSettings(parent, q.Parent, q.Name, true)
	s.State, s.MadeFor = q.State, q.MadeFor
	if quota != nil {
		s.QuotaNamespace = namespace
		if !quota.Guaranteed.IsNone() || !quota.Max.IsUnlimited() {
			s.Guaranteed, s.Max = quota.Guaranteed, quota.Max
			if !quota.Guaranteed.IsNone() && d.guaranteesElsewhere(namespace, q) {
				s.Guaranteed = resources.Guarantee{}
			}
		}
		if quota.MaxApplications > 0 {
			s.MaxApplications = quota.MaxApplications
		}
	}
	inherit(&s, parent)
	if !sameQuota(&s, q.Settings) {
		d.SetSettings(id, s)
	}
}

// heeds tells whether a queue may have the quota of a namespace: it is a dynamic leaf that
// has the name of the namespace, or it was made for the namespace and has the quota of no
// other one. So a pod that names a queue of another namespace does not change its quota.
func heeds(q *Queue, namespace string) bool {
	if q.Managed || !q.Leaf || q.Path == RecoveryPath {
		return false
	}
	named := q.Name == config.EscapeDots(namespace)
	return named || q.MadeFor == namespace && (q.QuotaNamespace == "" || q.QuotaNamespace == namespace)
}

// guaranteesElsewhere tells whether another leaf has what a namespace is guaranteed.
func (d *Draft) guaranteesElsewhere(namespace string, q *Queue) bool {
	if q.QuotaNamespace == namespace && !q.Guaranteed.IsNone() {
		return false
	}
	for other := range d.All() {
		if other.ID != q.ID && other.QuotaNamespace == namespace && !other.Guaranteed.IsNone() {
			return true
		}
	}
	return false
}

func sameQuota(a, b *Settings) bool {
	return a.QuotaNamespace == b.QuotaNamespace && a.MaxApplications == b.MaxApplications &&
		a.Guaranteed.Equal(b.Guaranteed) && a.Max.Equal(b.Max)
}
